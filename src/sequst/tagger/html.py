"""Predictions as a notebook shows them: entities inline, the surer the stronger their colour; those left out are dashed."""

from __future__ import annotations

import hashlib
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sequst.tagger.prediction import Prediction

_MARK = (
    '<mark style="background:hsla({hue},70%,60%,{strength:.2f});color:inherit;padding:.1em .3em;border-radius:.3em" '
    'title="{type} {confidence:.0%}">{text} <small style="opacity:.75">{type} {confidence:.0%}</small></mark>'
)


_LEFT_OUT = (
    '<span style="border-bottom:1px dashed hsl({hue},70%,45%)" title="{type} {confidence:.0%}: left out">{text} '
    '<small style="opacity:.55">{type}? {confidence:.0%}</small></span>'
)


def html(prediction: Prediction) -> str:
    """The sentence with its entities marked; text comes from anywhere, so all of it is escaped."""
    sentence, done = prediction.sentence, 0
    parts: list[str] = []
    for entity in sorted([*prediction.entities, *prediction.left_out], key=lambda each: each.start):
        parts.append(escape(sentence.excerpt(done, entity.start)) if entity.start > done else "")
        told = {"type": escape(entity.type), "text": escape(entity.text), "confidence": entity.confidence}
        way = _LEFT_OUT if entity in prediction.left_out else _MARK
        parts.append(way.format(hue=_hue(entity.type), strength=0.12 + 0.68 * entity.confidence, **told))
        done = entity.end
    parts.append(escape(sentence.excerpt(done, len(sentence.words))) if done < len(sentence.words) else "")
    return f'<p style="line-height:1.9">{" ".join(part for part in parts if part)}</p>'


def _hue(type_: str) -> int:
    """The colour of a type; the same everywhere."""
    return int.from_bytes(hashlib.sha256(type_.encode()).digest()[:2]) * 360 // 65536
