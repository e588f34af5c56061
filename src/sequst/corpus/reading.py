"""Reading a file of any format into sentences with IOB2 tags, every malformed place reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sequst.corpus.columns import TagUse, read_columns
from sequst.corpus.formats import Guess, guess
from sequst.corpus.jsonl import read_jsonl
from sequst.corpus.plain import read_text
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Scheme, detect_scheme, to_iob2, violations
from sequst.errors import DataError, Problem, SequstError
from sequst.inputs import Input, Report


@dataclass(frozen=True)
class Reading:
    """What a file held: its sentences, how it was read, and every place that could not be."""

    name: str
    guess: Guess
    scheme: Scheme | None
    sentences: list[Sentence]
    problems: list[Problem]
    note: str = ""

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
) -> Reading:
    """Read a whole file, collecting its malformed places instead of stopping at the first; messages call it `name`."""
    source = Input(path, name)
    how = guess(source, format, word_column, tag_column)
    sentences, scheme, problems = _read_tagged(source, how, tag_use)
    note = ""
    if tag_use == "hidden" and problems and source.can_be_read_again:
        note = f"{source.name}: read without its tags, which are not all valid: {problems[0]}"
        sentences, scheme, problems = _read_tagged(source, how, "ignored")
    if how.format == "text" and tag_use == "required" and sentences and not problems:
        raise SequstError(
            f"{source.name} has no tags: it was read as {how}.\n"
            "Training needs words with tags: a column file (--labeled-format conll) or JSON lines (--labeled-format jsonl)"
        )
    return Reading(source.name, how, scheme, sentences, problems, note)


def _read_tagged(source: Input, how: Guess, tag_use: TagUse) -> tuple[list[Sentence], Scheme | None, list[Problem]]:
    """(sentences with IOB2 tags, the scheme they were written in, malformed places by line)."""
    problems: list[Problem] = []
    sentences = list(_sentences(source, how, tag_use, problems.append))
    scheme = detect_scheme(s.tags for s in sentences if s.tags is not None) if any(s.tags for s in sentences) else None
    if scheme is not None:
        sentences = _turn(sentences, scheme, problems.append)
    return sentences, scheme, sorted(problems, key=lambda problem: problem.line)


def read(
    path: str | Path, *, format: str = "auto", word_column: int | None = None, tag_column: int | None = None
) -> list[Sentence]:
    """The sentences of a file, with IOB2 tags where it has tags. Malformed rows raise an error that names them."""
    return read_file(path, format=format, tag_use="optional", word_column=word_column, tag_column=tag_column).require()


def stream(source: Input, how: Guess) -> Iterator[Sentence]:
    """Sentences without tags, one at a time, for files larger than memory; stops at the first malformed place."""

    def stop(problem: Problem) -> None:
        raise DataError([problem])

    return _sentences(source, how, "ignored", stop)


def _sentences(source: Input, how: Guess, tag_use: TagUse, report: Report) -> Iterator[Sentence]:
    lines = source.lines(report)
    if how.format == "conll":
        return read_columns(source.name, lines, how.layout, tag_use, report)
    if how.format == "jsonl":
        return read_jsonl(source.name, lines, tag_use, report)
    return read_text(source.name, lines)


def _turn(sentences: list[Sentence], scheme: Scheme, report: Report) -> list[Sentence]:
    """The same sentences with IOB2 tags; a sentence that breaks its scheme is reported and left out."""
    turned = []
    for sentence in sentences:
        bad = violations(sentence.tags, scheme) if sentence.tags is not None else []
        for word, found, expected in bad:
            assert sentence.source is not None
            line = sentence.source.line_of(word)
            report(Problem(sentence.source.file, line, f"{found} at {sentence.words[word]!r}", expected))
        if not bad:
            turned.append(sentence if sentence.tags is None else replace(sentence, tags=to_iob2(sentence.tags, scheme)))
    return turned


def hide_tags(sentences: list[Sentence]) -> tuple[list[Sentence], list[tuple[str, ...] | None]]:
    """(sentences without tags, their tags apart): training gets the first, diagnosis alone the second."""
    return [s.without_tags() for s in sentences], [s.tags for s in sentences]
