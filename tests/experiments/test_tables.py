from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import UsageError
from sequst.experiments import paper
from sequst.experiments.cells import Cell
from sequst.experiments.rendering import Table, to_csv, to_latex, to_markdown
from sequst.experiments.results import KEYS, Results
from sequst.experiments.tables import MISSING, tables_of
from sequst.methods.registry import find_method


def tables(lines: list[dict[str, Any]], **findings: list[dict[str, Any]]) -> list[Table]:
    return tables_of(Results.of(lines, **findings))


def line(dataset: str, method: str, seed: int, f1: float, shots: int | None = 10, **more: Any) -> dict[str, Any]:
    facts = {
        "experiment": "t",
        "recipe": "default",
        "encoder": "mpnet",
        "head": "softmax",
        "pool": 4000,
    }
    recipe = more.get("recipe", "default")
    try:
        facts["settings_hash"] = Cell("t", dataset, seed, method, recipe, "mpnet").settings().hash(find_method(method).unused)
    except UsageError:  # a method or a setting that was never there
        facts["settings_hash"] = f"hash of {recipe}"
    return {**facts, "dataset": dataset, "method": method, "seed": seed, "f1": f1, "shots": shots, **more}


LINES = [
    *(line("conll03", "finetune", seed, f1) for seed, f1 in ((12, 60.0), (21, 70.0))),
    *(line("conll03", "sst", seed, f1) for seed, f1 in ((12, 66.0), (21, 74.0), (42, 80.0))),
    *(line("conll03", "sequst", seed, f1) for seed, f1 in ((12, 67.0), (21, 76.0))),
    line("conll03", "finetune", 12, 90.0, shots=None, pool=None),
    line("mine", "sst", 12, 50.0),
    line("conll03", "sst", 12, 1.0, experiment="tuning@pool"),
]


def row(table: Any, method: str, kind: str) -> dict[str, str]:
    """By column: the row of this kind below the method's name."""
    at = [cells[0] for cells in table.rows].index(method)
    below = itertools.takewhile(lambda cells: not cells[0], table.rows[at + 1 :])
    [cells] = [cells for cells in (table.rows[at], *below) if cells[1] == kind]
    return dict(zip(table.heading, cells, strict=True))


def test_ours_stands_beside_the_papers_by_hand() -> None:
    scores, differences, _ = tables(LINES)
    assert (scores.group.title, scores.title) == ("10-shot, mpnet, softmax", "scores")
    assert scores.heading == ["method", "", *paper.datasets(), "mine", "average"]
    assert row(scores, "full data", "ours")["conll03"] == "90.00"
    assert row(scores, "full data", "paper")["average"] == "88.73"
    assert row(scores, "finetune", "ours")["conll03"] == "65.00 ± 7.07 (2)"
    assert row(scores, "sequst", "ours")["conll03"] == "71.50 ± 6.36 (2)"
    assert row(scores, "sequst", "paper")["conll03"] == "79.10"
    assert row(scores, "sequst", "difference")["conll03"] == "-7.60"
    assert row(scores, "sequst", "gap closed, %")["conll03"] == "26"  # (71.5 - 65) / (90 - 65)
    assert row(scores, "sequst", "ours")["ontonotes"] == MISSING
    assert row(scores, "sequst", "ours")["average"] == MISSING
    assert row(scores, "sequst", "paper")["average"] == "77.78"
    assert row(scores, "sst", "ours")["mine"] == "50.00 (1)"
    assert row(scores, "sst", "paper")["mine"] == MISSING
    errata = [note for note in scores.notes if note.startswith("the paper, ")]  # of rows that are here
    assert errata == ["the paper, sst, mit_movie: the ablation prints 72.25, the main table 71.14"]
    assert differences.heading == ["method", "conll03", "mine", "all"]
    # differences of 1 and 2 over the shared seeds: t = 3 with one degree of freedom
    assert differences.rows == [
        ["finetune", "-5.00 (0.126)", MISSING, "-5.00 (0.126)"],
        ["sequst", "+1.50 (0.205)", MISSING, "+1.50 (0.205)"],
    ]


def test_averages_are_there_when_all_six_are() -> None:
    lines = [line(dataset, "sst", 12, f1) for dataset, f1 in zip(paper.datasets(), (1, 2, 3, 4, 5, 6), strict=True)]
    [scores] = tables(lines)
    assert row(scores, "sst", "ours")["average"] == "3.50"
    assert row(scores, "sst", "difference")["average"] == f"{3.5 - paper.average('sst'):+.2f}"


