"""Progress in a notebook: one line of HTML that changes in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from html import escape
from typing import Any

from sequst.extras import needed
from sequst.training.progress import Progress

_TOLD = {"student_f1": "student dev F1", "teacher_f1": "teacher dev F1", "selected": "% of words selected"}
_EVERY = 0.5
"""Seconds between two looks of the same line: a notebook takes its time to draw."""


def in_notebook() -> bool:
    """Whether this runs in a kernel that draws HTML, and not in a terminal."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class HtmlProgress(Progress):
    """A bar with the phase, what is done and the time left; rounds and notes as lines below one another."""

    def __init__(self) -> None:
        self._display = needed("IPython.display", "notebook")
        self._handle: Any = None
        self._phase, self._unit, self._values = "", "", ""
        self._done = self._total = self._first = 0
        self._begun = self._drawn = 0.0

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self._phase, self._unit, self._values = phase, unit, ""
        self._done, self._first, self._total = done, done, total
        self._begun = self._drawn = time.monotonic()
        self._handle = self._display.display(self._display.HTML(self._line()), display_id=True)

    def advance(self, steps: int = 1, **values: float) -> None:
        self._done += steps
        self._values = " ".join(f"{name} {value:.3f}" for name, value in values.items())
        if time.monotonic() - self._drawn >= _EVERY:
            self._draw()

    def end(self) -> None:
        if self._handle is not None:
            self._draw()
            self._handle = None

    def note(self, message: str) -> None:
        self._display.display(self._display.HTML(f'<div style="opacity:.7;white-space:pre-wrap">{escape(message)}</div>'))

    def round(self, line: Mapping[str, Any]) -> None:
        found = [f"{told} {line[name]:.1f}" for name, told in _TOLD.items() if line.get(name) is not None]
        self.note(", ".join([f"round {line['round']}", *found]))

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._handle is not None:
            self._handle.update(self._display.HTML(self._line()))

    def _line(self) -> str:
        seconds = time.monotonic() - self._begun
        rate = (self._done - self._first) / seconds if seconds > 0 else 0.0
        left = f", {(self._total - self._done) / rate:.0f} s left" if rate and self._total > self._done else ""
        of = f" of {self._total}" if self._total else ""
        bar = f'<progress value="{self._done}" max="{max(self._total, 1)}"></progress>'
        told = f"{self._done}{of} {escape(self._unit)}, {seconds:.0f} s{left} {self._values}"
        return f"<div>{escape(self._phase)} {bar} {told}</div>"
