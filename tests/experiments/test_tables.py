from __future__ import annotations

import csv
import io
import itertools
import xml.etree.ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import UsageError
from sequst.experiments import paper
from sequst.experiments.rendering import Table, to_csv, to_html, to_latex, to_markdown
from sequst.experiments.results import Results
from sequst.experiments.tables import MISSING, tables_of


def tables(lines: list[dict[str, Any]], **findings: list[dict[str, Any]]) -> list[Table]:
    return tables_of(Results.of(lines, **findings))


def line(dataset: str, method: str, seed: int, f1: float, shots: int | None = 10, **more: Any) -> dict[str, Any]:
    facts = {
        "experiment": "t",
        "recipe": "default",
        "encoder": "mpnet",
        "head": "softmax",
        "sampler": "sentences",
        "pool": 4000,
    }
    facts["settings_hash"] = f"hash of {more.get('recipe', 'default')}"
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
    scores, differences = tables(LINES)
    assert scores.title == "10-shot, mpnet, softmax"
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
    assert not any(note.startswith("the paper, ") for note in scores.notes)
    [other] = tables([line("conll03", "seqvat", 12, 50.0)])
    assert any("70.25" in note for note in other.notes)  # an erratum of a row that is here
    assert not any("50-shot" in note for note in other.notes)
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
    assert [cells[0] for cells in scores.rows if cells[1] == "ours"][1:] == ["metast (default)", "metast (metast.labels=hard)"]
    assert row(scores, "metast (metast.labels=hard)", "paper")["conll03"] == "76.88"
    with pytest.raises(UsageError, match="two results for metast on conll03, 10-shot, mpnet, softmax, seed 12"):
        tables([lines[0], line("conll03", "metast", 12, 3.0)])
    assert tables([lines[0], lines[0]]) == tables(lines[:1])


def test_every_format_holds_every_cell() -> None:
    made = tables(LINES)
    cells = {cell for table in made for cells in table.rows for cell in cells}
    read = list(csv.reader(io.StringIO(to_csv(made))))
    assert cells <= {cell for cells in read for cell in cells}
    page = xml.etree.ElementTree.fromstring(f"<div>{to_html(made)}</div>")
    assert cells - {""} <= {cell.text or "" for cell in page.iter("td")}
    markdown = to_markdown(made)
    assert {text.count("|") for text in markdown.split("## ")[1].splitlines() if "|" in text} == {11}
    assert cells - {""} <= {cell.strip() for text in markdown.splitlines() for cell in text.split("|")}
    latex = to_latex(made)
    assert r"65.00 $\pm$ 7.07 (2)" in latex
    assert r"gap closed, \%" in latex
    assert r"mit\_movie" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2


def test_rounds_by_hand() -> None:
    lines = [line("conll03", "sst", seed, 1.0) for seed in (12, 21)]
    rounds = [{**lines[0], "round": n, "f1": f1} for n, f1 in enumerate((50.0, 54.0, 52.0))]
    rounds += [{**lines[1], "round": n, "f1": f1} for n, f1 in enumerate((40.0, 46.0))]  # stopped after one round
    rounds += [{**lines[1], "experiment": "again", "round": 0, "f1": 99.0}]  # of another experiment: the first counts
    old = {name: value for name, value in line("snips", "sst", 12, 1.0).items() if name != "f1"}
    scores, _, table = tables(lines, rounds=[*rounds, {**old, "round": 0, "teacher_f1": 9.0}])
    assert row(scores, "finetune", "ours")["conll03"] == "45.00 ± 7.07 (2)"  # the first teachers
    assert any("first teachers of other runs (conll03)" in note for note in scores.notes)
    assert table.heading == ["method", "round", "conll03"]
    assert table.rows == [
        ["sst", "0", "45.00 ± 7.07 (2)"], ["sst", "1", "50.00 ± 5.66 (2)"], ["sst", "2", "49.00 ± 4.24 (2)"],
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
    assert table.rows[0] == ["none", "all words", "10.00 ± 0.00 (2)"]
    assert table.rows[3] == ["", "paper", f"{paper.selection_error('conll03', 'none'):.2f}"]
    both = [cells[0] for cells in table.rows].index("both")
    assert table.rows[both + 1] == ["", "entity words", "41.00 ± 12.73 (2)"]
    assert table.rows[both + 2] == ["", "entity words taken", "50.00 ± 0.00 (2)"]


def test_calibration_and_classes() -> None:
    cells = [line("conll03", "sst", 12, 1.0), line("conll03", "sequst", 12, 2.0)]
    kept = {"reliability": [{**cells[1], "ece": 7.0, "bins": []}], "words": [{**cells[1], "silhouette": 0.25}]}
    *_, calibration, classes = tables(cells, **kept)
    assert calibration.rows == [["sequst", "7.00 (1)"]]
    assert classes.rows == [["sequst", "0.250 (1)"]]


def test_recipes_that_come_to_the_same_settings_are_one_row() -> None:
    same = [
        line("conll03", "finetune", 12, 1.0, settings_hash="h"),
        line("conll03", "finetune", 21, 3.0, settings_hash="h", recipe="max_rounds=2"),
    ]
    [scores] = tables(same)
    assert row(scores, "finetune", "ours")["conll03"] == "2.00 ± 1.41 (2)"


def test_the_verb(sequst: Callable[..., Any], write: Callable[..., Path], tmp_path: Path) -> None:
    import json

    path = write("results.jsonl", "".join(json.dumps(each) + "\n" for each in LINES))
    for place in (tmp_path, path):
        done = sequst("experiment", "table", place)
        assert done.returncode == 0, done.stderr
        assert done.stdout == to_markdown(tables(LINES))
    assert "less finetune" in sequst("experiment", "table", path, "--baseline", "finetune").stdout
    assert "did you mean 'latex'" in sequst("experiment", "table", path, "--format", "latx").stderr
    assert "no such file" in sequst("experiment", "table", tmp_path / "nowhere").stderr
