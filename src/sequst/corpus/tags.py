"""Tags and tag schemes. Tags are IOB2 internally; other schemes are converted here."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

OUTSIDE = "O"
Scheme = Literal["IOB1", "IOB2", "BIOES", "BILOU"]

_TAG = re.compile(r"O|[BIESLU]-\S+")
# The letters of each scheme and what they stand for: begin, inside, end, single
_ROLES: dict[Scheme, dict[str, str]] = {
    "IOB1": {"B": "B", "I": "I"},
    "IOB2": {"B": "B", "I": "I"},
    "BIOES": {"B": "B", "I": "I", "E": "E", "S": "S"},
    "BILOU": {"B": "B", "I": "I", "L": "E", "U": "S"},
}


class Span(NamedTuple):
    """An entity: words start to end, end exclusive."""

    type: str
    start: int
    end: int


@functools.lru_cache(maxsize=1024)
def is_tag(text: str) -> bool:
    """O, or one of B I E S L U, a hyphen and a type."""
    return _TAG.fullmatch(text) is not None


def split_tag(tag: str) -> tuple[str, str]:
    """('B', 'PER') for B-PER; ('O', '') for O."""
    return (OUTSIDE, "") if tag == OUTSIDE else (tag[0], tag[2:])


def spans(tags: Sequence[str]) -> list[Span]:
    """The entities of IOB2 tags, read leniently: an I- that continues nothing begins an entity."""
    found: list[Span] = []
    start, kind = 0, ""
    for i, tag in enumerate([*tags, OUTSIDE]):
        prefix, type_ = split_tag(tag)
        if kind and (prefix != "I" or type_ != kind):
            found.append(Span(kind, start, i))
            kind = ""
        if prefix != OUTSIDE and not kind:
            start, kind = i, type_
    return found


def tags_of(spans_: Iterable[Span], length: int) -> tuple[str, ...]:
    """IOB2 tags of a sentence of `length` words with these entities, which must not overlap."""
    tags = [OUTSIDE] * length
    for type_, start, end in spans_:
        tags[start] = f"B-{type_}"
        tags[start + 1 : end] = [f"I-{type_}"] * (end - start - 1)
    return tuple(tags)


def types_of(sequences: Iterable[Sequence[str]]) -> list[str]:
    """The entity types that occur, sorted."""
    return sorted({tag[2:] for tags in sequences for tag in tags if tag != OUTSIDE})


def detect_scheme(sequences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme that a file's tags are written in.

    E- and S- tell BIOES, L- and U- tell BILOU. Otherwise it is IOB1 where some entity begins with I- and no B- stands where
    IOB1 would not put one (IOB1 writes B- only between two touching entities of one type), and IOB2 in all other cases.
    """
    letters: set[str] = set()
    inside_begins = needless_begin = False
    for tags in sequences:
        previous = ""
        for tag in tags:
            prefix, type_ = split_tag(tag)
            letters.add(prefix)
            inside_begins |= prefix == "I" and type_ != previous
            needless_begin |= prefix == "B" and type_ != previous
            previous = type_
    if letters & {"L", "U"}:
        return "BILOU"
    if letters & {"E", "S"}:
        return "BIOES"
    return "IOB1" if inside_begins and not needless_begin else "IOB2"


def violations(tags: Sequence[str], scheme: Scheme) -> list[tuple[int, str, str]]:
    """(word, found, expected) for every tag that its scheme does not allow where it stands."""
    roles = _ROLES[scheme]
    letters = f"O or one of {' '.join(f'{letter}-' for letter in roles)} ({scheme})"
    foreign = [(i, f"tag {tag}", letters) for i, tag in enumerate(tags) if tag != OUTSIDE and tag[0] not in roles]
    return foreign if foreign or scheme == "IOB1" else _broken(tags, scheme)


def _broken(tags: Sequence[str], scheme: Scheme) -> list[tuple[int, str, str]]:
    """The tags that cannot follow what is before them."""
    bad: list[tuple[int, str, str]] = []
    end = {"BIOES": "E", "BILOU": "L"}.get(scheme)
    open_type = ""
    for i, tag in enumerate([*tags, OUTSIDE]):
        prefix, type_ = split_tag(tag)
        role = _ROLES[scheme].get(prefix, OUTSIDE)
        continues = role in "IE" and type_ == open_type
        if end is not None and open_type and not continues:
            found = tag if i < len(tags) else "the end of the sentence"
            expected = f"I-{open_type} or {end}-{open_type} ({scheme})"
            bad.append((min(i, len(tags) - 1), f"{found} inside an open {open_type}", expected))
        elif role in "IE" and not continues:
            bad.append((i, f"{tag} with no {type_} before it", f"B-{type_} at the start of an entity ({scheme})"))
        open_type = type_ if role in "BI" else ""
    return bad


def to_iob2(tags: Sequence[str], scheme: Scheme) -> tuple[str, ...]:
    """The same entities as IOB2 tags; the tags must be valid in their scheme."""
    if scheme == "IOB2":
        return tuple(tags)
    if scheme == "IOB1":
        return tags_of(spans(tags), len(tags))
    back = {letter: "B" if role in "BS" else "I" for letter, role in _ROLES[scheme].items()}
    return tuple(tag if tag == OUTSIDE else back[tag[0]] + tag[1:] for tag in tags)
