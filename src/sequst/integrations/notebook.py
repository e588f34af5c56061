"""Progress in a notebook: a line of HTML that is updated."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

from sequst.extras import needed
from sequst.training.progress import Counted

_EVERY = 0.5
"""Seconds between two updates of a line: a notebook takes its time to draw."""


def in_notebook() -> bool:
    """Whether this runs in a kernel that draws HTML, and not in a terminal."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class HtmlProgress(Counted):
    """A bar for each phase, with what is done and the time left; notes as lines between them."""

    def __init__(self) -> None:
        self._display = needed("IPython.display", "notebook")
        self._handle: Any = None
        self._drawn = 0.0

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        super().begin(phase, total, done, unit)
        self._drawn = time.monotonic()
        self._handle = self._display.display(self._html(), display_id=True)

    def advance(self, steps: int = 1, **values: float) -> None:
        super().advance(steps, **values)
        if self._handle is not None and time.monotonic() - self._drawn >= _EVERY:
            self._drawn = time.monotonic()
            self._handle.update(self._html())

    def end(self) -> None:
        if self._handle is not None:
            self._handle.update(self._html())
            self._handle = None

    def note(self, message: str, detail: bool = False) -> None:
        if not detail:
            self._display.display(self._display.HTML(f'<div style="opacity:.7;white-space:pre-wrap">{escape(message)}</div>'))

    def _html(self) -> Any:
        bar = f'<progress value="{self.done}" max="{max(self.total, 1)}"></progress>'
        return self._display.HTML(f"<div>{escape(self.phase)} {bar} {escape(self.status())}</div>")
