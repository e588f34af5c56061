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
from sequst.experiments.tables import MISSING, tables_of, to_csv, to_html, to_latex, to_markdown


def line(dataset: str, method: str, seed: int, f1: float, shots: int | None = 10, **more: Any) -> dict[str, Any]:
    facts = {
        "experiment": "t",
        "recipe": "default",
        "encoder": "mpnet",
        "head": "softmax",
        "sampler": "sentences",
        "pool": 4000,
    }
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
    scores, differences = tables_of(LINES)
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
    [other] = tables_of([line("conll03", "seqvat", 12, 50.0)])
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
    [scores] = tables_of(lines)
    assert row(scores, "sst", "ours")["average"] == "3.50"
    assert row(scores, "sst", "difference")["average"] == f"{3.5 - paper.average('sst'):+.2f}"


def test_several_recipes_have_rows_of_their_own_and_the_same_twice_is_refused() -> None:
    lines = [line("conll03", "metast", 12, 1.0), line("conll03", "metast", 12, 2.0, recipe="metast.labels=hard")]
    [scores] = tables_of(lines)
    assert [cells[0] for cells in scores.rows if cells[1] == "ours"][1:] == ["metast (default)", "metast (metast.labels=hard)"]
    assert row(scores, "metast (metast.labels=hard)", "paper")["conll03"] == "76.88"
    with pytest.raises(UsageError, match="two results for metast on conll03, 10-shot, mpnet, softmax, seed 12"):
        tables_of([lines[0], line("conll03", "metast", 12, 3.0)])
    assert tables_of([lines[0], lines[0]]) == tables_of(lines[:1])


def test_every_format_holds_every_cell() -> None:
    tables = tables_of(LINES)
    cells = {cell for table in tables for cells in table.rows for cell in cells}
    read = list(csv.reader(io.StringIO(to_csv(tables))))
    assert cells <= {cell for cells in read for cell in cells}
    page = xml.etree.ElementTree.fromstring(f"<div>{to_html(tables)}</div>")
    assert cells - {""} <= {cell.text or "" for cell in page.iter("td")}
    markdown = to_markdown(tables)
    assert {text.count("|") for text in markdown.split("## ")[1].splitlines() if "|" in text} == {11}
    assert cells - {""} <= {cell.strip() for text in markdown.splitlines() for cell in text.split("|")}
    latex = to_latex(tables)
    assert r"65.00 $\pm$ 7.07 (2)" in latex
    assert r"gap closed, \%" in latex
    assert r"mit\_movie" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2


def test_the_verb(sequst: Callable[..., Any], write: Callable[..., Path], tmp_path: Path) -> None:
    import json

    path = write("results.jsonl", "".join(json.dumps(each) + "\n" for each in LINES))
    for place in (tmp_path, path):
        done = sequst("experiment", "table", place)
        assert done.returncode == 0, done.stderr
        assert done.stdout == to_markdown(tables_of(LINES))
    assert "less finetune" in sequst("experiment", "table", path, "--baseline", "finetune").stdout
    assert "did you mean 'latex'" in sequst("experiment", "table", path, "--format", "latx").stderr
    assert "no such file" in sequst("experiment", "table", tmp_path / "nowhere").stderr
