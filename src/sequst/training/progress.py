"""How a run tells what it is doing. The library calls; whoever shows it (the command line, a notebook) implements."""

from __future__ import annotations

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
