"""The model card that is saved beside a tagger."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_OWN = (
    "labels", "sequst", "settings", "history", "test", "calibration", "entity_calibration",
    "valid", "transitions", "capitals", "command",
)  # fmt: skip
"""Facts that are shown elsewhere in the card, or not at all."""


def model_card(types: Sequence[str], facts: Mapping[str, Any]) -> str:
    """A README for the model's folder: types, training, scores, use."""
    import jinja2  # not needed to load a tagger

    others = [(name.replace("_", " "), _cell(value)) for name, value in facts.items() if name not in _OWN and value is not None]
    told = {
        "types": list(map(_plain, types)),
        "others": others,
        "scores": _scores(facts.get("test")),
        "rounds": _rounds(facts.get("history")),
        "command": command if (command := str(facts.get("command") or "")).isprintable() else "",
    }
    loader = jinja2.PackageLoader("sequst.tagger", ".")
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.get_template("model_card.md.j2").render({**facts, **told})


def _scores(test: Mapping[str, Any] | None) -> list[list[str]]:
    """Of every type, and of all."""
    found = {**test["types"], "all": test} if test else {}
    return [[_plain(name), *(f"{score[key]:.1f}" for key in ("precision", "recall", "f1"))] for name, score in found.items()]


def _rounds(history: Sequence[Mapping[str, Any]] | None) -> list[list[str]]:
    """Of self-training; a single line is the first teacher."""
    if not history or len(history) < 2:
        return []
    names = ("student_f1", "teacher_f1", "selected")
    return [
        [str(line["round"]), *("" if line.get(name) is None else f"{line[name]:.1f}" for name in names)] for line in history
    ]


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items())
    return f"{value:.2f}" if isinstance(value, float) else _plain(str(value))


def _plain(text: str) -> str:
    """The text without control characters, and with the characters of Markdown and HTML escaped."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return re.sub(r"[\\`|<>\[\]&]", lambda found: f"&#{ord(found[0])};", printable)
