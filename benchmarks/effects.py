"""What each change of a recipe is worth: main effects from runs in which several are on or off at once.

python benchmarks/effects.py RESULTS.jsonl [MORE.jsonl ...] [--json FILE] [--figure FILE.png]

Settings that all runs of a file have are what they begin with; all others are changes. The F1 of every run is what its dataset
and seed make of it, plus the effect of each change that is on, plus chance (least squares). Where changes are balanced, as in
the recipe `screening`, an effect is the mean of the runs with it less that of those without. The rounds beside the results,
where they are, give the effects on the first teachers, and the reliability those on the calibration error of entities, in
percent, of which less is better. The figure shows what changes are worth after the last round, with 95 % intervals, and has its
data beside it as CSV.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from sequst.evaluation.paired import t_tail
from sequst.experiments.figures import Figure
from sequst.experiments.results import read_findings, read_results

FIRST = ("adapt", "teacher", "ensemble.teachers", "head", "valid_tags", "transitions", "capitals", "abstain", "standardise")
"""Settings that the first teacher knows of."""


def changes(lines: list[dict[str, Any]]) -> list[set[str]]:
    """Of every run the settings that not all have."""
    recipes = [set(line["recipe"].split()) - {"default"} for line in lines]
    return [recipe - set.intersection(*recipes) for recipe in recipes]


def effects(lines: list[dict[str, Any]], of: str = "f1") -> list[dict[str, Any]]:
    """Of every change its effect, the standard error and the p value, largest first; those that always come together are
    one."""
    blocks = sorted({(line["dataset"], line["seed"]) for line in lines})
    changed = changes(lines)
    on = {name: np.array([name in own for own in changed]) for name in set.union(*changed)}
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
            "interval": _reach(freedom) * float(errors[i]),
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


def _reach(freedom: int) -> float:
    """How many standard errors a 95 % interval reaches to each side."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, freedom) > 0.05 else (low, middle)
    return high


def tables_of(path: Path) -> dict[str, tuple[int, list[dict[str, Any]]]]:
    """{what the effects are on: (runs, effects)}."""
    lines = read_results(path)
    first = [line for line in read_findings(path, "rounds") if line["round"] == 0 and line.get("f1") is not None]
    tables = {"after the last round": (len(lines), effects(lines))}
    if first and any(name.startswith(FIRST) for own in changes(lines) for name in own):
        tables["first teacher"] = len(first), effects(first)
    calibrations = [line for line in read_findings(path, "reliability") if line["ece"] is not None]
    if calibrations:
        tables["calibration error of entities"] = len(calibrations), effects(calibrations, "ece")
    return tables


def figure_of(found: dict[str, tuple[int, list[dict[str, Any]]]]) -> Figure:
    """Of every file and every change in it the effect after the last round, with its interval."""
    rows = [(name, row) for name, (_, rows) in found.items() for row in rows]
    places = [len(rows) + len(found) - i - list(found).index(name) for i, (name, _) in enumerate(rows)]

    def draw(drawing: Any) -> None:
        axes = drawing.subplots()
        for place, (_, row) in zip(places, rows, strict=True):
            sure = abs(row["effect"]) > row["interval"]
            axes.errorbar(
                row["effect"], place, xerr=row["interval"], fmt="o", color="#0b5fa5" if sure else "#7a7a7a", capsize=2,
                markerfacecolor="#0b5fa5" if sure else "white",
            )  # fmt: skip
        for name, (runs, _) in found.items():
            highest = max(place for place, (of, _) in zip(places, rows, strict=True) if of == name)
            axes.text(
                0.0, highest + 0.9, f"{name}, {runs} runs", transform=axes.get_yaxis_transform(), weight="bold", va="center"
            )
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_yticks(places, [row["change"] for _, row in rows])
        axes.set_ylim(min(places) - 0.6, max(places) + 1.6)
        axes.set_xlabel("F1 with the change less F1 without, 95 % interval")

    return Figure(
        "effects",
        "What changes bring",
        "",
        ("experiment", "change", "effect", "interval", "p"),
        [(name, row["change"], *(f"{row[key]:.4f}" for key in ("effect", "interval", "p"))) for name, row in rows],
        0.19 * max(places) + 0.8,
        draw,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    found = {path.stem: tables_of(path) for path in options.results}
    for name, tables in found.items():
        for of, (runs, rows) in tables.items():
            print(f"{name}, {of}, {runs} runs")
            for row in rows:
                sets = "  ".join(f"{dataset[:8]} {value:+.1f}" for dataset, value in row["by_dataset"].items())
                print(f"  {row['effect']:+6.2f} +- {row['error']:.2f}  p {row['p']:.3f}  {row['change']:<60} {sets}")
    if options.json:
        told = {
            name: {of: {"runs": runs, "effects": rows} for of, (runs, rows) in tables.items()} for name, tables in found.items()
        }
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    if options.figure:
        figure = figure_of({name: tables["after the last round"] for name, tables in found.items()})
        options.figure.write_bytes(figure.png())
        options.figure.with_suffix(".csv").write_text(figure.csv())


if __name__ == "__main__":
    main()
