"""How a run tells what it is doing. The library calls; whoever shows it (the command line, a notebook) implements."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Phases begin, advance and end; messages come in between."""

    def begin(self, phase: str, total: int, done: int = 0) -> None: ...

    def advance(self, steps: int = 1, **values: float) -> None: ...

    def end(self) -> None: ...

    def note(self, message: str) -> None: ...


class Silent:
    """Shows nothing."""

    def begin(self, phase: str, total: int, done: int = 0) -> None:
        pass

    def advance(self, steps: int = 1, **values: float) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, message: str) -> None:
        pass
