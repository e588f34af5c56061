"""Progress of a run: one line a phase, with a bar where there is a terminal."""

from __future__ import annotations

import time

from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from sequst.cli.console import console, note
from sequst.training.progress import Counted

_LINE_EVERY = 30.0
"""Seconds between two lines of one phase where there is no terminal."""
_NAME = 17
"""Columns for the name of a phase."""


def make_progress(verbose: bool = False) -> Shown:
    """Notes that nobody has to act on are shown with `verbose` alone."""
    return BarProgress(verbose) if console(stderr=True).is_terminal else LineProgress(verbose)


class Shown(Counted):
    def __init__(self, verbose: bool = False) -> None:
        self._verbose = verbose

    def note(self, message: str, detail: bool = False) -> None:
        if self._verbose or not detail:
            note(message)


class BarProgress(Shown):
    """A bar with the phase, what is done and the time left."""

    _bars: Bars | None = None

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        super().begin(phase, total, done, unit)
        self._bars = Bars(
            TextColumn("{task.description}"), BarColumn(bar_width=12), TextColumn("{task.fields[status]}"),
            console=console(stderr=True),
        )  # fmt: skip
        self._bars.add_task(phase.ljust(_NAME), total=total or None, completed=done, status=self.status())
        self._bars.start()

    def advance(self, steps: int = 1, **values: float) -> None:
        super().advance(steps, **values)
        if self._bars is not None:
            self._bars.update(TaskID(0), completed=self.done, status=self.status())

    def end(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


class LineProgress(Shown):
    """A line when a phase ends, and one every half minute before."""

    _shown = 0.0

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        super().begin(phase, total, done, unit)
        self._shown = time.monotonic()
        if done:
            self._line()

    def advance(self, steps: int = 1, **values: float) -> None:
        super().advance(steps, **values)
        if time.monotonic() - self._shown >= _LINE_EVERY:
            self._shown = time.monotonic()
            self._line()

    def end(self) -> None:
        if self.phase:
            self._line()
            self.phase = ""

    def _line(self) -> None:
        note(f"{self.phase.ljust(_NAME)} {self.status()}")