def test_several_recipes_have_rows_of_their_own_and_the_same_twice_is_refused() -> None:
    lines = [line("conll03", "metast", 12, 1.0), line("conll03", "metast", 12, 2.0, recipe="metast.labels=hard")]
    [scores] = tables(lines)
    assert [cells[0] for cells in scores.rows if cells[1] == "ours"][1:] == ["metast", "metast (metast.labels=hard)"]
    assert row(scores, "metast (metast.labels=hard)", "paper")["conll03"] == "76.88"
    with pytest.raises(UsageError, match="two results for metast on conll03, 10-shot, mpnet, softmax, seed 12"):
        tables([lines[0], line("conll03", "metast", 12, 3.0)])
    assert tables([lines[0], lines[0]]) == tables(lines[:1])


def test_every_format_holds_every_cell() -> None:
    made = tables(LINES)
    cells = {cell for table in made for cells in table.rows for cell in cells}
    read = list(csv.reader(io.StringIO(to_csv(made))))
    assert cells <= {cell for cells in read for cell in cells}
    markdown = to_markdown(made)
    assert {text.count("|") for text in markdown.split("## ")[1].splitlines() if "|" in text} == {11}
    assert cells - {""} <= {cell.strip() for text in markdown.splitlines() for cell in text.split("|")}
    latex = to_latex(made)
    assert r"65.00 $\pm$ 7.07 (2)" in latex
    assert r"gap closed, \%" in latex
    assert r"mit\_movie" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3


def test_rounds_by_hand() -> None:
    lines = [line("conll03", "sst", seed, 1.0) for seed in (12, 21)]
    rounds = [{**lines[0], "round": n, "f1": f1} for n, f1 in enumerate((50.0, 54.0, 52.0))]
    rounds += [{**lines[1], "round": n, "f1": f1} for n, f1 in enumerate((40.0, 46.0))]  # stopped after one round
    rounds += [{**lines[1], "experiment": "again", "round": 0, "f1": 99.0}]  # of another experiment: the first counts
    [_, table] = tables(lines, rounds=rounds)
    assert table.heading == ["method", "round", "", "conll03"]
    assert table.rows == [
        ["sst", "0", "F1", "45.00 ± 7.07 (2)"], ["sst", "1", "F1", "50.00 ± 5.66 (2)"], ["sst", "2", "F1", "49.00 ± 4.24 (2)"],
    ]  # fmt: skip


def test_errors_of_selected_words_stand_beside_the_papers() -> None:
    cell = line("conll03", "sequst", 12, 1.0)
    found = [
        {
            **cell,
            "seed": seed,
            "strategy": by,
            "error": error,
            "entity_error": 2 * error,
            "selected_of_entity_words": 50.0,
        }
        for seed in (12, 21)
        for by, error in (("none", 10.0), ("both", 4.0 + seed))
    ]
    [_, table] = tables([cell], selection=found)
    assert table.rows[0] == ["sequst", "none", "all words", "10.00 ± 0.00 (2)"]
    assert ["sequst", "both", "entity words", "41.00 ± 12.73 (2)"] in table.rows
    assert ["sequst", "both", "entity words taken", "50.00 ± 0.00 (2)"] in table.rows
    assert ["paper", "none", "", f"{paper.selection_error('conll03', 'none'):.2f}"] in table.rows


def test_calibration() -> None:
    cells = [line("conll03", "sst", 12, 1.0), line("conll03", "sequst", 12, 2.0)]
    *_, calibration = tables(cells, reliability=[{**cells[1], "ece": 7.0, "bins": []}])
    assert calibration.rows == [["sequst", "ECE, %", "7.00 (1)"]]


def test_what_tells_errors() -> None:
    cell = line("conll03", "sequst", 12, 1.0)
    found = [
        {**cell, "seed": seed, "of": of, "score": score, "auroc": auroc + seed / 1000, "risk_coverage": risk}
        for seed in (12, 22)
        for of, score, auroc, risk in (("words", "certainty", 0.8, 3.0), ("entities", "mean certainty", 0.7, None))
    ]
    [_, table] = tables([cell], detection=found)
    assert table.rows == [
        ["sequst", "words", "certainty", "AUROC", "0.817 ± 0.007 (2)"],
        ["sequst", "words", "certainty", "AURC, %", "3.000 ± 0.000 (2)"],
        ["sequst", "entities", "mean certainty", "AUROC", "0.717 ± 0.007 (2)"],
    ]


def test_recipes_that_come_to_the_same_settings_are_one_row() -> None:
    same = [
        line("conll03", "finetune", 12, 1.0, settings_hash="h"),
        line("conll03", "finetune", 21, 3.0, settings_hash="h", recipe="max_rounds=2"),
    ]
    [scores] = tables(same)
    assert row(scores, "finetune", "ours")["conll03"] == "2.00 ± 1.41 (2)"


