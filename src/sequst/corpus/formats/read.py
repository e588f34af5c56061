"""Read a file of any format into sentences with IOB2 tags. Every malformed place is reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sequst.corpus.formats.detect import Guess, guess, open_input
from sequst.corpus.formats.registry import FORMATS, POLICIES, Request, TagUse, stop
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Scheme, detect_scheme, to_iob2, violations
from sequst.errors import DataError, Problem, SequstError, UsageError, nearest, shorten
from sequst.inputs import Input, Report

if TYPE_CHECKING:
    from sequst.corpus.formats.annotated import Misfit


@dataclass(frozen=True)
class Reading:
    """The sentences of a file, how it was read, and every malformed place."""

    name: str
    guess: Guess
    sentences: list[Sentence]
    problems: list[Problem]
    notes: list[str]
    """Notes for the user: what was guessed and decided."""
    misfits: list[Misfit]
    """What did not fit into tags, and what was done about it."""

    def require(self) -> list[Sentence]:
        """The sentences; an error if any place was malformed or nothing is there."""
        if self.problems:
            raise DataError(self.problems)
        if not self.sentences:
            raise SequstError(f"{self.name} is empty: no sentence in it (read as {self.guess})")
        return self.sentences


def read_file(
    path: str | Path,
    *,
    format: str = "auto",
    tag_use: TagUse = "required",
    word_column: int | None = None,
    tag_column: int | None = None,
    name: str | None = None,
    on_conflict: str = "error",
) -> Reading:
    """Read a whole file, collecting its malformed places instead of stopping at the first; messages call it `name`.

    What tags cannot hold is such a place too, unless `on_conflict` says to drop or trim it.
    """
    if on_conflict not in POLICIES:
        raise UsageError(f"--on-conflict {on_conflict}: {nearest(on_conflict, POLICIES)}")
    source = open_input(path, name, format)
    how = guess(source, format, word_column, tag_column)
    notes = [f"{source.name}: read as {how}"] if how.by_content else []
    misfits: list[Misfit] = []
    request = Request(source, how.layout, tag_use, remark=notes.append, policy=on_conflict, lost=misfits.append, whole=True)
    sentences, scheme, problems = _read_tagged(how.format, request)
    if tag_use == "hidden" and problems and source.can_be_read_again:
        notes.append(f"{source.name}: read without its tags, which are not all valid: {problems[0]}")
        sentences, scheme, problems = _read_tagged(how.format, replace(request, tag_use="ignored"))
    if how.format == "text" and tag_use == "required" and sentences and not problems:
        raise SequstError(
            f"{source.name} has no tags: it was read as {how}.\n"
            "Words with tags are needed. If it has them, set its format to conll or jsonl; --help names the flag"
        )
    if scheme not in (None, "IOB2"):
        notes.append(f"{source.name}: tags turned from {scheme} into IOB2")
    return Reading(source.name, how, sentences, problems, notes, misfits)


def _read_tagged(format: str, request: Request) -> tuple[list[Sentence], Scheme | None, list[Problem]]:
    """(sentences with IOB2 tags, the scheme they were written in, malformed places by line)."""
    problems: list[Problem] = []
    sentences = list(FORMATS[format].read(replace(request, report=problems.append)))
    tagged = [sentence.tags for sentence in sentences if sentence.tags]
    scheme = detect_scheme(tagged) if tagged else None
    if scheme is not None:
        sentences = _turn(sentences, scheme, problems.append)
    return sentences, scheme, sorted(problems, key=lambda problem: (problem.file, problem.line))


def read(
    path: str | Path, *, format: str = "auto", word_column: int | None = None, tag_column: int | None = None
) -> list[Sentence]:
    """The sentences of a file, with IOB2 tags where it has tags. Malformed rows raise an error that names them."""
    return read_file(path, format=format, tag_use="optional", word_column=word_column, tag_column=tag_column).require()


def stream(source: Input, how: Guess, tag_use: TagUse = "ignored", report: Report = stop) -> Iterator[Sentence]:
    """Sentences, one at a time, for files larger than memory, with their tags as written unless these are ignored."""
    return FORMATS[how.format].read(Request(source, how.layout, tag_use, report))


def _turn(sentences: list[Sentence], scheme: Scheme, report: Report) -> list[Sentence]:
    """The same sentences with IOB2 tags; a sentence that breaks its scheme is reported and left out."""
    turned = []
    for sentence in sentences:
        bad = violations(sentence.tags, scheme) if sentence.tags is not None else []
        for word, found, expected in bad:
            assert sentence.source is not None
            report(sentence.source.problem(f"{found} at {shorten(sentence.words[word])}", expected, word))
        if not bad:
            if sentence.tags is not None and scheme != "IOB2":
                sentence = replace(sentence, tags=to_iob2(sentence.tags, scheme))
            turned.append(sentence)
    return turned
