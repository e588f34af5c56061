"""Labelled sentences as drawings: words from left to right, broken into lines, each with its label below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sequst.corpus.tags import OUTSIDE
from sequst.experiments.results import Lines
from sequst.extras import needed

LINE, _GAP, _EDGE = 34.0, 7.0, 6.0
"""Of sentences, in points: from line to line, between words, at the edges."""


Text = tuple[float, float, str, Mapping[str, Any], float]
"""Left, top, text, how it looks, and how long a line to draw below it; in points."""


def lay_out(lines: Lines, width: float) -> list[Text]:
    """The texts of sentences with where they come from, on a page of this width in points."""
    texts: list[Text] = []
    top, right = _EDGE + 10, width - _EDGE
    for line in lines:
        told = f"{line['dataset']}, {line['method']}, seed {line['seed']}: {line['kind']}"
        texts.append((_EDGE, top, told, {"fontsize": 9, "color": "#555555", "style": "italic"}, 0.0))
        left, top = _EDGE, top + 20
        for word, label, tag, chosen in zip(line["words"], line["labels"], line["tags"], line["selected"], strict=True):
            look = {"fontsize": 10.5, "weight": "bold" if chosen else "normal", "color": "#000000" if chosen else "#666666"}
            below = label if label != OUTSIDE else ""
            if label != tag:
                below = f"{label} (true: {tag})"
            small = {"fontsize": 7, "color": "#b3261e" if label != tag else "#0b5fa5"}
            wide = text_width(word, look)
            step = max(wide, text_width(below, small) if below else 0.0) + _GAP
            if left + step > right and left > _EDGE:
                left, top = _EDGE, top + LINE
            texts.append((left, top, word, look, wide if label != tag else 0.0))
            if below:
                texts.append((left, top + 12, below, small, 0.0))
            left += step
        top += LINE + 4
    return texts


def text_width(text: str, look: Mapping[str, Any]) -> float:
    """In points."""
    fonts = needed("matplotlib.font_manager", "figures")
    font = fonts.FontProperties(size=look["fontsize"], weight=look.get("weight", "normal"))
    measure = needed("matplotlib.textpath", "figures").TextToPath().get_text_width_height_descent
    return float(measure(text, font, ismath=False)[0])


def draw_texts(drawing: Any, texts: Sequence[Text], width: float, height: float) -> None:
    drawing.set_layout_engine("none")
    panel = drawing.add_axes((0, 0, 1, 1))
    panel.set_axis_off()
    panel.set_xlim(0, width)
    panel.set_ylim(height, 0)
    for left, top, text, look, underlined in texts:
        panel.text(left, top, text, parse_math=False, va="baseline", **look)
        if underlined:
            panel.plot([left, left + underlined], [top + 3, top + 3], color="#b3261e", linewidth=1.4)
