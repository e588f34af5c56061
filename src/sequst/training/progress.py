"""Interfaces for progress and tracking. The base classes do nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Planned(NamedTuple):
    """A phase to come, and how many seconds it may take."""

    phase: str
    seconds: float


def duration(seconds: float) -> str:
    """e.g. `50 s`, `6 min`, `2 h 10 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """Phases begin, advance and end; notes come in between."""

    plans = False
    """Whether it wants to know before training how long the phases may take."""

    def expect(self, planned: Sequence[Planned]) -> None:
        """The phases to come, in order."""

    def forecast(self, efforts: Mapping[str, float]) -> None:
        """Seconds that a run of each effort would take."""

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        pass

    def advance(self, steps: int = 1, **values: float) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, message: str, detail: bool = False) -> None:
        """Show a message. `detail` = nobody has to act on it."""


class Tracker:
    """Receives every line of metrics.jsonl. `end` is called when the run ends, with or without an error."""

    def begin(self, run: Path, settings: Mapping[str, Any]) -> None:
        pass

    def log(self, line: Mapping[str, Any]) -> None:
        pass

    def end(self, failed: bool = False) -> None:
        pass


PRIOR = 0.1
"""How much a plan counts against the time that passed: as this fraction of itself."""


class Counted(Progress):
    """Counts the progress of a phase. Displays show `status()`."""

    plans = True
    phase, unit, values = "", "steps", ""
    total = done = _first = 0
    _begun = _expected = 0.0
    _planned: Sequence[Planned] = ()

    def expect(self, planned: Sequence[Planned]) -> None:
        self._planned, self._expected = planned, time.monotonic()

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self.phase, self.total, self.done, self.unit, self.values = phase, total, done, unit, ""
        self._first, self._begun = done, time.monotonic()

    def advance(self, steps: int = 1, **values: float) -> None:
        self.done += steps
        self.values = "".join(f", {name} {value:.3g}" for name, value in values.items())

    def status(self) -> str:
        """e.g. `40 of 120 steps, 10 s, 20 s left, loss 0.412`; a total of 0 is unknown. Where the phases to come are known,
        what is left is that of the run: `40 of 120 steps, 10 s, loss 0.412; 6 min left`."""
        seconds = time.monotonic() - self._begun
        of = f" of {self.total:,}" if self.total > self.done else ""
        told = f"{self.done:,}{of} {self.unit}, {seconds:.0f} s"
        if (left := self.seconds_left()) is not None:
            return f"{told}{self.values}; {duration(left)} left" if left >= 1 else f"{told}{self.values}"
        remaining = seconds * (self.total - self.done) / max(1, self.done - self._first)
        return told + (f", {duration(remaining)} left" if self.total > self.done > self._first else "") + self.values

    def seconds_left(self) -> float | None:
        """Of the whole run, by its plan and by how well the plan has held so far. None = the phase is not in the plan."""
        place = next((i for i, each in enumerate(self._planned) if each.phase == self.phase), None)
        if place is None:
            return None
        seconds = self._planned[place].seconds / max(1, self.total)
        past = sum(each.seconds for each in self._planned[:place]) + seconds * (self.done - self._first)
        rest = sum(each.seconds for each in self._planned[place:]) - seconds * min(self.done, self.total)
        weight = PRIOR * sum(each.seconds for each in self._planned)
        return rest * (time.monotonic() - self._expected + weight) / (past + weight)
