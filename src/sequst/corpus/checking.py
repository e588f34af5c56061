"""Check a corpus before training: malformed rows, rare types, odd spans, duplicates, overlap."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
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
"""Roles in order of protection: a sentence in two files is dropped from the later one."""

FEW_MENTIONS = 5
LONG_SPAN = 10
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. Training may start if none is an error."""

    level: Level
    kind: str
    message: str


def check(readings: Mapping[str, Reading]) -> list[Finding]:
    """All findings in the files, by role (`labeled`, `unlabeled`, `dev`, `test`)."""
    findings: list[Finding] = []
    for role, reading in readings.items():
        findings += [Finding("note", "reading", note) for note in reading.notes]
        findings += [Finding("error", "malformed", str(problem)) for problem in reading.problems]
        findings += _check_size(role, reading)
        if role == "labeled" and reading.sentences:
            findings += _check_mentions(reading)
        findings += _check_spans(reading)
        findings += _check_duplicates(reading)
    if "labeled" in readings:
        findings += _check_types(readings)
    findings += _check_overlap(readings)
    return findings


def _check_size(role: str, reading: Reading) -> Iterator[Finding]:
    name, sentences = reading.name, reading.sentences
    mentions = count_types(sentences).mentions
    tagged = f", {mentions.total():,} entities of {len(mentions)} types" if mentions else ""
    marked = sum(sentence.judging for sentence in sentences)
    told = f", {marked:,} sentences marked for judging" if marked else ""
    sizes = f"{len(sentences):,} sentences, {count_words(sentences):,} words{tagged}{told}"
    yield Finding("note", "size", f"{name} ({role}): {sizes}")
    if not sentences and not reading.problems:
        yield Finding("error", "empty", f"{name} is empty: no sentence in it")


def _check_mentions(reading: Reading) -> Iterator[Finding]:
    """Findings on the number of entities."""
    name, mentions = reading.name, count_types(reading.sentences).mentions
    if not mentions:
        yield Finding("error", "no-entity", f"{name}: no entity: every tag is O")
    if len(reading.sentences) == 1:
        yield Finding("warning", "size", f"{name}: a single sentence; expect little of a tagger trained on it")
    for type_, count in sorted(mentions.items(), key=lambda item: item[1]):
        if count < FEW_MENTIONS:
            yield Finding("warning", "few", f"{name}: type {type_} has {count} example{'s' * (count != 1)} only")


def _check_spans(reading: Reading) -> Iterator[Finding]:
    """Findings on entities that are often mistakes: very long ones, and ones without a letter or digit."""
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
    for what, places in ((f"longer than {LONG_SPAN} words", long), ("without a letter or digit", empty)):
        if places:
            yield Finding("warning", "span", f"{len(places)} entities {what}, {_examples(places)}")


def _check_duplicates(reading: Reading) -> Iterator[Finding]:
    groups: dict[tuple[str, ...], list[Sentence]] = defaultdict(list)
    for sentence in reading.sentences:
        groups[sentence.words].append(sentence)
    repeated = len(reading.sentences) - len(groups)
    if repeated:
        yield Finding("note", "duplicates", f"{reading.name}: {repeated} of {len(reading.sentences)} sentences repeat another")
    conflicts = [
        f"{first.source} and {other.source}"
        for first, *others in groups.values()
        for other in others
        if other.tags != first.tags
    ]
    if conflicts:
        message = f"{reading.name}: {len(conflicts)} repeated sentences are tagged differently, {_examples(conflicts)}"
        yield Finding("warning", "duplicates", message)


def _examples(places: list[str]) -> str:
    shown = "; ".join(places[:EXAMPLES])
    return f"e.g. {shown}" if len(places) > EXAMPLES else shown


def _check_types(readings: Mapping[str, Reading]) -> Iterator[Finding]:
    known = count_types(readings["labeled"].sentences).mentions
    for role in ("dev", "test", "unlabeled"):
        found = count_types(readings[role].sentences).mentions if role in readings else {}
        for type_ in sorted(set(found) - set(known)):
            message = f"type {type_} ({found[type_]} entities) is never labelled; it cannot be learnt"
            yield Finding("warning", "unknown-type", f"{readings[role].name}: {message}")


def _check_overlap(readings: Mapping[str, Reading]) -> Iterator[Finding]:
    _, dropped = drop_overlap({role: reading.sentences for role, reading in readings.items()})
    for (role, other), count in dropped.items():
        message = f"{count} sentences of {role} are in {other} too; check --drop-overlap --output DIR leaves them out of {role}"
        # a pool may hold the sentences that are scored later without their tags; labels that leak are another matter
        yield Finding("note" if role == "unlabeled" else "warning", "overlap", message)


def drop_overlap(files: Mapping[str, list[Sentence]]) -> tuple[dict[str, list[Sentence]], Counter[tuple[str, str]]]:
    """(the files without sentences that a more protected file has, how many went from (role) because of (role))."""
    seen: dict[tuple[str, ...], str] = {}
    kept: dict[str, list[Sentence]] = {}
    dropped: Counter[tuple[str, str]] = Counter()
    for role in (role for role in ROLES if role in files):
        kept[role] = [sentence for sentence in files[role] if sentence.words not in seen]
        for sentence in files[role]:
            owner = seen.setdefault(sentence.words, role)
            if owner != role:
                dropped[role, owner] += 1
    return kept, dropped


def overlap_messages(dropped: Mapping[tuple[str, str], int]) -> list[str]:
    return [f"{count} sentences of {role} left out: {other} has them too" for (role, other), count in dropped.items()]


def without_overlap(readings: Mapping[str, Reading]) -> tuple[dict[str, Reading], list[Finding]]:
    """The readings without the sentences that a more protected file has, and what went."""
    kept, dropped = drop_overlap({role: reading.sentences for role, reading in readings.items()})
    findings = [Finding("note", "overlap", message) for message in overlap_messages(dropped)]
    return {role: replace(reading, sentences=kept[role]) for role, reading in readings.items()}, findings


def write_readings(readings: Mapping[str, Reading], folder: Path) -> None:
    """Write ROLE.jsonl for every file, or none."""
    with atomic_folder(folder) as temporary:
        for role, reading in readings.items():
            write_jsonl(temporary / f"{role}.jsonl", reading.sentences)
