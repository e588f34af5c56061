"""Tags and tag schemes. Inside the house every tag is IOB2; other schemes are turned at the border, here."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

OUTSIDE = "O"
Scheme = Literal["IOB1", "IOB2", "BIOES", "BILOU"]

_TAG = re.compile(r"O|[BIESLU]-\S+")
# The letters of the two closed schemes, as IOB2-like roles: begin, inside, end, single
_ROLES = {"BIOES": {"B": "B", "I": "I", "E": "E", "S": "S"}, "BILOU": {"B": "B", "I": "I", "L": "E", "U": "S"}}


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
    if scheme == "IOB1":
        return _foreign(tags, "BI", scheme)
    if scheme == "IOB2":
        previous = ""
        bad = _foreign(tags, "BI", scheme)
        for i, tag in enumerate(tags):
            prefix, type_ = split_tag(tag)
            if prefix == "I" and type_ != previous:
                bad.append((i, f"{tag} with no {type_} before it", f"B-{type_} at the start of an entity (IOB2)"))
            previous = type_
        return sorted(bad)
    return _closed_violations(tags, scheme)


def _foreign(tags: Sequence[str], letters: str, scheme: Scheme) -> list[tuple[int, str, str]]:
    return [
        (i, f"tag {tag}", f"O or one of {' '.join(f'{x}-' for x in letters)} ({scheme})")
        for i, tag in enumerate(tags)
        if tag != OUTSIDE and tag[0] not in letters
    ]


def _closed_violations(tags: Sequence[str], scheme: Scheme) -> list[tuple[int, str, str]]:
    roles = _ROLES[scheme]
    bad = _foreign(tags, "".join(roles), scheme)
    if bad:
        return bad
    end_letter = next(letter for letter, role in roles.items() if role == "E")
    open_type = ""
    for i, tag in enumerate([*tags, OUTSIDE]):
        prefix, type_ = split_tag(tag)
        role = roles.get(prefix, OUTSIDE)
        where = min(i, len(tags) - 1)
        found = f"{tag}" if i < len(tags) else "the end of the sentence"
        if open_type and (role not in "IE" or type_ != open_type):
            bad.append((where, f"{found} inside an open {open_type}", f"I-{open_type} or {end_letter}-{open_type} ({scheme})"))
        elif not open_type and role in ("I", "E"):
            bad.append((where, f"{tag} with no B-{type_} before it", f"an entity that begins with B-{type_} ({scheme})"))
        open_type = type_ if role in ("B", "I") else ""
    return bad


def to_iob2(tags: Sequence[str], scheme: Scheme) -> tuple[str, ...]:
    """The same entities as IOB2 tags; the tags must be valid in their scheme."""
    if scheme == "IOB2":
        return tuple(tags)
    if scheme == "IOB1":
        return tags_of(spans(tags), len(tags))
    back = {letter: "B" if role in "BS" else "I" for letter, role in _ROLES[scheme].items()}
    return tuple(tag if tag == OUTSIDE else back[tag[0]] + tag[1:] for tag in tags)
