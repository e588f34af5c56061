"""How a run tells what it is doing. The library calls; whoever shows it (the command line, a notebook) implements."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol


class Progress(Protocol):
    """Phases begin, advance and end; messages come in between."""

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None: ...

    def advance(self, steps: int = 1, **values: float) -> None: ...

    def end(self) -> None: ...

    def note(self, message: str) -> None: ...

    def round(self, line: Mapping[str, Any]) -> None:
        """A round of self-training has ended; `line` is what metrics.jsonl has of it."""


class Silent:
    """Shows nothing."""

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        pass

    def advance(self, steps: int = 1, **values: float) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, message: str) -> None:
        pass

    def round(self, line: Mapping[str, Any]) -> None:
        pass


class Counted(Silent):
    """Counts what a phase has done, for a display that decides when to show `told()`."""

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self.phase, self.total, self.done, self.unit, self.values = phase, total, done, unit, ""
        self._first, self._begun = done, time.monotonic()

    def advance(self, steps: int = 1, **values: float) -> None:
        self.done += steps
        self.values = "".join(f" {name} {value:.3f}" for name, value in values.items())

    def told(self) -> str:
        """e.g. `40 of 120 steps, 10 s, 20 s left loss 0.412`; a total of 0 is unknown."""
        seconds = time.monotonic() - self._begun
        of = f" of {self.total}" if self.total else ""
        remaining = seconds * (self.total - self.done) / max(1, self.done - self._first)
        left = f", {remaining:.0f} s left" if self.total > self.done > self._first else ""
        return f"{self.done}{of} {self.unit}, {seconds:.0f} s{left}{self.values}"
