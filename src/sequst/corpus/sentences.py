"""The rule that cuts a long line of running text into sentences.

A sentence ends at . ! ? or … and closing quotes or brackets after it, if white space follows and then a capital, a digit or an
opening quote; at the full-width marks it ends at once. The point of an initial (J. Brown) or a common abbreviation (Dr. Brown)
ends nothing. A rule errs now and then; a cut in the wrong place costs little when sentences are labelled one by one.
"""

from __future__ import annotations

import re

_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s+[\"'“‘«(\[¿¡]*(?:[^\W_a-zß-öø-ÿ]|\d))|[。！？]+[”’」』）]*")
_ABBREVIATIONS = (
    "approx bzw ca capt cf co col corp dr eq etc fig gen hon inc jr lt ltd mr mrs ms no nr prof rev sgt sr st usw vs"
)
_NO_END = re.compile(
    rf"(?:^|[\s(\"'“‘«])(?:[^\W\d_]|{_ABBREVIATIONS.replace(' ', '|')}|(?:[^\W\d_]\.)+[^\W\d_])\.$", re.IGNORECASE
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space between them."""
    found, start = [], 0
    for end in (match.end() for match in _END.finditer(text)):
        if not _NO_END.search(text[start:end]):
            found.append(text[start:end].strip())
            start = end
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]
