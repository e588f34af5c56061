"""Progress of a run: a bar where there is a terminal, plain lines where there is none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from sequst.cli.console import note, notes
from sequst.cli.tables import rounds_table
from sequst.training.progress import Progress

_PLAIN_EVERY = 15.0


def make_progress() -> Progress:
    return BarProgress() if notes.is_terminal else LineProgress()


class BarProgress(Progress):
    """A bar with the phase, the rate and the time left."""

    def __init__(self) -> None:
        self._unit = ""
        self._bars: Bars | None = None
        self._task = TaskID(0)

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self._unit = unit
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[values]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bars = Bars(*columns, console=notes, transient=False)
        self._task = self._bars.add_task(phase, total=total or None, completed=done, rate="", values="")
        self._bars.start()

    def advance(self, steps: int = 1, **values: float) -> None:
        if self._bars is not None:
            speed = self._bars.tasks[0].speed
            rate = f"{speed:.1f} {self._unit}/s" if speed else ""
            self._bars.update(self._task, advance=steps, rate=rate, values=_shown(values))

    def end(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def note(self, message: str) -> None:
        note(message)

    def round(self, line: Mapping[str, Any]) -> None:
        show_round(line)


class LineProgress(Progress):
    """A line when a phase begins and ends, and one every quarter of a minute between."""

    def __init__(self) -> None:
        self._unit = ""
        self._phase, self._total, self._done = "", 0, 0
        self._begun = self._told = 0.0
        self._first = 0
        self._values = ""

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self._unit = unit
        self._phase, self._total, self._done, self._first = phase, total, done, done
        self._begun = self._told = time.monotonic()
        note(f"{phase}: {total or 'unknown'} {self._unit}" + (f", going on at {done}" if done else ""))

    def advance(self, steps: int = 1, **values: float) -> None:
        self._done += steps
        self._values = _shown(values)
        if time.monotonic() - self._told >= _PLAIN_EVERY:
            self._told = time.monotonic()
            rate = (self._done - self._first) / (self._told - self._begun)
            left = f", {(self._total - self._done) / rate:.0f} s left" if self._total and rate else ""
            of = f" of {self._total}" if self._total else ""
            note(f"{self._phase}: {self._done}{of} {self._unit}, {rate:.1f}/s{left} {self._values}".rstrip())

    def end(self) -> None:
        if not self._phase:
            return
        note(f"{self._phase}: {self._done} {self._unit} in {time.monotonic() - self._begun:.0f} s {self._values}".rstrip())
        self._phase = ""

    def note(self, message: str) -> None:
        note(message)

    def round(self, line: Mapping[str, Any]) -> None:
        show_round(line)


def show_round(line: Mapping[str, Any]) -> None:
    if any(value is not None for name, value in line.items() if name != "round"):
        notes.print(rounds_table([line]))


def _shown(values: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.3f}" for name, value in values.items())
