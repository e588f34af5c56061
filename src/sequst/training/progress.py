"""Interfaces for progress and tracking. The base classes do nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Progress:
    """Phases begin, advance and end; notes come in between."""

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


class Counted(Progress):
    """Counts the progress of a phase. Displays show `status()`."""

    phase, unit, values = "", "steps", ""
    total = done = _first = 0
    _begun = 0.0

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self.phase, self.total, self.done, self.unit, self.values = phase, total, done, unit, ""
        self._first, self._begun = done, time.monotonic()

    def advance(self, steps: int = 1, **values: float) -> None:
        self.done += steps
        self.values = "".join(f", {name} {value:.3g}" for name, value in values.items())

    def status(self) -> str:
        """e.g. `40 of 120 steps, 10 s, 20 s left, loss 0.412`; a total of 0 is unknown."""
        seconds = time.monotonic() - self._begun
        of = f" of {self.total:,}" if self.total > self.done else ""
        remaining = seconds * (self.total - self.done) / max(1, self.done - self._first)
        left = f", {remaining:.0f} s left" if self.total > self.done > self._first else ""
        return f"{self.done:,}{of} {self.unit}, {seconds:.0f} s{left}{self.values}"
