"""How a run tells a tracker what it measures. The library calls; `sequst.integrations.trackers` has those of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Tracker(Protocol):
    """Begins with a run, takes every line of metrics.jsonl, and ends with the run, however that ends."""

    def begin(self, run: Path, settings: Mapping[str, Any]) -> None: ...

    def log(self, line: Mapping[str, Any]) -> None: ...

    def end(self, failed: bool = False) -> None: ...


class NoTracker:
    """Keeps nothing."""

    def begin(self, run: Path, settings: Mapping[str, Any]) -> None:
        pass

    def log(self, line: Mapping[str, Any]) -> None:
        pass

    def end(self, failed: bool = False) -> None:
        pass
