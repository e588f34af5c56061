"""What a grid of experiments costs beside its cells: seconds to begin, and milliseconds for every cell.

python benchmarks/grid.py [--json FILE] [--cells N] [--jobs N] [--engine local|ray]

`plan` is what it takes to see that all cells are done already: keys, settings, the file of results. `begin` is the time from
then until a worker ends its first cell, where that cell fails at once; `cell` is what every further one of them takes, with its
line written. `share` is what all that comes to for as many cells of a minute each, in percent of their work.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from sequst.corpus.formats.write import write_conll
from sequst.corpus.sentence import Sentence
from sequst.experiments.cells import Cell
from sequst.experiments.engines import Result
from sequst.experiments.grid import GridResult, run_grid
from sequst.experiments.results import KEYS, append_lines

WORK = 60.0
"""Seconds of a cell that the share is of; those of the paper's main table took 100 to 300."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    options = parser.parse_args()
    # with all labelled none is left to be scored on: every cell fails as soon as a worker has it
    cells = [Cell("g", "tiny", seed, encoder="bilstm", shots=None, score_on="pool") for seed in range(options.cells)]
    with tempfile.TemporaryDirectory() as folder:
        found = measure(cells, Path(folder), options.jobs, options.engine)
    found |= {"cells": options.cells, "jobs": options.jobs, "engine": options.engine, "python": platform.python_version()}
    print(json.dumps(found, indent=2))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def measure(cells: list[Cell], folder: Path, jobs: int, engine: str) -> dict[str, Any]:
    done = folder / "done.jsonl"
    append_lines(done, [_line(cell) for cell in cells])
    begun = time.perf_counter()
    outcome = run_grid(cells, folder, done, commit="c", device="cpu")
    plan = time.perf_counter() - begun
    assert outcome.skipped == len(cells), "the grid must find every cell done"

    ends: list[float] = []

    def tell(cell: Cell, result: Result, grid: GridResult) -> None:
        assert isinstance(result, str), "these cells are to fail"
        ends.append(time.perf_counter())

    (folder / "tiny").mkdir()
    write_conll(folder / "tiny" / "train.txt.gz", [Sentence(("a",), ("O",), 1)])
    begun = time.perf_counter()
    run_grid(cells, folder, folder / "failing.jsonl", jobs=jobs, commit="c", device="cpu", tell=tell, engine=engine)
    assert len(ends) == len(cells), "every cell must be tried"
    begin = ends[0] - begun - plan
    cell = (ends[-1] - ends[0]) / (len(ends) - 1)
    work = len(cells) * WORK / jobs
    return {
        "plan_seconds": plan,
        "begin_seconds": begin,
        "cell_milliseconds": 1000 * cell,
        "share_percent": 100 * (plan + begin + cell * len(cells)) / work,
    }


def _line(cell: Cell) -> dict[str, Any]:
    facts = {**dict.fromkeys(KEYS, 0), **cell.facts}
    return {name: facts[name] for name in KEYS}


if __name__ == "__main__":
    main()
