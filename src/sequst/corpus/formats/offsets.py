"""What offsets count: code points, as Python does, or the UTF-16 code units of a browser, of which an emoji has two.

What is known of the tools: Label Studio counted UTF-16 units until 2022 and counts code points since; doccano counts UTF-16
units in the browser unless a project is set to graphemes, and passes on the code points of what was uploaded. Both kinds of
file are about, and none says which it is, so the offsets themselves decide. We write code points.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from sequst.corpus.formats.records import Malformed, Remark
from sequst.corpus.words import split_words

Counted = Literal["code points", "UTF-16 code units"]
_LAST_OF_ONE_UNIT = "\uffff"


class Claim(NamedTuple):
    """Offsets that a file gives for a text, and what it says stands there, if it does."""

    text: str
    start: int
    end: int
    covered: str | None = None


def counted_in(name: str, claims: Iterable[Claim], remark: Remark, as_who: str = "") -> Counted:
    """UTF-16 code units where they explain more of the offsets that differ than code points do. It is told where they do, and
    where nothing tells."""
    lead, differing = 0, 0
    for claim in claims:
        if not needs_two(claim.text):
            continue
        places = utf16_places(claim.text)
        turned = places.get(claim.start), places.get(claim.end)
        if turned != (claim.start, claim.end):
            differing += 1
            lead += _explains(claim, *turned) - _explains(claim, claim.start, claim.end)
    if lead > 0:
        remark(f"{name}: offsets count UTF-16 code units{as_who}")
        return "UTF-16 code units"
    if differing and lead == 0:
        remark(
            f"{name}: offsets may count code points or UTF-16 code units, and nothing tells which; they are read as code points"
        )
    return "code points"


def needs_two(text: str) -> bool:
    """Whether some character has two UTF-16 code units."""
    return not text.isascii() and max(text, default="") > _LAST_OF_ONE_UNIT


def utf16_places(text: str) -> dict[int, int]:
    """The code point at every UTF-16 offset; the middle of a character has none."""
    places, at = {}, 0
    for place, character in enumerate(text):
        places[at] = place
        at += 2 if character > _LAST_OF_ONE_UNIT else 1
    places[at] = len(text)
    return places


def to_code_points(text: str, start: int, end: int) -> tuple[int, int]:
    """Offsets in UTF-16 code units as code points."""
    if not needs_two(text):
        return start, end
    places = utf16_places(text)
    if start not in places or end not in places:
        past = max(start, end) > max(places)
        found = f"span {start} to {end}" + ("" if past else ", which cuts a character")
        raise Malformed(found, f"UTF-16 offsets from 0 to {max(places)}, of whole characters")
    return places[start], places[end]


def _explains(claim: Claim, start: int | None, end: int | None) -> bool:
    """Whether the text has between these places what the file says, or else whole words."""
    if start is None or end is None or not 0 <= start < end <= len(claim.text):
        return False
    if claim.covered is not None:
        return claim.text[start:end] == claim.covered
    words = split_words(claim.text)
    return any(begin == start for begin, _ in words) and any(stop == end for _, stop in words)
