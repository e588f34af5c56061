"""What to know of a corpus before an hour of training: malformed rows, thin types, odd spans, duplicates, overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sequst.corpus.counts import count_types, count_words
from sequst.corpus.formats.jsonl import write_jsonl
from sequst.corpus.formats.read import Reading
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans
from sequst.files import atomic_folder

Level = Literal["error", "warning", "note"]
ROLES = ("test", "dev", "labeled", "unlabeled")
"""From the most protected file to the least: a sentence in two files is dropped from the later one."""

FEW_MENTIONS = 5
LONG_SPAN = 10
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know. Training may start where no finding is an error."""

    level: Level
    kind: str
    message: str


def check(readings: Mapping[str, Reading]) -> list[Finding]:
    """Everything found in the files, by role (`labeled`, `unlabeled`, `dev`, `test`)."""
    findings: list[Finding] = []
    for role, reading in readings.items():
        findings += [Finding("note", "reading", note) for note in reading.notes]
        findings += [Finding("error", "malformed", str(problem)) for problem in reading.problems]
        findings += _check_file(role, reading)
    if "labeled" in readings:
        findings += _check_types(readings)
    findings += _check_overlap({role: reading.sentences for role, reading in readings.items()})
    return findings


def _check_file(role: str, reading: Reading) -> Iterator[Finding]:
    name, sentences = reading.name, reading.sentences
    counts = count_types(sentences)
    entities = sum(counts.mentions.values())
    tagged = f", {entities:,} entities of {len(counts.mentions)} types" if entities else ""
    yield Finding("note", "size", f"{name} ({role}): {len(sentences):,} sentences, {count_words(sentences):,} words{tagged}")
    if not sentences:
        if not reading.problems:
            yield Finding("error", "empty", f"{name} is empty: no sentence in it")
        return
    if role == "labeled":
        if not entities:
            yield Finding("error", "no-entity", f"{name}: no entity at all; there is nothing to learn from tags that are all O")
        if len(sentences) == 1:
            yield Finding("warning", "size", f"{name}: a single sentence; expect little of a tagger trained on it")
        for type_, mentions in sorted(counts.mentions.items(), key=lambda item: item[1]):
            if mentions < FEW_MENTIONS:
                yield Finding("warning", "few", f"{name}: type {type_} has {mentions} example{'s' * (mentions != 1)} only")
    yield from _check_spans(reading)
    yield from _check_duplicates(reading)


def _check_spans(reading: Reading) -> Iterator[Finding]:
    """Entities that are often mistakes: very long ones and ones without a letter or digit."""
    long: list[str] = []
    empty: list[str] = []
    for sentence in reading.sentences:
        for span in spans(sentence.tags or ()):
            text = sentence.excerpt(span.start, span.end)
            where = f"{sentence.source}: {span.type} {text!r}"
            if span.end - span.start > LONG_SPAN:
                long.append(where)
            if not any(character.isalnum() for character in text):
                empty.append(where)
    if long:
        yield Finding("warning", "span", f"{len(long)} entities longer than {LONG_SPAN} words, {_examples(long)}")
    if empty:
        yield Finding("warning", "span", f"{len(empty)} entities without a letter or digit, {_examples(empty)}")


def _check_duplicates(reading: Reading) -> Iterator[Finding]:
    groups: dict[tuple[str, ...], list[Sentence]] = defaultdict(list)
    for sentence in reading.sentences:
        groups[sentence.words].append(sentence)
    repeated = sum(len(group) - 1 for group in groups.values())
    if repeated:
        yield Finding("note", "duplicates", f"{reading.name}: {repeated} of {len(reading.sentences)} sentences repeat another")
    conflicts = [
        f"{group[0].source} and {other.source}"
        for group in groups.values()
        for other in group[1:]
        if other.tags != group[0].tags
    ]
    if conflicts:
        message = f"{reading.name}: {len(conflicts)} repeated sentences are tagged differently, {_examples(conflicts)}"
        yield Finding("warning", "duplicates", message)


def _check_types(readings: Mapping[str, Reading]) -> Iterator[Finding]:
    known = count_types(readings["labeled"].sentences).mentions
    for role in ("dev", "test", "unlabeled"):
        if role in readings:
            found = count_types(readings[role].sentences).mentions
            for type_ in sorted(set(found) - set(known)):
                message = (
                    f"{readings[role].name}: type {type_} ({found[type_]} entities) is never labelled; it cannot be learnt"
                )
                yield Finding("warning", "unknown-type", message)


def _check_overlap(files: Mapping[str, list[Sentence]]) -> Iterator[Finding]:
    _, dropped = drop_overlap(files)
    for (role, other), count in dropped.items():
        message = f"{count} sentences of {role} are in {other} too; --drop-overlap leaves them out of {role}"
        # a pool may hold the sentences that are scored later without their tags; labels that leak are another matter
        yield Finding("note" if role == "unlabeled" else "warning", "overlap", message)


def drop_overlap(
    files: Mapping[str, list[Sentence]],
) -> tuple[dict[str, list[Sentence]], dict[tuple[str, str], int]]:
    """(the files without sentences that a more protected file has, how many went from (role) because of (role))."""
    seen: dict[tuple[str, ...], str] = {}
    kept: dict[str, list[Sentence]] = {}
    dropped: dict[tuple[str, str], int] = defaultdict(int)
    for role in ROLES:
        if role not in files:
            continue
        kept[role] = []
        for sentence in files[role]:
            other = seen.get(sentence.words)
            if other is None:
                kept[role].append(sentence)
            else:
                dropped[role, other] += 1
        for sentence in files[role]:
            seen.setdefault(sentence.words, role)
    return kept, dict(dropped)


def shared(sentences: Iterable[Sentence], others: Iterable[Sentence]) -> int:
    """How many of the sentences have the words of one of the others."""
    words = {sentence.words for sentence in others}
    return sum(sentence.words in words for sentence in sentences)


def _examples(places: list[str]) -> str:
    shown = "; ".join(places[:EXAMPLES])
    return f"e.g. {shown}" if len(places) > EXAMPLES else shown


def without_overlap(readings: Mapping[str, Reading]) -> tuple[dict[str, Reading], list[Finding]]:
    """The readings without the sentences that a more protected file has, and what went."""
    kept, dropped = drop_overlap({role: reading.sentences for role, reading in readings.items()})
    findings = [Finding("note", "overlap", message) for message in overlap_messages(dropped)]
    return {role: replace(reading, sentences=kept[role]) for role, reading in readings.items()}, findings


def overlap_messages(dropped: Mapping[tuple[str, str], int]) -> list[str]:
    return [f"{count} sentences of {role} left out: {other} has them too" for (role, other), count in dropped.items()]


def write_readings(readings: Mapping[str, Reading], folder: Path) -> None:
    """Write ROLE.jsonl for every file, all or none."""
    with atomic_folder(folder) as temporary:
        for role, reading in readings.items():
            write_jsonl(temporary / f"{role}.jsonl", reading.sentences)
