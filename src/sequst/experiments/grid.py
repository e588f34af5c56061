"""Many cells: several at a time, each line kept as it comes, whatever happens to the others.

A cell is done when its line is in the results. What is done is not done again, what was cut off starts anew, and a cell that
fails, or whose process is killed, is recorded with its error while the rest goes on.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sequst.errors import UsageError, nearest
from sequst.experiments.benchmarks import read_part
from sequst.experiments.cells import Cell, current_commit
from sequst.experiments.engines import ENGINES, Job, Result
from sequst.experiments.results import FAILURES, append_lines, key_of, read_results
from sequst.files import lock


@dataclass
class GridResult:
    """How a grid went."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    """Of the cells that were run now."""
    failed: list[tuple[Cell, str]] = field(default_factory=list)
    skipped: int = 0
    """Cells that were done before."""
    left: int = 0
    """Cells that the time did not suffice for."""

    def __str__(self) -> str:
        return f"{len(self.lines)} cells run, {self.skipped} done before, {len(self.failed)} failed, {self.left} left"


class Told(NamedTuple):
    """What the outside hears when a cell ends."""

    cell: Cell
    f1: float | None
    error: str | None
    done: int
    of: int


def require_data(cells: Iterable[Cell], data: Path) -> None:
    """An error now, and not after the training, where a file that a cell reads is not there or malformed."""
    for dataset, part in _parts_of(cells):
        read_part(data, dataset, part)


def require_folders(cells: Iterable[Cell], data: Path) -> None:
    """The same where there is nothing at all of a benchmark, which takes no time to see."""
    for dataset, part in _parts_of(cells):
        if not (data / dataset).is_dir():
            read_part(data, dataset, part)


def _parts_of(cells: Iterable[Cell]) -> Iterator[tuple[str, str]]:
    """What the cells read of which benchmark, each once."""
    for dataset, score_on in dict.fromkeys((cell.dataset, cell.score_on) for cell in cells):
        yield from ((dataset, part) for part in (("train", "test") if score_on == "test" else ("train",)))


def run_grid(
    cells: Iterable[Cell], data: Path, output: Path, *, jobs: int = 1, commit: str | None = None, device: str = "auto",
    limit_seconds: float | None = None, tell: Callable[[Told], None] = lambda told: None, engine: str = "local",
) -> GridResult:  # fmt: skip
    """Run the cells that `output` does not have yet. What there is to see in them beside their scores goes to NAME.KIND.jsonl
    beside it (see `findings`), and what fails to NAME.failures.jsonl. No cell outlives the limit: what has not ended by then is
    stopped, and left for another time. Before the first begins, all data that they read is looked at."""
    begun = time.monotonic()
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}; {nearest(engine, ENGINES)}")
    with contextlib.closing(lock(output.with_suffix(".lock"), f"{output}: another grid is writing there; name another folder")):
        done = {key_of(line) for line in read_results(output)}
        asked = {cell.key: cell for cell in cells}
        todo = deque(cell for key, cell in asked.items() if key not in done)
        outcome = GridResult(skipped=len(asked) - len(todo))
        if not todo:
            return outcome
        total, shortest = len(todo), 0.0
        crew = ENGINES[engine](Job(data, commit or current_commit(), device, jobs))

        def seconds_left() -> float | None:
            return None if limit_seconds is None else limit_seconds - (time.monotonic() - begun)

        def is_time_for_another() -> bool:
            left = seconds_left()
            return bool(todo) and (left is None or left > shortest)

        try:
            crew.prepare(todo)
            require_data(todo, data)
            while True:
                while is_time_for_another() and crew.room() > 0:
                    crew.begin(todo.popleft())
                left = seconds_left()
                if not crew.running or (left is not None and left <= 0):
                    break
                for cell, took, result in crew.wait(left):
                    _keep(output, cell, result, outcome)
                    shortest = min(shortest or took, took)
                    error = result if isinstance(result, str) else None
                    f1 = None if isinstance(result, str) else result[0]["f1"]
                    tell(Told(cell, f1, error, len(outcome.lines) + len(outcome.failed), total))
        finally:
            outcome.left = len(todo) + crew.running
            crew.end()
    return outcome


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
