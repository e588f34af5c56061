"""The pictures of docs/images that show results. A file names the digest of the data that it was drawn from."""

from __future__ import annotations

import hashlib
import json
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from run_tables import METHODS, ROOT, SCREENINGS, SETS, effects, rows_of, runs, scores
from speed_tables import measured

from sequst.experiments import paper

IMAGES = ROOT / "docs/images"
BLUE, GREY = "#0b5fa5", "#7a7a7a"
LOOKS = (("#000000", "o", "-"), (BLUE, "s", "--"), ("#d1731a", "^", "-."))
"""Colour, mark and line of each series: they can be told apart in grey."""
STYLE = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3,
    "legend.frameon": False, "axes.axisbelow": True,
}  # fmt: skip


class Picture(NamedTuple):
    data: Callable[[], Any]
    """What it shows, as JSON can hold it."""
    draw: Callable[[Any, Any], None]
    """Draws data on a `matplotlib.figure.Figure`."""
    height: float
    """Inches; all are nine wide."""


def mean(values: Sequence[float]) -> list[float]:
    """The mean and the standard deviation."""
    return [statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0]


def panels(drawing: Any, names: Sequence[str], across: int = 3, **shared: Any) -> Iterator[tuple[str, Any]]:
    axes = drawing.subplots(-(-len(names) // across), across, squeeze=False, **shared).flatten()
    for name, panel in zip(names, axes, strict=True):
        panel.set_title(name, fontsize=10)
        yield name, panel


def scores_shown() -> dict[str, Any]:
    found, full = scores("best-10shot"), scores("best-full-data")
    return {
        name: {
            "methods": {
                title: [*mean(list(found[dataset, method].values())), (figure := paper.figure(dataset, method)) and figure.f1]
                for method, title in METHODS.items()
            },
            "full": next(iter(full[dataset, "finetune"].values())),
        }
        for dataset, name in SETS.items()
    }


def draw_scores(drawing: Any, data: Any) -> None:
    for name, panel in panels(drawing, list(data), sharey=True):
        for place, (f1, deviation, printed) in enumerate(data[name]["methods"].values()):
            ours = panel.errorbar(f1, place, xerr=deviation, color="#000000", marker="o", capsize=3, linestyle="")
            [theirs] = panel.plot(printed, place, color=GREY, marker="D", fillstyle="none", linestyle="")
        full = panel.axvline(data[name]["full"], color=BLUE, linestyle="--", linewidth=1.2)
        panel.set_yticks(range(len(METHODS)), METHODS.values())
        panel.set_ylim(len(METHODS) - 0.5, -0.5)
        panel.set_xlabel("test F1")
    names = ["ours, mean and standard deviation", "the paper", "ours on all training data"]
    drawing.legend([ours, theirs, full], names, loc="outside lower center", ncols=3)


def rounds_shown(series: str) -> Callable[[], Any]:
    def shown() -> dict[str, Any]:
        found: dict[str, Any] = defaultdict(lambda: defaultdict(dict))
        for dataset, name in SETS.items():
            for method, number in dict.fromkeys((r["method"], r["round"]) for r in rows_of("rounds", series=series)):
                some = rows_of("rounds", series=series, dataset=dataset, method=method, round=number)
                found[name][METHODS[method]][number] = mean([float(row["f1"]) for row in some])
        return found

    return shown


def draw_rounds(drawing: Any, data: Any) -> None:
    for name, panel in panels(drawing, list(data)):
        lines = []
        for (colour, mark, line), rounds in zip(LOOKS, data[name].values(), strict=False):
            numbers = [int(number) for number in rounds]
            means, deviations = zip(*rounds.values(), strict=True)
            lines.append(
                panel.errorbar(numbers, means, yerr=deviations, color=colour, marker=mark, linestyle=line, capsize=2, alpha=0.9)
            )
        panel.set_xticks(numbers)
        panel.set_xlabel("round")
        panel.set_ylabel("test F1")
    drawing.legend(lines, list(data[name]), loc="outside lower center", ncols=len(lines))


def effects_shown() -> dict[str, Any]:
    return {f"{series}, {len(runs(series))} runs": effects(series) for series in SCREENINGS}


def draw_effects(drawing: Any, data: Any) -> None:
    axes = drawing.subplots()
    place, ticks = 0, {}
    for series, rows in data.items():
        axes.text(0.0, -place, series, transform=axes.get_yaxis_transform(), weight="bold", va="center")
        for change, f1, error in rows:
            place += 1
            colour = BLUE if abs(f1) > 2 * error else GREY
            fill = colour if colour == BLUE else "white"
            axes.errorbar(f1, -place, xerr=2 * error, fmt="o", color=colour, capsize=2, markerfacecolor=fill)
            ticks[-place] = textwrap.fill(change, 80)
        place += 1
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_ylim(-place, 1)
    axes.set_xlabel("F1 with the change less F1 without it, ± two standard errors")


def label_next_shown() -> dict[str, Any]:
    """F1 by the number of sentences that were labelled."""
    return {
        SETS[dataset]: {
            way: {
                "0": mean([run["start_f1"] for run in found["runs"]]),
                **{count: mean([run["ways"][way]["f1"][count] for run in found["runs"]]) for count in counts},
            }
            for way, counts in found["mean"].items()
        }
        for dataset, found in measured("label_next")["data"].items()
    }


def draw_label_next(drawing: Any, data: Any) -> None:
    for name, panel in panels(drawing, list(data), across=2):
        for (colour, mark, line), (way, counts) in zip(LOOKS, data[name].items(), strict=False):
            means, deviations = zip(*counts.values(), strict=True)
            places = [int(count) for count in counts]
            panel.errorbar(places, means, yerr=deviations, color=colour, marker=mark, linestyle=line, capsize=3, label=way)
        panel.set_xlabel("sentences labelled beside the first")
        panel.set_ylabel("test F1")
    panel.legend(loc="lower right")


def studio_shown() -> dict[str, Any]:
    """F1 by labels: what the studio reached and told, and the usual way."""
    shown: dict[str, Any] = {}
    for dataset, found in measured("studio_robot").items():
        points = found["studio"]["points"]
        labels = [point["labels"] for point in points]
        usual = [[run["test"] for run in found["usual"]["points"] if run["labels"] == count] for count in labels]
        told = [point["quick"]["judged"] for point in points]
        shown[SETS[dataset]] = {
            "labels": labels,
            "usual": [mean(each) for each in usual if each],
            "studio": [point["quick"]["test"] for point in points],
            "told": [[each["value"], each["low"], each["high"]] for each in told],
        }
    return shown


def draw_studio(drawing: Any, data: Any) -> None:
    for name, panel in panels(drawing, list(data), across=2):
        found = data[name]
        titles = {"studio": "the studio, quick trainings", "usual": "random sentences, usual fine-tuning"}
        for (colour, mark, line), (key, title) in zip(LOOKS, titles.items(), strict=False):
            values = found[key] if key == "studio" else [each[0] for each in found[key]]
            spread = None if key == "studio" else [each[1] for each in found[key]]
            places = found["labels"][: len(values)]
            panel.errorbar(places, values, yerr=spread, color=colour, marker=mark, linestyle=line, capsize=3, label=title)
        value, low, high = zip(*found["told"], strict=True)
        reach = [[v - at for v, at in zip(value, low, strict=True)], [at - v for v, at in zip(value, high, strict=True)]]
        places = [count + 3 for count in found["labels"]]
        panel.errorbar(places, value, yerr=reach, fmt="x", color=GREY, capsize=3, label="F1 that the studio told, 90 %")
        panel.set_xlabel("labelled sentences")
        panel.set_ylabel("test F1")
    panel.legend(loc="lower right")


PICTURES = {
    "scores": Picture(scores_shown, draw_scores, 5.6),
    "rounds": Picture(rounds_shown("best-10shot"), draw_rounds, 5.4),
    "rounds-paper": Picture(rounds_shown("main-10shot"), draw_rounds, 5.4),
    "effects": Picture(effects_shown, draw_effects, 9.4),
    "label-next": Picture(label_next_shown, draw_label_next, 3.4),
    "studio-curve": Picture(studio_shown, draw_studio, 3.4),
}


def digest(name: str) -> str:
    """Of what the picture should show, to three digits: the last ones differ between machines."""
    text = json.dumps(PICTURES[name].data(), sort_keys=True)
    shown = json.loads(text, parse_float=lambda number: round(float(number), 3))
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def is_current(name: str) -> bool:
    file = IMAGES / f"{name}.png"
    return file.exists() and digest(name).encode() in file.read_bytes()


def draw(name: str) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    picture = PICTURES[name]
    with matplotlib.rc_context(STYLE):
        drawing = Figure(figsize=(9, picture.height), layout="constrained")
        picture.draw(drawing, picture.data())
        drawing.savefig(IMAGES / f"{name}.png", dpi=130, metadata={"Description": f"data {digest(name)}", "Software": None})