def test_pools_and_settings_tell_rows_apart() -> None:
    lines = [line("conll03", "sst", 12, 50.0, pool=100), line("conll03", "sst", 21, 70.0, settings_hash="one")]
    lines += [line("conll03", "sst", 42, 90.0, settings_hash="other")]
    scores, *differences = tables(lines)
    assert row(scores, "sst (100 unlabelled)", "ours")["conll03"] == "50.00 (1)"
    assert row(scores, "sst (4,000 unlabelled, settings one)", "ours")["conll03"] == "70.00 (1)"
    assert row(scores, "sst (4,000 unlabelled, settings other)", "ours")["conll03"] == "90.00 (1)"
    assert len(differences) == 3  # to each variant of the baseline
    assert "unlabelled sentences at most, where a row's name says nothing else: 100, 4,000" in scores.notes
    finetune = [line("conll03", "finetune", 12, 50.0, pool=None), line("conll03", "finetune", 21, 70.0, pool=4000)]
    assert row(tables(finetune)[0], "finetune", "ours")["conll03"] == "60.00 ± 14.14 (2)"  # it has no use for a pool


def test_settings_that_not_all_rows_have_are_told() -> None:
    lines = [
        line("conll03", method, 12, 1.0, recipe=f"paper {own}".strip())
        for method, own in (("finetune", ""), ("sst", "max_rounds=2"), ("sequst", "max_rounds=2 patience=1"))
    ]
    [scores, _] = tables(lines)
    assert [cells[0] for cells in scores.rows if cells[1] == "ours"][1:] == [
        "finetune", "sst (max_rounds=2)", "sequst (max_rounds=2 patience=1)",
    ]  # fmt: skip
    alike = [line("conll03", method, 12, 1.0, recipe="max_rounds=2") for method in ("sst", "sequst")]
    assert [cells[0] for cells in tables(alike)[0].rows if cells[1] == "ours"][1:] == ["sst", "sequst"]
    several = [
        line("conll03", "finetune", 12, f1, recipe=recipe) for f1, recipe in ((60.0, "default"), (65.0, "teacher.epochs=9"))
    ]
    full = line("conll03", "finetune", 12, 90.0, shots=None, pool=None)
    scores = tables([*several, full, line("conll03", "sst", 12, 70.0)])[0]
    assert not any(cells[1].startswith("gap closed") for cells in scores.rows)  # there is no one gap to close


def test_full_data_is_a_table_too_and_has_one_score() -> None:
    [table] = tables([line("conll03", "finetune", 12, 90.0, shots=None, pool=None)])
    assert (table.group.title, table.title) == ("full data, mpnet, softmax", "scores")
    assert row(table, "finetune", "ours")["conll03"] == "90.00 (1)"
    assert row(table, "finetune", "paper")["conll03"] == "91.90"
    with pytest.raises(
        UsageError, match=r"two results for finetune on conll03, full data.* 90.00 and, of experiment t .* 20.00"
    ):
        tables([line("conll03", "finetune", 12, f1, None, pool=None) for f1 in (90.0, 20.0)])


def test_a_method_that_is_no_more_stands_last() -> None:
    scores, *_ = tables([line("conll03", "gone", 12, 1.0), line("conll03", "sst", 12, 2.0)])
    assert [cells[0] for cells in scores.rows if cells[0]] == ["full data", "sst", "gone"]


def test_the_verb(sequst: Callable[..., Any], write: Callable[..., Path], tmp_path: Path) -> None:
    import json

    full = [{**dict.fromkeys(KEYS, 0), "device": "cpu", "commit": "0", **each} for each in LINES]
    path = write("results.jsonl", "".join(json.dumps(each) + "\n" for each in full))
    write("results.rounds.jsonl", "")
    assert sequst("experiment", "table", path, tmp_path / "results.rounds.jsonl").stdout == to_markdown(tables(LINES))
    odd = write("odd.jsonl", '{"words": []}\n')
    assert "odd.jsonl:1: not a line of results" in sequst("experiment", "table", odd).stderr
    for place in (tmp_path, path):
        done = sequst("experiment", "table", place)
        assert done.returncode == 0, done.stderr
        assert done.stdout == to_markdown(tables(LINES))
    assert "less finetune" in sequst("experiment", "table", path, "--baseline", "finetune").stdout
    assert "did you mean 'latex'" in sequst("experiment", "table", path, "--format", "latx").stderr
    assert "no such file" in sequst("experiment", "table", tmp_path / "nowhere").stderr
