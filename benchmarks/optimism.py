"""How much better a few-shot dev set looks than other sentences: the shift of confidences that would have been right.

python benchmarks/calibration_shift.py LEARNT.reliability.jsonl ... --judge JUDGED.reliability.jsonl [--json FILE]

Of every run the shift of its logits at which its mean confidence is the share of entities that are right, from the bins of its
reliability; the runs of a dataset and a seed share a labelled sample and a dev set, so their mean counts as one. The
calibration error of the runs to judge is told as it is and with the shift that all datasets but their own have, and apart for
runs of seeds that no shift was found with. Bins are shifted as a whole, which is what a shift of their entities comes to,
nearly. Lines must be of runs whose confidences had no such shift yet.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sequst.calibration.reliability import Bin, expected_calibration_error
from sequst.tagger.entity_calibration import EntityCalibration

FARTHEST = 5.0


def shifted(bins: Sequence[Bin], shift: float) -> list[Bin]:
    trust = EntityCalibration(1.0, shift)
    return [Bin(trust.confidence([each.confidence], ""), each.accuracy, each.count) for each in bins]


def gap(bins: Sequence[Bin]) -> float:
    """By how much the mean confidence is above the share of entities that are right."""
    return float(np.average([each.confidence - each.accuracy for each in bins], weights=[each.count for each in bins]))


def right_shift(bins: Sequence[Bin]) -> float:
    """That closes the gap: by bisection, for the gap grows with the shift."""
    low, high = -FARTHEST, FARTHEST
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        low, high = (low, middle) if gap(shifted(bins, middle)) > 0 else (middle, high)
    return (low + high) / 2.0


def read(paths: Sequence[Path]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [{**line, "bins": [Bin(**each) for each in line["bins"]]} for line in lines]


def shifts(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """{dataset: {seed: mean over its runs}}."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        found[line["dataset"]][str(line["seed"])].append(right_shift(line["bins"]))
    return {dataset: {seed: statistics.fmean(each) for seed, each in seeds.items()} for dataset, seeds in found.items()}


class EntityOutcomes(NamedTuple):
    """The calibration error of a run as it is, and with the shift that all datasets but its own have."""

    method: str
    dataset: str
    is_new: bool
    """Its dev set had no part in finding the shift of any dataset."""
    as_it_is: float
    shifted: float


def judge(lines: Sequence[dict[str, Any]], learnt: dict[str, dict[str, float]]) -> list[EntityOutcomes]:
    others = {
        dataset: statistics.fmean(each for other, seeds in learnt.items() if other != dataset for each in seeds.values())
        for dataset in {line["dataset"] for line in lines}
    }
    found = []
    for line in lines:
        before, after = (
            expected_calibration_error(bins) for bins in (line["bins"], shifted(line["bins"], others[line["dataset"]]))
        )
        assert before is not None
        assert after is not None
        is_new = all(str(line["seed"]) not in seeds for seeds in learnt.values())
        found.append(EntityOutcomes(line["method"], line["dataset"], is_new, before, after))
    return found


def told(runs: Sequence[EntityOutcomes]) -> dict[str, dict[str, Any]]:
    """{method: means by dataset; and over the runs with dev sets that are new, with what the shift changes there}."""
    found: dict[str, dict[str, Any]] = {}
    for method in sorted({run.method for run in runs}):
        own = [run for run in runs if run.method == method]
        by_set = {dataset: _means([run for run in own if run.dataset == dataset]) for dataset in {run.dataset for run in own}}
        found[method] = {"by_dataset": by_set}
        new = [run for run in own if run.is_new]
        if len(new) > 1:
            apart = [run.shifted - run.as_it_is for run in new]
            spread = {"change": statistics.fmean(apart), "error": statistics.stdev(apart) / len(apart) ** 0.5}
            found[method]["new_dev_sets"] = {**_means(new), **spread, "runs": len(new)}
    return found


def _means(runs: Sequence[EntityOutcomes]) -> dict[str, float]:
    return {name: statistics.fmean(getattr(run, name) for run in runs) for name in ("as_it_is", "shifted")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("learnt", nargs="+", type=Path)
    parser.add_argument("--judge", nargs="*", type=Path, default=[])
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    lines = read(options.learnt)
    learnt = shifts(lines)
    groups = [each for seeds in learnt.values() for each in seeds.values()]
    if len(groups) < 2:
        raise SystemExit("the runs are of one dataset and seed: no spread can be told")
    found = {
        "shift": statistics.fmean(groups),
        "error": statistics.stdev(groups) / len(groups) ** 0.5,
        "runs": len(lines),
        "groups": learnt,
        "judged": told(judge(read(options.judge), learnt)),
    }
    text = json.dumps(found, indent=2)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
