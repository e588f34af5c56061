"""Many cells: several at a time, each line kept as it comes, whatever happens to the others.

A cell is done when its line is in the results. What is done is not done again, what was cut off starts anew, and a cell that
fails, or whose process is killed, is recorded with its error while the rest goes on.
"""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any, NamedTuple

from sequst.errors import SequstError
from sequst.experiments.cells import Cell, append_result, current_commit, key_of, read_results, run_cell

_CONTEXT = get_context("spawn")  # a forked process has no GPU


@dataclass
class Outcome:
    """How a grid went."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    """Of the cells that were run now."""
    failed: list[tuple[Cell, str]] = field(default_factory=list)
    skipped: int = 0
    """Cells that were done before."""
    left: int = 0
    """Cells that the time did not suffice for."""


class Told(NamedTuple):
    """What the outside hears when a cell ends."""

    cell: Cell
    f1: float | None
    error: str | None
    done: int
    of: int


def run_grid(
    cells: Iterable[Cell], data: Path, output: Path, *, jobs: int = 1, commit: str | None = None, device: str = "auto",
    limit_seconds: float | None = None, tell: Callable[[Told], None] = lambda told: None,
) -> Outcome:  # fmt: skip
    """Run the cells that `output` does not have yet. Rounds of self-training go to NAME.rounds.jsonl beside it, and what fails
    to NAME.failures.jsonl. No cell outlives the limit: what has not ended by then is stopped, and left for another time."""
    begun = time.monotonic()
    done = {key_of(line) for line in read_results(output)}
    asked = {cell.key: cell for cell in cells}
    todo = deque(cell for key, cell in asked.items() if key not in done)
    outcome = Outcome(skipped=len(asked) - len(todo))
    commit = commit or current_commit()
    total, shortest = len(todo), 0.0
    crew: list[_Worker] = []

    def seconds_left() -> float | None:
        return None if limit_seconds is None else limit_seconds - (time.monotonic() - begun)

    def is_time_for_another() -> bool:
        left = seconds_left()
        return bool(todo) and (left is None or left > shortest)

    try:
        while True:
            while is_time_for_another() and len(crew) < jobs:
                crew.append(_Worker(jobs, data, commit, device))
                crew[-1].give(todo.popleft())
            busy = [worker for worker in crew if worker.cell is not None]
            left = seconds_left()
            if not busy or (left is not None and left <= 0):
                break
            for worker in _wait(busy, left):
                cell, took, result = worker.take()
                _keep(output, cell, result, outcome)
                shortest = min(shortest or took, took)
                error = result if isinstance(result, str) else None
                f1 = None if isinstance(result, str) else result[0]["f1"]
                tell(Told(cell, f1, error, len(outcome.lines) + len(outcome.failed), total))
                if not worker.alive:
                    crew.remove(worker)
                elif is_time_for_another():
                    worker.give(todo.popleft())
    finally:
        outcome.left = len(todo) + sum(worker.cell is not None for worker in crew)
        for worker in crew:
            worker.end()
    return outcome


def run_cells(
    cells: Iterable[Cell], data: Path, output: Path, *, jobs: int = 1, commit: str | None = None, device: str = "auto"
) -> list[dict[str, Any]]:
    """Run all the cells; an error at the end where some failed."""
    outcome = run_grid(cells, data, output, jobs=jobs, commit=commit, device=device)
    if outcome.failed:
        told = "\n".join(f"{cell}: {error}" for cell, error in outcome.failed)
        count = len(outcome.failed) + len(outcome.lines)
        raise SequstError(f"{len(outcome.failed)} of {count} cells failed; the others are in {output}\n{told}")
    return outcome.lines


Result = tuple[dict[str, Any], list[dict[str, Any]]] | str
"""The line of a cell and those of its rounds, or its error."""


def _keep(output: Path, cell: Cell, result: Result, outcome: Outcome) -> None:
    if isinstance(result, str):
        outcome.failed.append((cell, result))
        append_result(output.with_suffix(".failures.jsonl"), {**cell.facts, "error": result})
        return
    line, rounds = result
    for round_ in rounds:
        append_result(output.with_suffix(".rounds.jsonl"), round_)
    append_result(output, line)
    outcome.lines.append(line)


class _Worker:
    """A process that runs one cell after the other."""

    def __init__(self, jobs: int, data: Path, commit: str, device: str) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_work, args=(theirs, jobs, data, commit, device), daemon=True)
        self._process.start()
        theirs.close()
        self.cell: Cell | None = None
        self._begun = 0.0
        self.alive = True

    def give(self, cell: Cell) -> None:
        self.cell, self._begun = cell, time.monotonic()
        with contextlib.suppress(OSError):  # a process that is gone is met again when its cell is taken
            self.connection.send(cell)

    def take(self) -> tuple[Cell, float, Result]:
        """(the cell that has ended, its seconds, what came of it); a process that is gone has failed at it."""
        assert self.cell is not None
        cell, self.cell = self.cell, None
        try:
            result: Result = self.connection.recv()
        except (EOFError, OSError):  # a pipe that is closed, or reset, at the other end
            self._process.join()
            self.alive = False
            result = f"its process ended with exit code {self._process.exitcode}; was it killed, for lack of memory?"
        return cell, time.monotonic() - self._begun, result

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
        self.connection.close()


def _wait(workers: list[_Worker], seconds: float | None) -> list[_Worker]:
    ready = connection.wait([worker.connection for worker in workers], seconds)
    return [worker for worker in workers if worker.connection in ready]


def _work(pipe: Any, jobs: int, data: Path, commit: str, device: str) -> None:
    """The life of a worker: its share of the machine, then cell after cell."""
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    if device != "cpu" and torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(1.0 / jobs)
    while True:
        try:
            cell = pipe.recv()
        except EOFError:  # whoever gave the work is gone
            return
        try:
            pipe.send(run_cell(cell, data, commit, device))
        except SequstError as error:
            pipe.send(str(error))
        except Exception as error:  # whatever it was, the other cells go on
            where = traceback.format_exc(limit=-3).strip()
            pipe.send(f"{type(error).__name__}: {error}\n{where}")
