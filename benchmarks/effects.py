"""What each change of a recipe is worth: main effects from runs in which several are on or off at once.

python benchmarks/effects.py RESULTS.jsonl [--json FILE] [--base "paper max_rounds=2 choose=last valid_tags=true"]

The F1 of every run is what its dataset and seed make of it, plus the effect of each change that is on, plus chance (least
squares). Where changes are balanced, as in the recipe `screening`, an effect is the mean of the runs with it less that of those
without. The rounds beside the results, where they are, give the effects on the first teachers, and the reliability those on the
calibration error of entities, in percent, of which less is better.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from sequst.evaluation.paired import t_tail
from sequst.experiments.results import read_findings, read_results

FIRST = ("adapt", "teacher", "ensemble.teachers", "head", "valid_tags", "successions", "abstain", "standardise")
"""Settings that the first teacher knows of."""


def changes(line: dict[str, Any], base: set[str]) -> set[str]:
    return set(line["recipe"].split()) - base - {"default"}


def effects(lines: list[dict[str, Any]], base: set[str], of: str = "f1") -> list[dict[str, Any]]:
    """Of every change its effect, the standard error and the p value, largest first; those that always come together are
    one."""
    blocks = sorted({(line["dataset"], line["seed"]) for line in lines})
    on = {name: np.array([name in changes(line, base) for line in lines]) for line in lines for name in changes(line, base)}
    together: dict[bytes, list[str]] = {}
    for name in sorted(on):
        together.setdefault(on[name].tobytes(), []).append(name)
    names = [" ".join(group) for group in together.values()]
    columns = [on[group[0]].astype(float) for group in together.values()]
    columns += [np.array([float((line["dataset"], line["seed"]) == block) for line in lines]) for block in blocks]
    design, scores = np.stack(columns, 1), np.array([line[of] for line in lines])
    found, _, rank, _ = np.linalg.lstsq(design, scores, rcond=None)
    freedom = len(lines) - int(rank)
    if freedom < 1 or rank < design.shape[1]:
        raise SystemExit(f"{len(lines)} runs do not tell {len(names)} changes on {len(blocks)} datasets and seeds apart")
    variance = float(((scores - design @ found) ** 2).sum()) / freedom
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance)
    rows = [
        {
            "change": name,
            "effect": float(found[i]),
            "error": float(errors[i]),
            "p": t_tail(float(found[i] / errors[i]), freedom),
            "by_dataset": _by_dataset(lines, columns[i], of),
        }
        for i, name in enumerate(names)
    ]
    return sorted(rows, key=lambda row: -row["effect"])


def _by_dataset(lines: list[dict[str, Any]], on: np.ndarray, of: str) -> dict[str, float]:
    """The plain difference of means."""
    found = {}
    for dataset in sorted({line["dataset"] for line in lines}):
        scores = [
            [line[of] for line, is_on in zip(lines, on, strict=True) if line["dataset"] == dataset and is_on == way]
            for way in (1, 0)
        ]
        if all(scores):
            found[dataset] = float(np.mean(scores[0]) - np.mean(scores[1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--base", default="paper max_rounds=2 choose=last valid_tags=true", help="settings that all runs have")
    options = parser.parse_args()
    base = set(options.base.split())
    lines = read_results(options.results)
    first = [line for line in read_findings(options.results, "rounds") if line["round"] == 0 and line.get("f1") is not None]
    tables = {"after the last round": effects(lines, base)}
    if first and any(name.startswith(FIRST) for line in lines for name in changes(line, base)):
        tables["first teacher"] = effects(first, base)
    calibrations = [line for line in read_findings(options.results, "reliability") if line["ece"] is not None]
    if calibrations:
        tables["calibration error of entities"] = effects(calibrations, base, "ece")
    runs = {"first teacher": len(first), "calibration error of entities": len(calibrations)}
    for name, rows in tables.items():
        print(f"{name}, {runs.get(name, len(lines))} runs")
        for row in rows:
            sets = "  ".join(f"{dataset[:8]} {value:+.1f}" for dataset, value in row["by_dataset"].items())
            print(f"  {row['effect']:+6.2f} +- {row['error']:.2f}  p {row['p']:.3f}  {row['change']:<60} {sets}")
    if options.json:
        options.json.write_text(json.dumps({"runs": len(lines), "base": options.base, "effects": tables}, indent=1) + "\n")


if __name__ == "__main__":
    main()
