"""Tables of runs, made from results/: a function for every block of the pages, and RESULTS.md."""

from __future__ import annotations

import csv
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

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
MAIN = ("finetune", "sst", "sequst")
BOTH = ("conll03", "mit_restaurant")
PAPER = ("main-10shot", "self-training")
SCREENINGS = ("screening", "screening-more", "screening-draws", "screening-rest", "best-parts", "screening-selection")
FULL = "all of the training set, one seed"
Scores = dict[tuple[str, str], dict[int, float]]
"""(dataset, method) -> seed -> test F1."""


def runs(*series: str, **where: Any) -> list[dict[str, Any]]:
    lines = map(json.loads, (ROOT / "results/runs.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["series"] in series and where.items() <= line.items()]


def rows_of(name: str, **where: str) -> list[dict[str, str]]:
    with (ROOT / f"results/{name}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if where.items() <= row.items()]


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


def mean_of(found: Scores, method: str) -> float | None:
    """Over all six sets; None where one is missing."""
    each = [found[dataset, method].values() for dataset in SETS if found.get((dataset, method))]
    return statistics.mean(map(statistics.mean, each)) if len(each) == len(SETS) else None


def score_rows(found: Scores, methods: Iterable[str], full: Scores | None = None, count: int = 5) -> list[list[str]]:
    """Every method on every set with the average, then the full training sets."""
    named = [(METHODS[m], found, m, count) for m in methods]
    named += [(FULL, full, "finetune", 1)] if full else []
    rows = []
    for name, each, method, runs_of_all in named:
        average = mean_of(each, method)
        cells = (spread(each[d, method].values() if (d, method) in each else (), runs_of_all) for d in SETS)
        rows.append([name, *cells, "" if average is None else f"{average:.2f}"])
    return rows


def difference(found: Scores, one: str, other: str, datasets: Iterable[str]) -> str:
    """Mean difference over the seeds that both have, with the p value of a paired t-test."""
    pairs = [
        (f1, found[d, other][seed]) for d in datasets for seed, f1 in sorted(found[d, one].items()) if seed in found[d, other]
    ]
    if not pairs:
        return ""
    test = paired_test([a for a, _ in pairs], [b for _, b in pairs])
    return f"{test.difference:+.2f}" + ("" if test.p is None else f" ({test.p:.3f})")


def difference_row(found: Scores, one: str, other: str) -> list[str]:
    cells = [difference(found, one, other, [d]) for d in SETS]
    return [f"{METHODS[one]} less {METHODS[other]} (p)", *cells, difference(found, one, other, SETS)]


def with_sets(rows: Iterable[Sequence[str]], last: str = "average") -> str:
    return table(["", *SETS.values(), last], rows)


def defaults() -> str:
    plain = scores("plain-fine-tuning")
    row = ["fine-tuning with transformers", *(spread(plain.get((d, "finetune"), {}).values()) for d in SETS)]
    average = mean_of(plain, "finetune")
    rows = score_rows(scores("best-10shot"), MAIN, scores("best-full-data"))
    rows = [[f"{name}, sequst" if name == METHODS["finetune"] else name, *cells] for name, *cells in rows]
    return with_sets([[*row, "" if average is None else f"{average:.2f}"], *rows])


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


def minilm_self_training() -> str:
    found = scores("minilm-sst-sequst")
    return with_sets([*score_rows(found, ("sst", "sequst"), count=3), difference_row(found, "sequst", "sst")])


def against_sst() -> str:
    found = scores(*PAPER, encoder="mpnet")
    rows = [*score_rows(found, MAIN, scores("full-data")), difference_row(found, "sequst", "sst")]
    return with_sets([*rows, ["the paper: fine-tuning / SST / SeqUST", *(printed(d) for d in SETS), printed(None)]])


def printed(dataset: str | None) -> str:
    """What the paper has, of a set or on average."""
    found = [paper.average(m) if dataset is None else paper.figure(dataset, m) for m in MAIN]
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


class Effect(NamedTuple):
    """What a change brings in F1, and the standard error of that."""

    change: str
    f1: float
    error: float


def effects(series: str) -> list[Effect]:
    """Main effects, the largest first, of runs in which several changes are on or off at once.

    A run's F1 is that of its dataset and seed plus the effects of its changes, by least squares. Settings that all runs have
    are no changes; changes that always come together are one.
    """
    lines = runs(series)
    recipes = [set(line["recipe"].split()) for line in lines]
    shared = set.intersection(*recipes)
    names = defaultdict(list)
    for name in sorted(set.union(*recipes) - shared):
        names[tuple(name in recipe for recipe in recipes)].append(name)
    cells = [(line["dataset"], line["seed"]) for line in lines]
    design = np.array([*names, *([cell == own for own in cells] for cell in sorted(set(cells)))], float).T
    f1 = np.array([line["f1"] for line in lines])
    found, _, rank, _ = np.linalg.lstsq(design, f1, rcond=None)
    variance = ((f1 - design @ found) ** 2).sum() / (len(lines) - rank)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    made = [Effect(" ".join(each), float(found[i]), float(errors[i])) for i, each in enumerate(names.values())]
    return sorted(made, key=lambda effect: -effect.f1)


def parts() -> str:
    """What leaving a part of the defaults out costs, and what weights bring beside a draw."""
    without = {effect.change: effect for effect in effects("best-parts")}
    rows = []
    for change, name in (
        ("successions=0", "`transitions`"),
        ("student.hide=0", "`student.hide`"),
        ("abstain=false", "`abstain`"),
        ("robust.loss=cross-entropy", "PHCE"),
        ("gcr.weight=0", "consistency"),
        ("selection.selector=all", "`sampled` in place of `all`"),
        ("choose=best", "`choose: last`"),
    ):
        rows.append([name, f"{-without[change].f1:+.2f} ± {without[change].error:.2f}", "leaving it out, five rounds"])
    one, other = (
        {(line["dataset"], line["seed"]): line["f1"] for line in runs(series, recipe=recipe)}
        for series, recipe in (
            ("screening-weighed", "selection.selector=sampled max_rounds=2 selection.selector=weighed-of-class"),
            ("screening-doubts", "selection.selector=sampled max_rounds=2 adapt=false ensemble.teachers=1"),
        )
    )
    ahead = [one[cell] - other[cell] for cell in one]
    error = statistics.stdev(ahead) / len(ahead) ** 0.5
    row = ["`weighed-of-class`", f"{statistics.mean(ahead):+.2f} ± {error:.2f}", "beside `sampled`, two rounds"]
    return table(["part", "F1", "measured by"], [*rows[:3], row, *rows[3:]])


def fine_tuning() -> str:
    """F1 by head, rates and steps, on the sets that fine-tuning's defaults were chosen on."""
    sets = ("snips", "mit_movie", "conll03")
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in runs("defaults"):
        found[line["encoder"], line["recipe"]][line["dataset"]].append(line["f1"])
    # paper was a standardised head, 1e-4, 1e-3 for the head, 300 steps
    plain, steps = "standardise=false ", " teacher.min_steps=600"
    rows = []
    for head, rate, of_head, count, small, large in (
        ("plain", "1e-4", "1e-4", "300", f"{plain}{{head}}", f"{plain}{{rate}} {{head}}"),
        ("plain", "1e-4", "1e-3", "300", plain.strip(), f"{plain}{{rate}}"),
        ("standardised", "1e-4", "1e-4", "300", "{head}", "{rate} {head}"),
        ("standardised", "1e-4", "1e-3", "300", "", None),
        ("standardised", "2e-4", "2e-4", "300", "{rate} {head}", "{rate} {head}"),
        ("standardised", "2e-4", "2e-4", "600", f"{{rate}} {{head}}{steps}", None),
        ("standardised", "1e-4", "1e-4", "600", None, f"{{rate}} {{head}}{steps}"),
        ("**standardised**", "**1e-4**", "**2e-4**", "**600**", f"{{rate}} {{head}}{steps}", None),
        ("plain", "2e-4", "1e-3", "600", f"{plain}{{rate}}{steps}", None),
    ):
        settings = {
            "rate": f"teacher.learning_rate={rate.strip('*')}",
            "head": f"teacher.head_learning_rate={of_head.strip('*')}",
        }
        cells = []
        for encoder, recipe in (("minilm", small), ("mpnet", large)):
            if recipe is None:
                cells += ["", ""]
                continue
            by_set = found[encoder, f"paper {recipe.format(**settings)}".strip()]
            means = [statistics.mean(by_set[d]) for d in sets]
            cells += [" / ".join(f"{mean:.1f}" for mean in means), f"{statistics.mean(means):.1f}"]
        rows.append([head, rate, of_head, count, *cells])
    heading = ["head", "rate", "rate of the head", "steps"]
    return table([*heading, "`minilm`: SNIPS / MIT Movie / CoNLL-03", "mean", "`mpnet`: the same", "mean"], rows)


def bilstm_vectors() -> str:
    rows = []
    for name, recipe in (("learnt vectors", "paper"), ("GloVe, 50 dimensions", "paper bilstm.vectors=glove")):
        found = scores("bilstm-defaults", recipe=recipe)
        pairs = [found[d, "finetune"] for d in BOTH]
        rows.append([name, *(f"{each[12]:.1f} / {each[21]:.1f}" for each in pairs)])
    title = "10-shot, fine-tuning, F1 on held-out sentences of the training set, seeds 12 / 21"
    return table([title, "CoNLL-03", "MIT Restaurant"], rows)


def bilstm_shape() -> str:
    changes = {
        "as it is": "", "rate x 10": " bilstm.rate=10", "rate x 40": " bilstm.rate=40", "dropout 0.5": " bilstm.dropout=0.5",
        "one layer": " bilstm.layers=1", "64 in each direction": " bilstm.hidden=64",
        "states not standardised": " standardise=false",
    }  # fmt: skip
    means = []
    for change in changes.values():
        lines = runs("bilstm-defaults", recipe=f"paper bilstm.vectors=glove{change}")
        means.append(f"{statistics.mean(line['f1'] for line in lines):.1f}")
    return table(list(changes), [means])


def methods_minilm() -> str:
    rows = []
    for method, name in METHODS.items():
        lines = runs("methods", method=method, encoder="minilm", head="softmax")
        lines = [line for line in lines if line["recipe"] in ("paper", "paper max_rounds=2")]
        both = [[line for line in lines if line["dataset"] == d] for d in BOTH]
        seconds = " / ".join(f"{statistics.mean(line['seconds'] for line in some):.0f}" for some in both)
        rows.append([name, *(spread((line["f1"] for line in some), 3) for some in both), seconds])
    return table(["", "CoNLL-03", "MIT Restaurant", "seconds"], rows)


def encoders_and_heads() -> str:
    rows = []
    for encoder, head in (("minilm", "softmax"), ("minilm", "crf"), ("bilstm", "softmax"), ("bilstm", "crf")):
        lines = runs("methods", "encoder-heads", encoder=encoder, head=head)
        found = {(d, m): [line["f1"] for line in lines if (line["dataset"], line["method"]) == (d, m)]
                 for d in BOTH for m in ("finetune", "sequst")}  # fmt: skip
        rows.append([f"{encoder}, {head}", *(spread(values, 3) for values in found.values())])
    return table(["", "CoNLL-03, fine-tuning", "SeqUST", "MIT Restaurant, fine-tuning", "SeqUST"], rows)


SEEDS = (12, 21, 42)


def some_seeds(found: Scores) -> Scores:
    """The three seeds of most runs."""
    return {cell: {seed: f1 for seed, f1 in by_seed.items() if seed in SEEDS} for cell, by_seed in found.items()}


def after(round_: int) -> Scores:
    """SeqUST's scores after a round of the runs behind the table of the defaults."""
    found: Scores = defaultdict(dict)
    for row in rows_of("rounds", series="best-10shot", method="sequst", round=str(round_)):
        found[row["dataset"], "sequst"][int(row["seed"])] = float(row["f1"])
    return some_seeds(found)


def efforts() -> str:
    rows = []
    for name, found in (
        ("`minilm`, fine-tuning", scores("minilm-sst-sequst")),
        ("`minilm`, `quick`, one seed", scores("effort-quick")),
        ("`minilm`, five rounds of 2,000 sentences, 5 passes", scores("minilm-sst-sequst")),
        ("`mpnet`, fine-tuning", some_seeds(scores("best-10shot"))),
        ("`mpnet`, five rounds of 4,000 sentences, 20 passes", some_seeds(scores("best-10shot"))),
        ("`mpnet`, the same after four rounds", after(4)),
        ("`mpnet`, the same after one round", after(1)),
        ("`mpnet`, five rounds of 2,000 sentences, 5 passes", scores("rounds-of-2000")),
        ("`mpnet`, `default`", scores("effort-default")),
        ("`mpnet`, `thorough`", scores("effort-thorough")),
    ):
        method = "finetune" if name.endswith("fine-tuning") else "sst" if "`quick`" in name else "sequst"
        rows.append([name, *score_rows(found, [method], count=1 if method == "sst" else 3)[0][1:]])
    return with_sets(rows)


def by_round() -> str:
    """SeqUST less SST after each round."""
    rows = []
    for encoder, series in (("minilm", "minilm-sst-sequst"), ("mpnet", "best-10shot")):
        found: dict[str, Scores] = defaultdict(lambda: defaultdict(dict))
        for row in rows_of("rounds", series=series):
            found[row["round"]][row["dataset"], row["method"]][int(row["seed"])] = float(row["f1"])
        cells = [difference(found[str(round_)], "sequst", "sst", SETS) for round_ in range(1, 6)]
        rows.append([f"`{encoder}`", *cells])
    return table(["SeqUST less SST (p)", *(f"round {round_}" for round_ in range(1, 6))], rows)


def more_text() -> str:
    sets = ("conll03", "snips", "mit_restaurant")
    rows = []
    for told, series in (("five rounds of 2,000", "rounds-of-2000"), ("`default`", "effort-default")):
        found = {"4,000 sentences": scores(series), "all of the text": scores(f"{series}-all-text")}
        both = {(d, name): some[d, "sequst"] for d in sets for name, some in found.items()}
        rows += [[f"{told}, {name}", *(spread(both[d, name].values(), 3) for d in sets)] for name in found]
        rows.append(["difference (p)", *(difference(both, "all of the text", "4,000 sentences", [d]) for d in sets)])
    return table(["", *(SETS[d] for d in sets)], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "efforts": efforts,
    "more-text": more_text,
    "sst-by-round": by_round,
    "defaults": defaults,
    "minilm": minilm,
    "against-sst": against_sst,
    "pseudo-labels": pseudo_labels,
    "parts": parts,
    "fine-tuning": fine_tuning,
    "bilstm-vectors": bilstm_vectors,
    "bilstm-shape": bilstm_shape,
    "methods-minilm": methods_minilm,
    "encoders-and-heads": encoders_and_heads,
}

INTRODUCTION = """# Results

Made by `make figures` from [results](results/README.md), which says how to run a series again. Values are means ± standard
deviations of the seeds 12, 21, 42, 87, 100; (n) is the number of runs where it is not five. `mpnet` (all-mpnet-base-v2,
110M parameters) stands in for the paper's bert-base-uncased. Pools hold 4,000 unlabelled sentences at most, the paper's
all. Tags of MultiWOZ are made automatically, and the paper's column of MIT Movie may mix two corpora: absolute figures on
these two do not compare. With the paper's settings there are two rounds at most, and fine-tuning is in part the first
teacher of these runs."""


def results_page() -> str:
    parts = [INTRODUCTION]
    for title, series, ends in (
        ("The defaults", ("best-10shot",), "best-full-data"),
        ("The paper's settings", PAPER, "full-data"),
    ):
        found = scores(*series, encoder="mpnet")
        methods = [m for m in METHODS if any(found.get((d, m)) for d in SETS)]
        parts += [f"## {title}", f"Test F1, 10-shot, `mpnet`, softmax; lines of the series {', '.join(series)}, {ends}."]
        rows = score_rows(found, methods, scores(ends))
        for method in methods:
            theirs = [paper.figure(d, method) for d in SETS]
            cells = [f"{each.f1:.2f}" if each else "" for each in theirs]
            rows.append([f"{METHODS[method]}, the paper", *cells, f"{paper.average(method):.2f}"])
        parts.append(with_sets(rows))
        rows = [[METHODS[m], *difference_row(found, m, "sst")[1:]] for m in methods if m != "sst"]
        parts += ["### Less SST", "Mean difference over shared seeds (p of a paired t-test).", with_sets(rows, "all")]
        parts += ["### Over the rounds", rounds(series[0]), "### Errors of selected words", selection(series[0])]
        parts += ["### Calibration", calibration(series[0])]
    parts += ["## Ablation", ablation()]
    parts += ["## The default encoder", small_encoders(), "## What tells errors", detection()]
    return "\n\n".join(parts) + "\n"


ABLATION = {
    "without-selection": "without selection", "without-confidence": "without confidence",
    "without-certainty": "without certainty", "without-phce": "without PHCE", "without-gcr": "without GCR",
}  # fmt: skip


def ablation() -> str:
    """The paper's five ablations with the default settings; SeqUST and SST on the same seeds."""
    sets = ("snips", "mit_movie", "conll03")
    found, whole = scores("best-ablation"), scores("best-10shot", encoder="mpnet")
    rows = []
    for method in ("sst", "sequst"):
        theirs = [paper.figure(d, method) for d in sets]
        cells = [spread(f1 for seed, f1 in whole[d, method].items() if seed in _seeds(found, d)) for d in sets]
        rows.append([METHODS[method], *cells, *(f"{each.f1:.2f}" if each else "" for each in theirs)])
    for method, name in ABLATION.items():
        theirs = [paper.figure(d, method) for d in sets]
        cells = [spread(found.get((d, method), {}).values()) for d in sets]
        rows.append([name, *cells, *(f"{each.f1:.2f}" if each else "" for each in theirs)])
    caption = "Test F1, 10-shot, `mpnet`, default settings; SST and SeqUST on the ablations' seeds. Series best-ablation."
    heading = ["", *(SETS[d] for d in sets), *(f"{SETS[d]}, the paper" for d in sets)]
    return f"{caption}\n\n{table(heading, rows)}"


def _seeds(found: Scores, dataset: str) -> set[int]:
    """Those of any ablation on a dataset."""
    return {seed for (d, _), by_seed in found.items() if d == dataset for seed in by_seed}


def small_encoders() -> str:
    return "\n\n".join(
        [
            "`minilm` (all-MiniLM-L6-v2, 22.7M parameters, uncased), 10-shot, test F1.",
            "### With the defaults",
            "Fine-tuning, seeds 12, 21, 42; with the paper's settings all five. Series minilm-defaults, finetune.",
            minilm(),
            "Self-training, seeds 12, 21, 42, five rounds of 2,000 sentences, series minilm-sst-sequst.",
            minilm_self_training(),
            "### With the paper's settings",
            "Seeds 12, 21, 42, two rounds at most, mean seconds of a run beside fourteen others on one H200. Series methods.",
            methods_minilm(),
            "Each pair of encoder and head; the BiLSTM has GloVe's vectors of 50 dimensions. Series methods, encoder-heads.",
            encoders_and_heads(),
        ]
    )


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
