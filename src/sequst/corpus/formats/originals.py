"""Formats that published corpora come in and nobody else writes: read as they are, every malformed place reported.

Each reader gives sentences with IOB2 tags and the places that could not be read; a sentence with such a place is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sequst.corpus.formats.columns import Row, blocks
from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.tags import OUTSIDE, Span, is_tag, tags_of, violations
from sequst.errors import Problem, UsageError, shorten
from sequst.inputs import Input


class Read(NamedTuple):
    """Sentences of a file, and every place of it that is malformed."""

    sentences: list[Sentence]
    problems: list[Problem]


def read_parallel(words: Path, tags: Path, intents: Path | None = None) -> Read:
    """A sentence a line, its words in one file and as many tags in another (SNIPS as slot-filling work has it).

    With a third file, the intent of every sentence, an entity type is the intent and the slot: B-PlayMusic.artist.
    """
    problems: list[Problem] = []
    files = [words, tags, *([intents] if intents is not None else [])]
    columns = [[line for _, line in Input(path).lines(problems.append)] for path in files]
    longest = max(map(len, columns))
    for path, lines in zip(files, columns, strict=True):
        if len(lines) != longest:
            problems.append(
                Problem(str(path), len(lines) + 1, "the end of the file", f"{longest} lines, as the other files have")
            )
    sentences = []
    for number, (text, marks, *intent) in enumerate(zip(*columns, strict=False), 1):
        found, given = text.split(), marks.split()
        problem = _wrong_tags(found, given)
        if problem is not None:
            problems.append(Problem(str(tags), number, *problem))
        elif found:
            prefix = f"{intent[0].strip()}." if intent else ""
            typed = tuple(tag if tag == OUTSIDE else f"{tag[:2]}{prefix}{tag[2:]}" for tag in given)
            sentences.append(Sentence(tuple(found), typed, number, Source(str(words), number)))
    return Read(sentences, sorted(problems, key=lambda problem: problem.line))


def _wrong_tags(words: Sequence[str], tags: Sequence[str]) -> tuple[str, str] | None:
    """(what was found, what was expected) where tags are not as many as words, or not IOB2."""
    if len(words) != len(tags):
        return f"{len(tags)} tags for {len(words)} words", "a tag for every word"
    strange = [tag for tag in tags if tag != OUTSIDE and not is_tag(tag)]
    if strange:
        return shorten(strange[0]), "O, B-TYPE or I-TYPE"
    bad = violations(tuple(tags), "IOB2")
    return (f"{bad[0][1]} at {words[bad[0][0]]!r}", bad[0][2]) if bad else None


WORD, NAMES = 3, 10
"""Columns of the files of CoNLL-2012 that hold the word and the named entities."""


def read_gold_conll(folder: Path) -> Read:
    """All `*.gold_conll` files below a folder, in the order of their paths: columns with bracketed entities (OntoNotes)."""
    sentences: list[Sentence] = []
    problems: list[Problem] = []
    for path in sorted(folder.rglob("*gold_conll")):
        lines = Input(path).lines(problems.append)
        for rows in blocks((number, [] if line.startswith("#") else line.split()) for number, line in lines):
            sentence = _bracketed(str(path), rows, problems, len(sentences) + 1)
            if sentence is not None:
                sentences.append(sentence)
    return Read(sentences, problems)


def _bracketed(name: str, rows: list[Row], problems: list[Problem], id_: int) -> Sentence | None:
    """Tags from (PERSON*, *, *) and (GPE); None where the brackets do not close."""
    spans: list[Span] = []
    open_: tuple[str, int] | None = None
    for place, (number, fields) in enumerate(rows):
        mark = fields[NAMES] if len(fields) > NAMES + 1 else ""
        begins, ends = mark.startswith("("), mark.endswith(")")
        if not mark or (begins and open_ is not None) or (ends and not begins and open_ is None):
            problems.append(
                Problem(name, number, shorten(mark or " ".join(fields)), "an entity bracket that fits, in column 11")
            )
            return None
        if begins:
            open_ = mark.strip("(*)"), place
        if ends and open_ is not None:
            spans.append(Span(open_[0], open_[1], place + 1))
            open_ = None
    if open_ is not None:
        problems.append(Problem(name, rows[-1][0], f"the end of a sentence in {open_[0]}", "a bracket that closes it"))
        return None
    words = tuple(fields[WORD] for _, fields in rows)
    return Sentence(words, tags_of(spans, len(words)), id_, Source(name, rows[0][0], line_per_word=True))


def read_multiwoz(data: Path, part: str) -> Read:
    """User turns of MultiWOZ 2.1: `data.json`, and beside it the lists of dev and test dialogues (valListFile, testListFile).

    The spans of a turn are those of its dialogue acts (`span_info`: act, slot, value, first and last word); of two that
    overlap the first counts.
    """
    lists = {name: _dialogues(data.parent, f"{file}ListFile") for name, file in (("dev", "val"), ("test", "test"))}
    try:
        dialogues = json.loads(data.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        return Read([], [Problem(str(data), 1, f"no valid JSON ({error})", "MultiWOZ 2.1's data.json")])
    sentences: list[Sentence] = []
    problems: list[Problem] = []
    for name, dialogue in dialogues.items():
        if (name in lists[part]) if part in lists else not any(name in names for names in lists.values()):
            for turn in dialogue["log"][::2]:  # the user begins
                words = turn["text"].split()
                spans = _turn_spans(turn.get("span_info") or [], len(words))
                if spans is None:
                    problems.append(Problem(str(data), 1, f"a span outside its turn in {name}", "words of the turn"))
                elif words:
                    sentences.append(
                        Sentence(tuple(words), tags_of(spans, len(words)), len(sentences) + 1, Source(str(data), 1))
                    )
    return Read(sentences, problems)


def _dialogues(folder: Path, stem: str) -> set[str]:
    found = [path for path in (folder / f"{stem}.txt", folder / f"{stem}.json", folder / stem) if path.is_file()]
    if not found:
        raise UsageError(f"{folder}: no {stem}.txt beside data.json; it lists dialogues that are not for training")
    return {line.strip() for line in found[0].read_text(encoding="utf-8").splitlines() if line.strip()}


def _turn_spans(given: list[Any], length: int) -> list[Span] | None:
    spans: list[Span] = []
    taken: set[int] = set()
    for _, slot, _, first, last in given:
        if not 0 <= first <= last < length:
            return None
        if taken.isdisjoint(range(first, last + 1)):
            taken.update(range(first, last + 1))
            spans.append(Span(slot, first, last + 1))
    return spans
