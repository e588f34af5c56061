"""The figures of the pages, made from results/ and benchmarks/results/.

python benchmarks/pages.py            write RESULTS.md and every block between `<!-- figures: NAME -->` and `<!-- /figures -->`
python benchmarks/pages.py --images   draw the pictures of docs/images too
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sequst.evaluation.paired import paired_test
from sequst.experiments import paper

ROOT = Path(__file__).parent.parent
SETS = {
    "snips": "SNIPS", "multiwoz": "MultiWOZ", "mit_movie": "MIT Movie", "mit_restaurant": "MIT Restaurant",
    "conll03": "CoNLL-03", "ontonotes": "OntoNotes",
}  # fmt: skip
METHODS = {
    "finetune": "fine-tuning", "vat": "VAT", "seqvat": "SeqVAT", "cvt": "CVT", "sst": "SST", "metast": "MetaST",
    "sequst": "SeqUST",
}  # fmt: skip
PAPER = ("main-10shot", "self-training")
Scores = dict[tuple[str, str], dict[int, float]]
"""(dataset, method) -> seed -> test F1."""


def runs(*series: str, **where: Any) -> list[dict[str, Any]]:
    lines = map(json.loads, (ROOT / "results/runs.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["series"] in series and where.items() <= line.items()]


def rows_of(name: str, **where: str) -> list[dict[str, str]]:
    with (ROOT / f"results/{name}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if where.items() <= row.items()]


def measured(name: str) -> Any:
    return json.loads((ROOT / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))


def scores(*series: str, **where: Any) -> Scores:
    """With the paper's settings, fine-tuning is also the first teacher of a run of self-training, if it was not run alone."""
    found: Scores = defaultdict(dict)
    for line in runs(*series, **where):
        found[line["dataset"], line["method"]][line["seed"]] = line["f1"]
    for row in rows_of("rounds", round="0"):
        if row["series"] in series:
            found[row["dataset"], "finetune"].setdefault(int(row["seed"]), float(row["f1"]))
    return found


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(values: Iterable[float], full: int = 5) -> str:
    """Mean ± standard deviation, and the number of runs where it is not the usual one."""
    found = list(values)
    if not found:
        return ""
    deviation = f" ± {statistics.stdev(found):.2f}" if len(found) > 1 else ""
    return f"{statistics.mean(found):.2f}{deviation}{'' if len(found) == full else f' ({len(found)})'}"


def average(found: Scores, method: str) -> str:
    runs = [found[dataset, method].values() for dataset in SETS if found.get((dataset, method))]
    return f"{statistics.mean(map(statistics.mean, runs)):.2f}" if len(runs) == len(SETS) else ""


def score_rows(found: Scores, methods: Iterable[str], full: Scores) -> list[list[str]]:
    rows = [[METHODS[m], *(spread(found[d, m].values()) for d in SETS), average(found, m)] for m in methods]
    ends = [f"{next(iter(full[d, 'finetune'].values())):.2f}" if full.get((d, "finetune")) else "" for d in SETS]
    return [*rows, ["all of the training set, one seed", *ends, average(full, "finetune")]]


def defaults() -> str:
    found = scores("best-10shot")
    return table(["", *SETS.values(), "average"], score_rows(found, ("finetune", "sst", "sequst"), scores("best-full-data")))


def papers_settings() -> str:
    found = scores(*PAPER, encoder="mpnet")
    return table(["", *SETS.values(), "average"], score_rows(found, ("finetune", "sst", "sequst"), scores("full-data")))


def difference(found: Scores, one: str, other: str, datasets: Iterable[str]) -> str:
    """Mean difference over the seeds that both have, with the p value of a paired t-test."""
    pairs = [
        (f1, found[d, other][seed]) for d in datasets for seed, f1 in sorted(found[d, one].items()) if seed in found[d, other]
    ]
    if not pairs:
        return ""
    test = paired_test([a for a, _ in pairs], [b for _, b in pairs])
    return f"{test.difference:+.2f}" + ("" if test.p is None else f" ({test.p:.3f})")


def minilm() -> str:
    sets = ("conll03", "snips", "mit_restaurant", "mit_movie")
    rows = []
    for head, name in (("softmax", "the defaults, 10 sentences of each type"), ("crf", "with `--head crf`")):
        found = scores("minilm-defaults", head=head)
        rows.append([name, *(spread(found[d, "finetune"].values(), 3) for d in sets)])
    found = scores("finetune", experiment="main-10shot")
    rows.append(["the paper's settings", *(spread(found[d, "finetune"].values()) for d in sets)])
    full = scores("finetune", experiment="full-data")
    rows.append(["all of the training set (one seed)", *(spread(full[d, "finetune"].values(), 1) for d in sets)])
    return table(["", *(SETS[d] for d in sets)], rows)


def against_sst() -> str:
    found = scores(*PAPER, encoder="mpnet")
    cells = [difference(found, "sequst", "sst", [d]) for d in SETS]
    rows = [*score_rows(found, ("finetune", "sst", "sequst"), scores("full-data"))]
    rows.append(["SeqUST less SST (p)", *cells, difference(found, "sequst", "sst", SETS)])
    rows.append(["the paper: fine-tuning / SST / SeqUST", *(printed(d) for d in SETS), printed(None)])
    return table(["", *SETS.values(), "average"], rows)


