"""Progress of a run: a bar where there is a terminal, plain lines where there is none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from sequst.cli.console import console, note
from sequst.cli.tables import rounds_table
from sequst.training.progress import Counted

_PLAIN_EVERY = 15.0


def make_progress() -> Shown:
    return BarProgress() if console(stderr=True).is_terminal else LineProgress()


class Shown(Counted):
    """Notes and rounds, which are the same with and without a terminal."""

    def note(self, message: str) -> None:
        note(message)

    def round(self, line: Mapping[str, Any]) -> None:
        if any(value is not None for name, value in line.items() if name != "round"):
            console(stderr=True).print(rounds_table([line]))


class BarProgress(Shown):
    """A bar with the phase, what is done and the time left."""

    _bars: Bars | None = None

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        super().begin(phase, total, done, unit)
        self._bars = Bars(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), console=console(stderr=True)
        )
        self._bars.add_task(phase, total=total or None, completed=done, told=self.told())
        self._bars.start()

    def advance(self, steps: int = 1, **values: float) -> None:
        super().advance(steps, **values)
        if self._bars is not None:
            self._bars.update(TaskID(0), completed=self.done, told=self.told())

    def end(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


class LineProgress(Shown):
    """A line when a phase begins and ends, and one every quarter of a minute between."""

    _shown = 0.0

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        super().begin(phase, total, done, unit)
        self._shown = time.monotonic()
        note(f"{phase}: {total or 'unknown'} {unit}" + (f", going on at {done}" if done else ""))

    def advance(self, steps: int = 1, **values: float) -> None:
        super().advance(steps, **values)
        if time.monotonic() - self._shown >= _PLAIN_EVERY:
            self._shown = time.monotonic()
            note(f"{self.phase}: {self.told()}")

    def end(self) -> None:
        if self.phase:
            note(f"{self.phase}: {self.told()}")
            self.phase = ""
