"""Formats that published corpora come in and nobody else writes: read as they are, every malformed place reported.

Each reader gives sentences with IOB2 tags and the places that could not be read; a sentence with such a place is left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from sequst.corpus.formats.columns import Row, blocks
from sequst.corpus.formats.records import each, words_with_tags
from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.tags import OUTSIDE, Span, is_tag, tags_of, violations
from sequst.errors import Malformed, Problem, UsageError, said, shorten
from sequst.inputs import Input, read_text, require_regular_files


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
    columns = [[line for _, line in Input(path).lines(problems.append, whole=True)] for path in files]
    longest = max(map(len, columns))
    for path, lines in zip(files, columns, strict=True):
        if len(lines) != longest:
            expected = f"{longest} lines, as the other files have"
            problems.append(Problem(str(path), len(lines) + 1, "the end of the file", expected))

    def sentence(lines: tuple[str, ...], number: int, place: Source) -> Sentence:
        prefix = f"{lines[2].strip()}." if intents is not None else ""
        given = [tag if tag == OUTSIDE else f"{tag[:2]}{prefix}{tag[2:]}" for tag in lines[1].split()]
        found = words_with_tags(lines[0].split(), given, number, Source(str(words), number))
        for word, wrong, expected in violations(given, "IOB2"):
            raise Malformed(f"{wrong} at {shorten(found.words[word])}", expected)
        return found

    rows = ((Source(str(tags), number), lines) for number, lines in enumerate(zip(*columns, strict=False), 1))
    sentences = [found for _, found in each(rows, sentence, problems.append) if found.words]
    return Read(sentences, sorted(problems, key=lambda problem: problem.line))


WORD, NAMES = 3, 10
"""Columns of the files of CoNLL-2012 that hold the word and the named entities."""


def read_gold_conll(folder: Path) -> Read:
    """All `*.gold_conll` files below a folder, in the order of their paths: columns with bracketed entities (OntoNotes)."""
    sentences: list[Sentence] = []
    problems: list[Problem] = []
    require_regular_files(folder)
    for path in sorted(folder.rglob("*gold_conll")):
        lines = Input(path).lines(problems.append, whole=True)
        for rows in blocks((number, [] if line.startswith("#") else line.split()) for number, line in lines):
            sentence = _bracketed(str(path), rows, problems, len(sentences) + 1)
            if sentence is not None:
                sentences.append(sentence)
    return Read(sentences, problems)


def _bracketed(name: str, rows: list[Row], problems: list[Problem], id_: int) -> Sentence | None:
    """Tags from (PERSON*, *, *) and (GPE); None where the brackets do not close."""
    spans: list[Span] = []
    place = Source(name, rows[0][0], line_per_word=True)
    open_, begin = "", 0
    for i, (_, fields) in enumerate(rows):
        mark = fields[NAMES] if len(fields) > NAMES + 1 else ""
        begins, ends = mark.startswith("("), mark.endswith(")")
        if not mark or (begins and open_) or (ends and not begins and not open_):
            problems.append(place.problem(shorten(mark or " ".join(fields)), "an entity bracket that fits, in column 11", i))
            return None
        if begins:
            open_, begin = mark.strip("(*)"), i
        if ends:
            spans.append(Span(open_, begin, i + 1))
            open_ = ""
    if open_:
        problems.append(place.problem(f"the end of a sentence in {open_}", "a bracket that closes it", len(rows) - 1))
        return None
    return Sentence(tuple(fields[WORD] for _, fields in rows), tags_of(spans, len(rows)), id_, place)


def read_multiwoz(data: Path, part: str) -> Read:
    """User turns of MultiWOZ 2.1: `data.json`, and beside it the lists of dev and test dialogues (valListFile, testListFile).

    The spans of a turn are those of its dialogue acts (`span_info`: act, slot, value, first and last word); of two that
    overlap the first counts.
    """
    lists = {name: _dialogues(data.parent, f"{file}ListFile") for name, file in (("dev", "val"), ("test", "test"))}
    read = Read([], [])
    try:
        for name, dialogue in json.loads(read_text(data)).items():
            if part == next((other for other, names in lists.items() if name in names), "train"):
                for turn in dialogue["log"][::2]:  # the user begins
                    _read_turn(turn, name, str(data), read)
    except (ValueError, RecursionError) as error:
        read.problems.append(Problem(str(data), 1, f"no valid JSON ({error})", "MultiWOZ 2.1's data.json"))
    except (AttributeError, KeyError, TypeError) as error:
        read.problems.append(Problem(str(data), 1, f"other JSON ({said(error)})", "MultiWOZ 2.1's data.json"))
    return read


def _read_turn(turn: Any, name: str, file: str, read: Read) -> None:
    """Append the sentence, or the problem, of a turn of this dialogue."""
    words = tuple(turn["text"].split())
    spans = _turn_spans(turn.get("span_info") or [], len(words))
    if spans is None:
        read.problems.append(
            Problem(file, 1, f"a span that does not fit its turn in {shorten(name)}", "a slot, and words of the turn")
        )
    elif words:
        read.sentences.append(Sentence(words, tags_of(spans, len(words)), len(read.sentences) + 1, Source(file, 1)))


def _dialogues(folder: Path, stem: str) -> set[str]:
    found = [path for path in (folder / f"{stem}.txt", folder / f"{stem}.json", folder / stem) if path.is_file()]
    if not found:
        raise UsageError(f"{folder}: no {stem}.txt beside data.json; it lists dialogues that are not for training")
    return {line.strip() for line in read_text(found[0]).splitlines() if line.strip()}


def _turn_spans(given: list[Any], length: int) -> list[Span] | None:
    spans: list[Span] = []
    taken: set[int] = set()
    for _, slot, _, first, last in given:
        if not 0 <= first <= last < length or not is_tag(f"B-{slot}"):
            return None
        if taken.isdisjoint(range(first, last + 1)):
            taken.update(range(first, last + 1))
            spans.append(Span(slot, first, last + 1))
    return spans