def printed(dataset: str | None) -> str:
    """What the paper has, of a set or on average."""
    found = [paper.average(m) if dataset is None else paper.figure(dataset, m) for m in ("finetune", "sst", "sequst")]
    return " / ".join("" if each is None else f"{each if isinstance(each, float) else each.f1:.2f}" for each in found)


def pseudo_labels() -> str:
    rows = []
    for name, method, number, figures in (
        ("round 1, words", "sequst", "1", ("error", "selected_error")),
        ("round 1, entity words", "sequst", "1", ("entity_error", "selected_entity_error")),
        ("round 2, words, SST", "sst", "2", ("error",)),
        ("round 2, words, SeqUST", "sequst", "2", ("error", "selected_error")),
    ):
        found = {(r["dataset"], r["figure"]): r["mean"] for r in rows_of("pseudo_labels", method=method, round=number)}
        rows.append([name, *(" / ".join(f"{float(found[d, each]):.1f}" for each in figures) for d in SETS)])
    return table(["", *SETS.values()], rows)


def bilstm_vectors() -> str:
    rows = []
    for name, recipe in (("learnt vectors", "paper"), ("GloVe, 50 dimensions", "paper bilstm.vectors=glove")):
        found = scores("bilstm-defaults", recipe=recipe)
        pairs = [found[d, "finetune"] for d in ("conll03", "mit_restaurant")]
        rows.append([name, *(f"{each[12]:.1f} / {each[21]:.1f}" for each in pairs)])
    title = "10-shot, fine-tuning, F1 on held-out sentences of the training set, seeds 12 / 21"
    return table([title, "CoNLL-03", "MIT Restaurant"], rows)


def label_next() -> str:
    data, sets, counts = measured("label_next")["data"], ("mit_restaurant", "conll03"), ("50", "100", "200")
    rows = [
        [way, *(f"{data[d]['mean'][way][count]['f1']:.2f}" for d in sets for count in counts)]
        for way in ("random", "information gain, diverse")
    ]
    ahead = [data[d]["mean"]["information gain, diverse"][count]["over_random"] for d in sets for count in counts]
    rows.append(["ahead by", *(f"{each['difference']:+.2f} (p {each['p']:.3f})" for each in ahead)])
    return table(["", "MIT Restaurant, 50", "100", "200", "CoNLL-03, 50", "100", "200"], rows)


def suspects() -> str:
    found = [measured("suspects"), measured("suspects-conll03")]
    names = {
        "`sequst suspects`": "ours",
        "the ratio alone, without what is usual for a tag": "ratio",
        "the difference of the two probabilities": "difference",
        "cleanlab, words by `get_label_quality_scores`": "cleanlab, words",
        "cleanlab, words by their normalised margin": "cleanlab, margins",
        "cleanlab, `find_label_issues`": "cleanlab, issues",
    }
    figures = {title: [each["mean"][name]["precision"] for each in found] for title, name in names.items()}
    rows = [[title, *(f"{each['mean']:.1f} ± {each['deviation']:.1f}" for each in both)] for title, both in figures.items()]
    return table(["", "MIT Restaurant", "CoNLL-03"], rows)


def methods_minilm() -> str:
    rows = []
    for method, name in METHODS.items():
        lines = runs("methods", method=method, encoder="minilm", head="softmax")
        lines = [line for line in lines if line["recipe"] in ("paper", "paper max_rounds=2")]
        both = [[line for line in lines if line["dataset"] == d] for d in ("conll03", "mit_restaurant")]
        seconds = " / ".join(f"{statistics.mean(line['seconds'] for line in some):.0f}" for some in both)
        rows.append([name, *(spread((line["f1"] for line in some), 3) for some in both), seconds])
    return table(["", "CoNLL-03", "MIT Restaurant", "seconds"], rows)


def last_layers() -> str:
    rows = []
    for name, found in measured("last_layers")["last_layers"].items():
        related = f"{found['rank_correlation']:.3f}" if "rank_correlation" in found else ""
        label = name if name.startswith("all") else f"the last {name}"
        rows.append([label, f"{found['words_a_second']:.0f}", related, f"{found['auroc']:.3f}"])
    return table(["layers that drop out", "words a second", "rank correlation with all", "AUROC for wrong words"], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "defaults": defaults,
    "paper": papers_settings,
    "minilm": minilm,
    "against-sst": against_sst,
    "pseudo-labels": pseudo_labels,
    "bilstm-vectors": bilstm_vectors,
    "label-next": label_next,
    "suspects": suspects,
    "methods-minilm": methods_minilm,
    "last-layers": last_layers,
}
BLOCK = re.compile(r"(<!-- figures: (\S+) -->\n).*?(\n<!-- /figures -->)", re.DOTALL)


