"""Run the cells of a comparison, several at a time, and append a line of results for each."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from sequst.errors import SequstError
from sequst.experiments.cells import Cell
from sequst.experiments.grid import run_cells
from sequst.methods.registry import find_method

log = logging.getLogger("sequst")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sequst.experiments", description=__doc__)
    parser.add_argument("--experiment", required=True, help="name of the comparison that the lines belong to")
    parser.add_argument("--dataset", nargs="+", required=True)
    parser.add_argument("--shots", type=int, default=None, help="K of the few-shot draw; without it all of the training set")
    parser.add_argument("--seed", type=int, nargs="+", default=[12, 21, 42, 87, 100])
    parser.add_argument("--method", default="finetune")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--head", choices=("softmax", "crf"), default="softmax")
    parser.add_argument("--sampler", choices=("sentences", "mentions"), default="sentences")
    parser.add_argument("--pool", type=int, default=None, help="cap on the unlabelled sentences")
    parser.add_argument("--recipe", nargs="+", default=["default"], help="each 'default', or overrides 'a.b=c d=e'")
    parser.add_argument("--score-on", choices=("test", "pool"), default="test")
    parser.add_argument("--data", default=os.environ.get("SEQUST_DATA", "."), help="folder of the benchmarks")
    parser.add_argument("--output", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--commit", default=None)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    cells = [
        Cell(
            options.experiment, dataset, seed, options.method, recipe, options.encoder, options.head, shots=options.shots,
            sampler=options.sampler, pool=options.pool, score_on=options.score_on,
        )
        for recipe in options.recipe
        for seed in options.seed
        for dataset in options.dataset
    ]  # fmt: skip
    if options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: at least 1")
    try:
        if options.shots is None and find_method(options.method).unlabeled:
            parser.error(f"--method {options.method} learns from unlabelled sentences, which --shots K leaves")
        lines = run_cells(
            cells, Path(options.data), Path(options.output), jobs=options.jobs, commit=options.commit, device=options.device
        )
    except SequstError as error:
        sys.exit(f"error: {error}")
    for line in lines:
        log.info("%s seed %s %s: F1 %.2f in %.0f s", line["dataset"], line["seed"], line["recipe"], line["f1"], line["seconds"])


if __name__ == "__main__":
    main()
