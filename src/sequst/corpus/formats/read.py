"""Reading a file of any format into sentences with IOB2 tags, every malformed place reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from sequst.corpus.formats.annotated import Annotated, Lost, Misfit, Policy, sentences_of
from sequst.corpus.formats.argilla import read_argilla
from sequst.corpus.formats.brat import read_brat
from sequst.corpus.formats.columns import TagUse, read_columns
from sequst.corpus.formats.detect import Format, Guess, guess, open_input
from sequst.corpus.formats.docbin import read_docbin
from sequst.corpus.formats.doccano import read_doccano
from sequst.corpus.formats.huggingface import read_dataset
from sequst.corpus.formats.jsonl import read_jsonl
from sequst.corpus.formats.labelstudio import read_labelstudio
from sequst.corpus.formats.plain import read_text
from sequst.corpus.formats.prodigy import read_prodigy
from sequst.corpus.formats.records import Remark
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Scheme, detect_scheme, to_iob2, violations
from sequst.errors import DataError, Problem, SequstError
from sequst.inputs import Input, Report

TOOLS: dict[Format, Callable[[Input, TagUse, Report, Remark], Iterator[Annotated]]] = {
    "labelstudio": read_labelstudio,
    "doccano": read_doccano,
    "prodigy": read_prodigy,
    "argilla": read_argilla,
    "spacy": read_docbin,
    "brat": read_brat,
}
"""Readers of what annotation tools write."""


@dataclass(frozen=True)
class Reading:
    """What a file held: its sentences, how it was read, and every place that could not be."""

    name: str
    guess: Guess
    scheme: Scheme | None
    sentences: list[Sentence]
    problems: list[Problem]
    note: str = ""
    remarks: list[str] = field(default_factory=list)
    """What a reader has decided by itself."""
    misfits: list[Misfit] = field(default_factory=list)
    """What did not fit into tags, where that was allowed, and what was done about it."""

    def require(self) -> list[Sentence]:
        """The sentences; an error if any place was malformed or nothing is there."""
        if self.problems:
            raise DataError(self.problems)
        if not self.sentences:
            raise SequstError(f"{self.name} is empty: no sentence in it (read as {self.guess})")
        return self.sentences

    @property
    def notes(self) -> list[str]:
        """What was guessed, for the user to see."""
        notes = [f"{self.name}: read as {self.guess}"] if self.guess.reason != "as told" else []
        notes += self.remarks
        if self.note:
            notes.append(self.note)
        if self.scheme not in (None, "IOB2"):
            notes.append(f"{self.name}: tags turned from {self.scheme} into IOB2")
        return notes


def read_file(
    path: str | Path,
    *,
    format: str = "auto",
    tag_use: TagUse = "required",
    word_column: int | None = None,
    tag_column: int | None = None,
    name: str | None = None,
    on_conflict: Policy = "error",
) -> Reading:
    """Read a whole file, collecting its malformed places instead of stopping at the first; messages call it `name`.

    What tags cannot hold is such a place too, unless `on_conflict` allows to drop or trim it."""
    source = open_input(path, name, format)
    how = guess(source, format, word_column, tag_column)
    remarks: list[str] = []
    misfits: list[Misfit] = []
    more = _Asides(on_conflict, misfits.append, remarks.append)
    sentences, scheme, problems = _read_tagged(source, how, tag_use, more)
    note = ""
    if tag_use == "hidden" and problems and source.can_be_read_again:
        note = f"{source.name}: read without its tags, which are not all valid: {problems[0]}"
        sentences, scheme, problems = _read_tagged(source, how, "ignored", more)
    if how.format == "text" and tag_use == "required" and sentences and not problems:
        raise SequstError(
            f"{source.name} has no tags: it was read as {how}.\n"
            "Words with tags are needed, in columns or JSON lines. If that is what it has, name its format, conll or jsonl: "
            "--help says with which flag"
        )
    return Reading(source.name, how, scheme, sentences, problems, note, remarks, misfits)


@dataclass(frozen=True)
class _Asides:
    """What to do with what does not fit, and where it and the decisions of readers go."""

    policy: Policy = "error"
    lost: Lost = lambda misfit: None
    remark: Remark = lambda remark: None


def _read_tagged(
    source: Input, how: Guess, tag_use: TagUse, more: _Asides
) -> tuple[list[Sentence], Scheme | None, list[Problem]]:
    """(sentences with IOB2 tags, the scheme they were written in, malformed places by line)."""
    problems: list[Problem] = []
    sentences = list(_sentences(source, how, tag_use, problems.append, more))
    scheme = detect_scheme(s.tags for s in sentences if s.tags is not None) if any(s.tags for s in sentences) else None
    if scheme is not None:
        sentences = _turn(sentences, scheme, problems.append)
    return sentences, scheme, sorted(problems, key=lambda problem: (problem.file, problem.line))


def read(
    path: str | Path, *, format: str = "auto", word_column: int | None = None, tag_column: int | None = None
) -> list[Sentence]:
    """The sentences of a file, with IOB2 tags where it has tags. Malformed rows raise an error that names them."""
    return read_file(path, format=format, tag_use="optional", word_column=word_column, tag_column=tag_column).require()


def stream(source: Input, how: Guess) -> Iterator[Sentence]:
    """Sentences without tags, one at a time, for files larger than memory; stops at the first malformed place."""

    def stop(problem: Problem) -> None:
        raise DataError([problem])

    return _sentences(source, how, "ignored", stop, _Asides())


def _sentences(source: Input, how: Guess, tag_use: TagUse, report: Report, more: _Asides) -> Iterator[Sentence]:
    if how.format in TOOLS:
        records = TOOLS[how.format](source, tag_use, report, more.remark)
        return sentences_of(records, tag_use, more.policy, report, more.lost)
    if how.format == "datasets":
        return read_dataset(source, tag_use, report, more.remark)
    lines = source.lines(report)
    if how.format == "conll":
        return read_columns(source.name, lines, how.layout, tag_use, report)
    if how.format == "jsonl":
        return read_jsonl(source.name, lines, tag_use, report, more.policy, more.lost)
    return read_text(source.name, lines)


def _turn(sentences: list[Sentence], scheme: Scheme, report: Report) -> list[Sentence]:
    """The same sentences with IOB2 tags; a sentence that breaks its scheme is reported and left out."""
    turned = []
    for sentence in sentences:
        bad = violations(sentence.tags, scheme) if sentence.tags is not None else []
        for word, found, expected in bad:
            assert sentence.source is not None
            report(sentence.source.problem(f"{found} at {sentence.words[word]!r}", expected, word))
        if not bad:
            if sentence.tags is not None and scheme != "IOB2":
                sentence = replace(sentence, tags=to_iob2(sentence.tags, scheme))
            turned.append(sentence)
    return turned


def hide_tags(sentences: list[Sentence]) -> tuple[list[Sentence], list[tuple[str, ...] | None]]:
    """(sentences without tags, their tags apart): training gets the first, diagnosis alone the second."""
    return [s.without_tags() for s in sentences], [s.tags for s in sentences]
