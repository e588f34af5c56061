from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import UsageError
from sequst.experiments import paper
from sequst.experiments.benchmarks import BENCHMARKS
from sequst.experiments.recipe import load_cells, load_recipe, recipe_names

SHIPPED = {
    "full-data", "main-10shot", "more-shots", "ablation", "selection-error", "base-encoders", "rounds", "smoke", "best-10shot",
    "best-more-shots", "best-base-encoders", "best-full-data", "best-ablation",
}  # fmt: skip


def test_all_recipes_parse_and_every_cell_is_another() -> None:
    assert set(recipe_names()) == SHIPPED
    for name in SHIPPED:
        recipe = load_recipe(name)
        cells = recipe.cells()
        assert recipe.about
        assert {cell.dataset for cell in cells} <= set(BENCHMARKS)
        assert len(set(cells)) == len(cells)
        assert {cell.experiment for cell in cells} == {name}


@pytest.mark.parametrize("name", ["full-data", "main-10shot", "best-10shot", "more-shots", "ablation", "base-encoders"])
def test_every_cell_of_the_papers_tables_has_its_figure(name: str) -> None:
    for cell in load_recipe(name).cells():
        encoder = cell.encoder.removesuffix("-base-uncased")
        assert paper.figure(cell.dataset, cell.method, cell.shots, encoder, cell.head) is not None


def test_the_main_table() -> None:
    cells = load_recipe("main-10shot").cells()
    assert len(cells) == 6 * 7 * 5
    assert {cell.pool for cell in cells if cell.method == "finetune"} == {None}
    assert {cell.pool for cell in cells if cell.method != "finetune"} == {4000}
    assert [cell.seed for cell in cells] == sorted((cell.seed for cell in cells), key=(12, 21, 42, 87, 100).index)


def test_lists_multiply_and_encoders_ignore_what_is_not_theirs(write: Callable[..., Path]) -> None:
    lists = "datasets: ours\nmethods: [sst, sequst]\nencoders: [minilm, bilstm]\nseeds: [1]\nshots: [all, 3]\n"
    path = write("mine.yaml", lists + "settings: [patience=3, bilstm.layers=1]\n")
    recipe = load_recipe(str(path))
    assert recipe.name == "mine"
    found = {(c.method, c.encoder): c for c in recipe.cells()}
    assert len(found) == len(recipe.cells()) == 4  # all of the training set leaves these methods nothing unlabelled
    assert {c.recipe for c in found.values()} == {"patience=3 bilstm.layers=1"}
    plain = {e: dataclasses.replace(found["sst", e], recipe="patience=3").key for e in ("minilm", "bilstm")}
    assert found["sst", "minilm"].key == plain["minilm"]
    assert found["sst", "bilstm"].key != plain["bilstm"]
    assert {c.method for c in load_cells(str(path), methods=["sst"], seeds=[])} == {"sst"}


def test_settings_from_the_command_line_are_on_top(write: Callable[..., Path]) -> None:
    lists = "datasets: a\nseeds: [1]\nmethods: [sst]\nsettings: [max_rounds=4]\nvariants: [patience=1]\n"
    [cell] = load_cells(str(write("o.yaml", lists)), ["max_rounds=2", "patience=9"])
    assert (cell.settings().max_rounds, cell.settings().patience) == (2, 9)
    assert load_cells("smoke", ["patience=9"], methods=["finetune"])[0].recipe.endswith(" patience=9")


def test_the_recipe_in_the_docs(write: Callable[..., Path]) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/run-the-papers-experiments.md").read_text(encoding="utf-8")
    [text] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    cells = load_cells(str(write("mine.yaml", text)))
    assert {cell.method for cell in cells if cell.shots is None} == {"finetune"}  # the others would have nothing unlabelled
    assert {cell.pool for cell in cells if cell.method == "sst"} == {4000, None}
    of = {method: {cell.recipe for cell in cells if cell.method == method} for method in ("finetune", "sequst")}
    assert len(of["finetune"]) == 1  # of variants that it does not look at one is enough
    assert len(of["sequst"]) == 2


def test_variants_multiply_the_cells(write: Callable[..., Path]) -> None:
    lists = "datasets: a\nseeds: [1]\nmethods: [sst]\n"
    path = write("v.yaml", lists + "settings: [patience=3]\nvariants: [default, max_rounds=2 patience=1]\n")
    assert [cell.recipe for cell in load_recipe(str(path)).cells()] == ["patience=3", "patience=3 max_rounds=2 patience=1"]


def test_pools_multiply_the_cells_of_methods_that_learn_from_them(write: Callable[..., Path]) -> None:
    path = write("p.yaml", "datasets: a\nseeds: [1]\nmethods: [finetune, sst]\npool: [4000, all, 900]\n")
    found = [(cell.method, cell.pool) for cell in load_recipe(str(path)).cells()]
    assert found == [("finetune", None), ("sst", 4000), ("sst", None), ("sst", 900)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("datasets: [a]\nmethod: sst\n", "unknown 'method'; did you mean 'methods'?"),
        ("methods: [sst]\n", "names no datasets"),
        ("datasets: [a]\nmethods: [sts]\n", "unknown method 'sts'"),
        ("datasets: [a]\nshots: [ten]\n", "shots must be a list of whole numbers above 0, or all"),
        ("datasets: [a]\nseeds: []\n", "seeds must be a list of whole numbers"),
        ("datasets: [a]\nheads: [crff]\n", "crff"),
        ("datasets: [a]\nscore_on: train\n", "is none of test, pool"),
        ("datasets: [a]\npool: -1\n", "pool must be a list of whole numbers above 0, or all"),
        ("datasets: [a]\npool: many\n", "pool must be a list of whole numbers above 0, or all"),
        ("datasets: [a]\nsettings: [teacher.epoch=1]\n", "did you mean 'teacher.epochs'?"),
        ("datasets: [a]\nvariants: [patience]\n", "patience"),
        ("datasets: [a]\nshots: [0]\n", "shots must be a list of whole numbers above 0, or all"),
        ("datasets: [a]\nabout: [1]\n", "about must be a text"),
        ("datasets: [a]\nbase: worst\n", "base 'worst' is none of default, paper, quick, thorough"),
        ("datasets: [a]\nsettings: [head=crf]\n", "r.yaml: head=crf: a recipe has its heads"),
        ("datasets: [a]\nvariants: [seed=1]\n", "r.yaml: seed=1: a recipe has its seeds"),
        ("datasets: [a\n", "not valid YAML"),
        ("datasets: [a]\nseeds: [1]\ndatasets: [b]\n", "line 3: 'datasets' again, which line 1 has"),
        ("- a\n", "expected names and values"),
        ("datasets: [a]\nsettings: [3]\n", "settings must be a list of texts"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said(text: str, told: str, write: Callable[..., Path]) -> None:
    with pytest.raises(UsageError) as error:
        load_recipe(str(write("r.yaml", text)))
    assert told in str(error.value)


def test_unknown_recipes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'main-10shot'"):
        load_recipe("main-10-shot")
    with pytest.raises(UsageError, match="no such file"):
        load_recipe(str(tmp_path / "no.yaml"))


def test_recipes_are_listed(sequst: Callable[..., Any]) -> None:
    shown = sequst("experiment", "recipes").stdout
    assert all(name in shown for name in SHIPPED)
    assert "210 cells" in shown