def current(text: str) -> str:
    """A page with all its blocks made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}{found[3]}", text)


def pages() -> dict[Path, str]:
    """{page with blocks: what it should say}."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    made = {page: current(text) for page in found if BLOCK.search(text := page.read_text(encoding="utf-8"))}
    return {**made, ROOT / "RESULTS.md": results_page()}


def results_page() -> str:
    parts = [INTRODUCTION]
    for title, series, ends in (
        ("The defaults", ("best-10shot",), "best-full-data"),
        ("The paper's settings", PAPER, "full-data"),
    ):
        found = scores(*series, encoder="mpnet")
        methods = [m for m in METHODS if any(found.get((d, m)) for d in SETS)]
        parts += [f"## {title}", f"Test F1, 10-shot, `mpnet`, softmax; lines of the series {', '.join(series)}, {ends}."]
        theirs = [
            [
                f"{METHODS[m]}, the paper",
                *(f"{each.f1:.2f}" for d in SETS if (each := paper.figure(d, m))),
                f"{paper.average(m):.2f}",
            ]
            for m in methods
        ]
        parts.append(table(["", *SETS.values(), "average"], [*score_rows(found, methods, scores(ends)), *theirs]))
        others = [m for m in methods if m != "sst"]
        rows = [
            [METHODS[m], *(difference(found, m, "sst", [d]) for d in SETS), difference(found, m, "sst", SETS)] for m in others
        ]
        parts += [
            "### Less SST",
            "Mean difference over shared seeds (p of a paired t-test).",
            table(["", *SETS.values(), "all"], rows),
        ]
        parts += ["### Over the rounds", rounds(series[0]), "### Errors of selected words", selection(series[0])]
        parts += ["### Calibration", calibration(series[0])]
    parts += ["## What tells errors", detection()]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# Results

Made by `make figures` from [results](results/README.md), which says how to run a series again. Values are means ± standard
deviations of the seeds 12, 21, 42, 87, 100; (n) is the number of runs where it is not five. `mpnet` (all-mpnet-base-v2,
110M parameters) stands in for the paper's bert-base-uncased. Pools hold 4,000 unlabelled sentences at most, the paper's
all. Tags of MultiWOZ are made automatically, and the paper's column of MIT Movie may mix two corpora: absolute figures on
these two do not compare. With the paper's settings there are two rounds at most, and fine-tuning is in part the first
teacher of these runs."""


def rounds(series: str) -> str:
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of("rounds", series=series):
        found[row["method"], row["round"]][row["dataset"]].append(float(row["f1"]))
    rows = [[METHODS[m], number, *(spread(by[d]) for d in SETS)] for (m, number), by in found.items()]
    rows.sort(key=lambda row: (list(METHODS.values()).index(row[0]), int(row[1])))
    return table(["method", "round", *SETS.values()], rows)


def figures(rows: list[dict[str, str]], *by: str, digits: int = 2) -> list[list[str]]:
    """Rows of a table of means, named by these columns."""
    found: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for row in rows:
        count = "" if row["runs"] == "5" else f" ({row['runs']})"
        deviation = f" ± {float(row['deviation']):.{digits}f}" if row["deviation"] else ""
        found[tuple(row[name] for name in by)][row["dataset"]] = f"{float(row['mean']):.{digits}f}{deviation}{count}"
    return [[*names, *(cells.get(d, "") for d in SETS)] for names, cells in found.items()]


def selection(series: str) -> str:
    some = [row for row in rows_of("selection", series=series) if row["figure"] != "selected_of_entity_words"]
    names = {"error": "all words", "entity_error": "entity words"}
    rows = [[one, names[figure], *cells] for one, figure, *cells in figures(some, "strategy", "figure")]
    printed = [(s, {d: paper.selection_error(d, s) for d in SETS}) for s in dict.fromkeys(row[0] for row in rows)]
    theirs = [[s, "the paper", *(f"{by[d]:.2f}" if by[d] is not None else "" for d in SETS)] for s, by in printed]
    caption = (
        "Percent of wrong labels among the words that the first round selects; the paper does not say of "
        "which words its errors are."
    )
    return f"{caption}\n\n{table(['selected by', '', *SETS.values()], [*rows, *theirs])}"


def calibration(series: str) -> str:
    caption = "Expected calibration error of predicted entities on test, in percent, 15 bins of equally many."
    rows = sorted(figures(rows_of("calibration", series=series), "method"), key=lambda row: list(METHODS).index(row[0]))
    return f"{caption}\n\n{table(['', *SETS.values()], [[METHODS[m], *cells] for m, *cells in rows])}"


def detection() -> str:
    caption = "AUROC of a score for wrong words and entities among unlabelled sentences, SeqUST with the defaults."
    rows = figures(rows_of("detection", figure="auroc"), "of", "score", digits=3)
    return f"{caption}\n\n{table(['of', 'score', *SETS.values()], rows)}"


def draw() -> None:
    import label_next as labels

    labels.draw(measured("label_next")["data"], ROOT / "docs/images/label-next.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", action="store_true")
    options = parser.parse_args()
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
    if options.images:
        draw()


if __name__ == "__main__":
    main()
