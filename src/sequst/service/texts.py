"""Texts and words of requests as sentences."""

from __future__ import annotations

from collections.abc import Sequence

from sequst.corpus.sentence import Sentence, require_short, require_text, sentence_from_text
from sequst.errors import Malformed
from sequst.service.schemas import MOST_CHARACTERS, MOST_IN_TEXT


def checked(text: str | Sequence[str], id_: int | str | None = None, most_words: int = MOST_IN_TEXT) -> Sentence:
    """The sentence of a text or of words, if it can be tagged in a reasonable time."""
    characters = len(text) if isinstance(text, str) else sum(map(len, text))
    if characters > MOST_CHARACTERS:
        raise Malformed(f"{characters:,} characters", f"at most {MOST_CHARACTERS:,}")
    for part in [text] if isinstance(text, str) else text:
        require_text(part)
    sentence = sentence_from_text(text, id_) if isinstance(text, str) else Sentence(tuple(text), None, id_)
    require_short(sentence.words)
    if len(sentence) > most_words:
        raise Malformed(f"{len(sentence):,} words", f"at most {most_words:,} in a text; cut it into several")
    return sentence
