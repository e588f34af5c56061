"""What a run tells the outside: progress, and to a tracker what it measures. These two tell nothing; others override them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Progress:
    """Phases begin, advance and end; messages come in between."""

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        pass

    def advance(self, steps: int = 1, **values: float) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, message: str) -> None:
        pass

    def round(self, line: Mapping[str, Any]) -> None:
        """A round of self-training has ended; `line` is what metrics.jsonl has of it."""


class Tracker:
    """Begins with a run, takes every line of metrics.jsonl, and ends with the run, however that ends."""

    def begin(self, run: Path, settings: Mapping[str, Any]) -> None:
        pass

    def log(self, line: Mapping[str, Any]) -> None:
        pass

    def end(self, failed: bool = False) -> None:
        pass
