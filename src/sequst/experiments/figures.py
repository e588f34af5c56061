"""Figures of results, drawn with matplotlib: each as SVG and PNG, readable in grey, with its data beside it as CSV."""

from __future__ import annotations

import csv
import functools
import io
import math
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sequst.corpus.tags import OUTSIDE
from sequst.experiments.grouping import (
    Group,
    Rows,
    in_order,
    of_group,
    over_rounds,
    rank,
    rows_of,
    scores_of,
    slug,
    variant_of,
)
from sequst.experiments.results import Lines, Results
from sequst.experiments.sentences import LINE, draw_texts, lay_out
from sequst.experiments.tables import paper_figure
from sequst.extras import needed
from sequst.files import atomic_text, explained, write_bytes

_COLOURS = ("#000000", "#0b5fa5", "#d1731a", "#4aa3a2", "#8c4b9e", "#7a7a7a")
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_LINES: Sequence[Any] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_STYLE = {
    "svg.hashsalt": "sequst", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.alpha": 0.3, "legend.frameon": False, "axes.axisbelow": True,
}  # fmt: skip
PAPER = "the paper"
_WIDTH = 9.0
"""Inches."""


@dataclass(frozen=True)
class Figure:
    """What to draw, what to say of it, and the figures it shows."""

    name: str
    title: str
    caption: str
    heading: Sequence[str]
    rows: Sequence[Sequence[Any]]
    height: float
    draw: Callable[[Any], None]
    """Draws on a `matplotlib.figure.Figure`."""

    def svg(self) -> str:
        return self._saved("svg", transparent=True, metadata={"Date": None}).decode()

    def png(self) -> bytes:
        return self._saved("png", dpi=160, facecolor="white")

    def _saved(self, format: str, **options: Any) -> bytes:
        matplotlib, canvas = needed("matplotlib", "figures"), needed("matplotlib.figure", "figures")
        buffer = io.BytesIO()
        with matplotlib.rc_context(_STYLE):
            drawing = canvas.Figure(figsize=(_WIDTH, self.height), layout="constrained")
            self.draw(drawing)
            drawing.savefig(buffer, format=format, **options)
        return buffer.getvalue()

    def csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.heading)
        writer.writerows(self.rows)
        return file.getvalue()


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """NAME.svg, NAME.png and NAME.csv of every figure."""
    with explained(folder, "name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        for ending, text in (("svg", figure.svg()), ("csv", figure.csv())):
            with atomic_text(folder / f"{figure.name}.{ending}") as file:
                file.write(text)
        write_bytes(folder / f"{figure.name}.png", figure.png(), "name another folder")
        written += [folder / f"{figure.name}.{ending}" for ending in ("svg", "png", "csv")]
    return written


def figures_of(results: Results) -> list[Figure]:
    """All that the results have something for, group by group."""
    rows, made = rows_of(results), []
    for group, scored in scores_of(results, rows).items():
        kept = {kind: of_group(found, group) for kind, found in results.findings.items()}
        made += _scores(group, scored.scores, scored.ceiling)
        made += _rounds(group, kept.get("rounds", []), rows)
        made += _reliability(group, kept.get("reliability", []), rows)
        made += _words(group, kept.get("words", []), rows)
        made += _cases(group, kept.get("cases", []), rows)
    return made


def _name(kind: str, group: Group) -> str:
    return f"{kind}-{group.file_name}"


def _panels(drawing: Any, names: Sequence[str], **shared: Any) -> Iterator[tuple[str, Any]]:
    """A panel with its title for every name, three in a row."""
    across = min(3, len(names))
    panels = drawing.subplots(math.ceil(len(names) / across), across, squeeze=False, **shared).flatten()
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    for name, panel in zip(names, panels, strict=False):
        panel.set_title(textwrap.fill(name, int(_WIDTH * 14) // across), fontsize=10)
        yield name, panel


def _height(panels: int) -> float:
    return 0.6 + 2.4 * math.ceil(panels / 3)


def _legend(drawing: Any, names: Sequence[str], looks: Mapping[str, tuple[str, str, Any]], lines: bool = True) -> None:
    mark = needed("matplotlib.lines", "figures").Line2D
    handles = [
        mark([], [], color=colour, marker=marker, linestyle=style if lines else "", label=name, fillstyle=_fill(name))
        for name, (colour, marker, style) in ((name, looks[name]) for name in names)
    ]
    across = max(1, min(5, len(handles), int(_WIDTH * 14) // (max(map(len, names)) + 8)))
    drawing.legend(handles=handles, loc="outside lower center", ncols=across)


def _fill(name: str) -> str:
    return "none" if name == PAPER else "full"


def _looks(names: Sequence[str]) -> dict[str, tuple[str, str, Any]]:
    """A colour, a mark and a kind of line for every series. Marks and lines tell seven apart where there is no colour; marks
    with colours, 42."""
    return {
        name: (_COLOURS[i % len(_COLOURS)], _MARKS[i % len(_MARKS)], _LINES[i % len(_LINES)]) for i, name in enumerate(names)
    }


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _scores(group: Group, scores: Mapping[tuple[str, str], Mapping[int, float]], ceiling: Mapping[str, float]) -> list[Figure]:
    datasets = in_order(dataset for dataset, _ in scores)
    methods = sorted({method for _, method in scores}, key=rank)
    rows: list[list[Any]] = []
    for dataset in datasets:
        for method in methods:
            found = list(scores.get((dataset, method), {}).values())
            printed = paper_figure(group, dataset, method)
            mean = statistics.mean(found) if found else None
            rows.append(
                [dataset, method, mean, _deviation(found) if found else None, len(found), printed and printed.f1,
                 ceiling.get(dataset)]
            )  # fmt: skip

    def draw(drawing: Any) -> None:
        for dataset, panel in _panels(drawing, datasets, sharey=True):
            for _, method, mean, deviation, _, printed, _ in (row for row in rows if row[0] == dataset):
                place = methods.index(method)
                if mean is not None:
                    panel.errorbar(mean, place, xerr=deviation, color="#000000", marker="o", capsize=3, linestyle="")
                if printed is not None:
                    panel.plot(printed, place, color="#7a7a7a", marker="D", fillstyle=_fill(PAPER), linestyle="")
            if dataset in ceiling:
                panel.axvline(ceiling[dataset], color="#0b5fa5", linestyle="--", linewidth=1.2)
            panel.set_yticks(range(len(methods)), [textwrap.fill(method, 26) for method in methods])
            panel.set_ylim(len(methods) - 0.5, -0.5)
            panel.set_xlabel("test F1")
        looks = {
            "ours, mean and standard deviation": ("#000000", "o", ""),
            PAPER: ("#7a7a7a", "D", ""),
            "ours on all training data": ("#0b5fa5", "", "--"),
        }
        _legend(drawing, list(looks), looks)

    caption = "Test F1 of every method, ours and the paper's; the dashed line is fine-tuning on all of the training set."
    heading = ["dataset", "method", "f1", "standard_deviation", "runs", "paper", "full_data"]
    lines = sum(len(textwrap.wrap(method, 26)) for method in methods)
    size = 0.8 + (0.9 + 0.1 * len(methods) + 0.18 * lines) * math.ceil(len(datasets) / 3)
    return [Figure(_name("scores", group), f"{group.title}: scores", caption, heading, rows, size, draw)]


def _rounds(group: Group, lines: Lines, names: Rows) -> list[Figure]:
    found = over_rounds(lines, names)
    datasets = in_order(found)
    if not datasets:
        return []
    methods = sorted({method for rounds in found.values() for _, method in rounds}, key=rank)
    rows: list[list[Any]] = [
        [dataset, method, number, statistics.mean(values), _deviation(values), len(values)]
        for dataset in datasets
        for (number, method), values in sorted(found[dataset].items(), key=lambda item: (rank(item[0][1]), item[0][0]))
    ]

    def draw(drawing: Any) -> None:
        looks = _looks(methods)
        last = max(row[2] for row in rows)
        for dataset, panel in _panels(drawing, datasets):
            for method in methods:
                points = [row[2:5] for row in rows if row[:2] == [dataset, method]]
                if not points:
                    continue
                numbers, means, spread = zip(*points, strict=True)
                colour, marker, style = looks[method]
                aside = [number + 0.03 * (methods.index(method) - (len(methods) - 1) / 2) for number in numbers]
                panel.errorbar(aside, means, yerr=spread, color=colour, marker=marker, linestyle=style, capsize=2, alpha=0.9)
            panel.set_xticks(range(last + 1))
            panel.set_xlabel("round")
            panel.set_ylabel("test F1")
        _legend(drawing, methods, looks)

    caption = (
        "Test F1 of the teacher of every round, mean and standard deviation over seeds; round 0 is the first teacher. Computed "
        "after the runs had ended: the round to keep was chosen on the dev set. Runs that stopped earlier keep their last F1."
    )
    heading = ["dataset", "method", "round", "f1", "standard_deviation", "runs"]
    return [
        Figure(_name("rounds", group), f"{group.title}: over the rounds", caption, heading, rows, _height(len(datasets)), draw)
    ]


def _reliability(group: Group, lines: Lines, names: Rows) -> list[Figure]:
    found: dict[tuple[str, str], dict[int, list[Mapping[str, float]]]] = defaultdict(dict)
    for line in lines:
        if line["bins"]:
            found[line["dataset"], names[variant_of(line)]].setdefault(line["seed"], line["bins"])
    datasets = in_order(dataset for dataset, _ in found)
    methods = sorted({method for _, method in found}, key=rank)
    if not datasets:
        return []
    rows = []
    for dataset, method in ((dataset, method) for dataset in datasets for method in methods if (dataset, method) in found):
        full = max(map(len, found[dataset, method].values()))
        runs = [run for run in found[dataset, method].values() if len(run) == full]
        for number in range(full):
            bins = [run[number] for run in runs]  # the n-th is the same share of every run's entities
            count = sum(each["count"] for each in bins)
            means = [sum(each["count"] * each[name] for each in bins) / count for name in ("confidence", "accuracy")]
            rows.append([dataset, method, number + 1, *means, count, len(runs)])

    def draw(drawing: Any) -> None:
        looks = _looks(methods)
        for dataset, panel in _panels(drawing, datasets, sharex=True, sharey=True):
            panel.plot([0, 100], [0, 100], color="#7a7a7a", linewidth=1)
            for method in methods:
                points = [(100 * row[3], 100 * row[4]) for row in rows if row[:2] == [dataset, method]]
                colour, marker, style = looks[method]
                if points:
                    panel.plot(*zip(*points, strict=True), color=colour, marker=marker, linestyle=style, markersize=4)
            panel.set_xlabel("confidence, %")
            panel.set_ylabel("right, %")
        _legend(drawing, methods, looks)

    caption = (
        "Of predicted entities on test, how many are right against how sure the tagger is of them, in bins of equally many; "
        "below the diagonal the tagger is too sure. Runs with too few entities for all bins are left out."
    )
    heading = ["dataset", "method", "bin", "confidence", "accuracy", "entities", "runs"]
    return [
        Figure(_name("reliability", group), f"{group.title}: reliability", caption, heading, rows, _height(len(datasets)), draw)
    ]


def _words(group: Group, lines: Lines, names: Rows) -> list[Figure]:
    made = []
    for dataset in in_order(line["dataset"] for line in lines):
        placed = {names[variant_of(line)]: line for line in reversed(lines) if line["dataset"] == dataset}
        methods = sorted(placed, key=rank)
        rows = [
            [method, *row]
            for method in methods
            for row in zip(*(placed[method][name] for name in ("words", "types", "x", "y")), strict=True)
        ]
        apart = [f"{placed[m]['silhouette']:.3f} {m}" for m in methods if placed[m]["silhouette"] is not None]
        caption = (
            f"Hidden states of test words of {dataset}, placed by t-SNE, by their true class; one run each. Distances between "
            "clusters mean little in such a picture"
        ) + (f"; the mean silhouette in the full space is {', '.join(apart)}." if apart else ".")
        draw = functools.partial(_draw_words, methods=methods, rows=rows)
        title = f"{group.title}: words of {dataset}"
        heading = ["method", "word", "type", "x", "y"]
        name, height = f"{_name('words', group)}-{slug(dataset)}", 0.8 + _height(len(methods))
        made.append(Figure(name, title, caption, heading, rows, height, draw))
    return made


def _draw_words(drawing: Any, methods: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    types = sorted({row[2] for row in rows}, key=lambda type_: (type_ == OUTSIDE, type_))
    looks = {**_looks([type_ for type_ in types if type_ != OUTSIDE]), OUTSIDE: ("#b5b5b5", ".", "")}
    for method, panel in _panels(drawing, methods):
        for type_ in reversed(types):  # O, the largest cloud, lies below
            points = [row[3:5] for row in rows if (row[0], row[2]) == (method, type_)]
            colour, marker, _ = looks[type_]
            if points:
                panel.scatter(*zip(*points, strict=True), s=9, color=colour, marker=marker, alpha=0.6, linewidths=0)
        panel.set_axis_off()
        panel.set_aspect("equal")
    _legend(drawing, types, looks, lines=False)


def _cases(group: Group, lines: Lines, names: Rows) -> list[Figure]:
    if not lines:
        return []
    once = {(variant_of(line), line["dataset"], line["seed"], line["kind"]): line for line in lines}.values()
    shown = sorted(once, key=lambda line: (in_order(each["dataset"] for each in lines).index(line["dataset"]), line["kind"]))
    heading = ["dataset", "method", "seed", "kind", "word", "label", "tag", "selected", "confidence", "information_gain"]
    rows = [
        [line["dataset"], names[variant_of(line)], line["seed"], line["kind"], *row]
        for line in shown
        for row in zip(
            *(line[name] for name in ("words", "labels", "tags", "selected", "confidence", "information_gain")), strict=True
        )
    ]
    caption = (
        "Sentences of the pool as the first teacher labels them. Selected words are bold. Below a word stands its label; a "
        "wrong one is underlined, with the true tag after it. Of each run one sentence of which selection leaves out what is "
        "wrong, and one of which it does not; most sentences have no wrong word."
    )
    texts = lay_out([{**line, "method": names[variant_of(line)]} for line in shown], 72 * _WIDTH)
    height = texts[-1][1] + LINE
    draw = functools.partial(draw_texts, texts=texts, width=72 * _WIDTH, height=height)
    title = f"{group.title}: pseudo-labelled sentences"
    return [Figure(_name("cases", group), title, caption, heading, rows, height / 72, draw)]
