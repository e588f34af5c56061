"""Many cells: several at a time, each line kept as it comes, whatever happens to the others.

A cell is done when its line is in the results. What is done is not done again, what was cut off starts anew, and a cell that
fails, or whose process is killed, is recorded with its error while the rest goes on.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sequst.errors import UsageError, nearest
from sequst.experiments.benchmarks import read_part
from sequst.experiments.cells import Cell, current_commit
from sequst.experiments.engines import ENGINES, Engine, Job, Result
from sequst.experiments.results import FAILURES, append_lines, key_of, read_results
from sequst.files import explained, lock
from sequst.tagger.encoders.shape import require_folder


@dataclass
class GridResult:
    """How a grid went."""

    total: int
    """Cells that were not done before."""
    skipped: int
    """Cells that were."""
    lines: list[dict[str, Any]] = field(default_factory=list)
    failed: list[tuple[Cell, str]] = field(default_factory=list)

    @property
    def ended(self) -> int:
        return len(self.lines) + len(self.failed)

    @property
    def left(self) -> int:
        """Cells that the time did not suffice for."""
        return self.total - self.ended

    def __str__(self) -> str:
        return f"{len(self.lines)} cells run, {self.skipped} done before, {len(self.failed)} failed, {self.left} left"


Tell = Callable[[Cell, Result, GridResult], None]
"""Hears of a cell that has ended, and how the grid goes so far."""


def require_inputs(cells: Sequence[Cell], data: Path) -> None:
    """Raise an error before any training if a file that a cell reads, or the folder of an encoder, is missing or malformed."""
    for encoder in dict.fromkeys(cell.encoder for cell in cells):
        require_folder(encoder)
    for dataset, score_on in dict.fromkeys((cell.dataset, cell.score_on) for cell in cells):
        for part in ("train", "test") if score_on == "test" else ("train",):
            read_part(data, dataset, part)


def run_grid(
    cells: Iterable[Cell], data: Path, output: Path, *, jobs: int = 1, commit: str | None = None, device: str = "auto",
    limit_seconds: float | None = None, tell: Tell = lambda cell, result, grid: None, engine: str = "local",
) -> GridResult:  # fmt: skip
    """Run the cells that `output` does not have yet. What there is to see in them beside their scores goes to NAME.KIND.jsonl
    beside it (see `findings`), and what fails to NAME.failures.jsonl. No cell outlives the limit: what has not ended by then is
    stopped, and left for another time. Before anything is written, their data and the folders of their encoders are looked
    at."""
    end = math.inf if limit_seconds is None else time.monotonic() + limit_seconds
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}; {nearest(engine, ENGINES)}")
    asked = {cell.key: cell for cell in cells}

    def left() -> list[Cell]:
        done = {key_of(line) for line in read_results(output)}
        return [cell for key, cell in asked.items() if key not in done]

    require_inputs(left(), data)
    taken = f"{output}: another grid is writing there; name another folder"
    with explained(output.parent, "name another folder"):
        output.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(lock(output.with_suffix(".lock"), taken)):
        todo = left()  # another grid may have ended just now
        outcome = GridResult(len(todo), len(asked) - len(todo))
        if not todo:
            return outcome
        crew = ENGINES[engine](Job(data, commit or current_commit(), device, jobs))
        try:
            for cell, result in _results(crew, deque(todo), end):
                _keep(output, cell, result, outcome)
                tell(cell, result, outcome)
        finally:
            crew.end()
    return outcome


def _results(crew: Engine, todo: deque[Cell], end: float) -> Iterator[tuple[Cell, Result]]:
    """What comes of the cells until the time is up. None is begun where less is left than the shortest has taken."""
    begun: dict[Cell, float] = {}
    shortest = 0.0
    while True:
        while todo and end - time.monotonic() > shortest and crew.room() > 0:
            cell = todo.popleft()
            begun[cell] = time.monotonic()
            crew.begin(cell)
        left = end - time.monotonic()
        if not begun or left <= 0:
            return
        for cell, result in crew.wait(None if left == math.inf else left):
            took = time.monotonic() - begun.pop(cell)
            shortest = min(shortest or took, took)
            yield cell, result


def _keep(output: Path, cell: Cell, result: Result, outcome: GridResult) -> None:
    if isinstance(result, str):
        outcome.failed.append((cell, result))
        append_lines(output.with_suffix(f".{FAILURES}.jsonl"), [{**cell.facts, "error": result}])
        return
    line, findings = result
    for kind, lines in findings.items():
        if lines:
            append_lines(output.with_suffix(f".{kind}.jsonl"), lines)
    append_lines(output, [line])  # last: with it the cell is done
    outcome.lines.append(line)
