from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from sequst.corpus.counts import count_types
from sequst.corpus.generated import generate
from sequst.errors import SequstError, UsageError
from sequst.experiments.benchmarks import read_part
from sequst.experiments.cells import Cell, _device_of, run_cell
from sequst.experiments.grid import run_grid
from sequst.experiments.recipe import load_cells
from sequst.experiments.results import KEYS, key_of, read_results

SHORT = "teacher.min_steps=4 teacher.epochs=0.1 evaluations=1"


def run_cells(cells: list[Cell], data: Path, output: Path, jobs: int = 1) -> list[dict[str, Any]]:
    """Run them, and none may fail."""
    outcome = run_grid(cells, data, output, jobs=jobs, commit="abc", device="cpu")
    assert outcome.failed == []
    return outcome.lines


@pytest.fixture(scope="module")
def benchmark(make_benchmark: Callable[..., Path]) -> Path:
    return make_benchmark("ours")


def test_cells_become_lines_and_are_not_run_again(benchmark: Path, tiny_encoder: str, tmp_path: Path) -> None:
    output = tmp_path / "results.jsonl"
    cells = [Cell("t", "ours", seed, recipe=SHORT, encoder=tiny_encoder, shots=2) for seed in (1, 2)]
    lines = run_cells(cells, benchmark, output, jobs=2)
    assert sorted(line["seed"] for line in lines) == [1, 2]
    assert sorted(read_results(output), key=lambda line: line["seed"]) == sorted(lines, key=lambda line: line["seed"])
    for line in lines:
        assert tuple(line) == KEYS
        assert (line["encoder"], line["commit"], line["shots"]) == ("tiny", "abc", 2)
        assert line["tp"] + line["fn"] == count_types(generate().test).mentions.total()
    assert run_cells(cells, benchmark, output) == []
    other = Cell("t", "ours", 1, recipe=SHORT + " teacher.epochs=0.2", encoder=tiny_encoder, shots=2)
    assert other.key not in {cell.key for cell in cells}


def test_lines_tell_cpus_of_two_kinds_apart() -> None:
    devices = [("cpu, 2 threads", "fp32"), ("cpu, 2 threads", "bf16"), ("NVIDIA H200", "bf16")]
    told = [_device_of({"device": device, "precision": precision}) for device, precision in devices]
    assert told == ["cpu, 2 threads", "cpu, 2 threads, bf16", "NVIDIA H200"]


def test_choices_can_be_made_without_the_test_set(benchmark: Path, tiny_encoder: str, tmp_path: Path) -> None:
    cell = Cell("t", "ours", 1, recipe=SHORT, encoder=tiny_encoder, shots=2, score_on="pool")
    (benchmark / "ours" / "test.txt.gz").rename(tmp_path / "away")
    try:
        line, _ = run_cell(cell, benchmark, "c", "cpu")
    finally:
        (tmp_path / "away").rename(benchmark / "ours" / "test.txt.gz")
    assert line["tp"] + line["fn"] > 500
    assert line["experiment"] == "t@pool"


@pytest.mark.parametrize(
    ("pool", "score_on", "aside"), [(None, "pool", 1000), (None, "pool", 50), (10, "pool", 50), (None, "test", 50)]
)
def test_what_is_scored_is_in_no_pool(
    pool: int | None, score_on: Literal["pool", "test"], aside: int, benchmark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sequst import api as running
    from sequst.evaluation import evaluate as evaluating
    from sequst.experiments import cells

    known: list[Any] = []
    unlabelled: list[Any] = []
    scored: list[Any] = []

    def train(labeled: list[Any], folder: Path, **given: Any) -> Any:
        known.extend([*labeled, *given["dev"]])
        unlabelled.extend(given["unlabeled"])
        return SimpleNamespace(tagger=None)

    def evaluate(tagger: None, sentences: list[Any]) -> None:
        scored.extend(sentences)
        raise SequstError("enough")

    monkeypatch.setattr(running, "train", train)
    monkeypatch.setattr(evaluating, "evaluate", evaluate)
    monkeypatch.setattr(cells, "SCORED_ON_POOL", aside)
    with pytest.raises(SequstError, match="enough"):
        run_cell(Cell("t", "ours", 1, "sst", SHORT, shots=2, pool=pool, score_on=score_on), benchmark, "c")
    assert not {id(each) for each in (*known, *unlabelled)} & {id(each) for each in scored}
    rest = len(read_part(benchmark, "ours", "train")) - len(known)
    assert aside < rest / 2 or aside == 1000
    left = {1000: rest // 2, 50: rest - 50}[aside] if score_on == "pool" else rest
    assert len(unlabelled) == (pool or left)
    assert len(scored) == (rest - left if score_on == "pool" else len(read_part(benchmark, "ours", "test")))


def test_with_all_labelled_none_is_left_to_be_scored_on(benchmark: Path) -> None:
    with pytest.raises(UsageError, match="no sentence is left to be scored on"):
        run_cell(Cell("t", "ours", 1, recipe=SHORT, shots=None, score_on="pool"), benchmark, "c")


def test_rounds_go_beside_the_results(benchmark: Path, tiny_encoder: str, tmp_path: Path) -> None:
    brief = " ".join(SHORT.replace("teacher", phase) for phase in ("teacher", "student", "retune"))
    recipe = f"{brief} teacher.min_steps=60 teacher.learning_rate=1e-3 head_rate=10"
    recipe += " max_rounds=1 uncertainty.passes=2"
    cell = Cell("t", "ours", 1, method="sequst", recipe=recipe, encoder=tiny_encoder, shots=2, pool=40)
    [line] = run_cells([cell], benchmark, tmp_path / "r.jsonl")
    rounds = read_results(tmp_path / "r.rounds.jsonl")
    assert [(entry["round"], key_of(entry)) for entry in rounds] == [(0, key_of(line)), (1, key_of(line))]
    assert rounds[1]["error"] > 0
    assert line["rounds"] == 1


def test_a_missing_benchmark(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="SEQUST_DATA"):
        read_part(tmp_path, "conll03", "train")


def test_a_line_that_was_cut_off_is_named(tmp_path: Path) -> None:
    line = Cell("t", "ours", 1).facts
    (tmp_path / "r.jsonl").write_text(json.dumps(line) + '\n{"experiment": "e", "da')
    with pytest.raises(SequstError, match=r"r.jsonl:2: not a line of results"):
        read_results(tmp_path / "r.jsonl")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["main-10shot", "--dataset", "nope"], 2, "nope"),
        (["main-10shot", "--method", "sts"], 2, "error: unknown method 'sts'; did you mean 'sst'?"),
        (["main-10shot", "--jobs", "0"], 2, "--jobs"),
        (["full-data", "--method", "sst"], 2, "with all shots none are left"),
        (["main-10shot", "--set", "teacher.epoch=1"], 2, "did you mean 'teacher.epochs'?"),
        (["main-10shot", "--head", "crff"], 2, "crff"),
        (["nothing.jsonl"], 2, "nothing.jsonl: no such file"),
        (["main-10shot", "--set", "head=crf"], 2, "--head"),
        (["main-10shot", "--set", "bilstm.vectors=a b"], 2, "cannot hold a space"),
        (["main-10shot", "--device", "tpu"], 2, "--device tpu"),
        (["main-10shot", "--output", __file__], 2, "is a file; name a folder"),
        (["main-10shot", "--dataset", "untested"], 2, "test.txt.gz"),
    ],
)
def test_misuse_is_said_without_a_traceback(
    arguments: list[str], code: int, message: str, benchmark: Path, tmp_path: Path, sequst: Callable[..., Any]
) -> None:
    (benchmark / "untested").mkdir(exist_ok=True)
    shutil.copy(benchmark / "ours" / "train.txt.gz", benchmark / "untested")
    more = [] if "--dataset" in arguments else ["--dataset", "ours"]
    more += [] if "--output" in arguments else ["--output", tmp_path / "o"]
    done = sequst("experiment", "run", *arguments, *more, "--data", benchmark, "--commit", "c")
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_results_is_a_recipe_of_its_own(benchmark: Path, tiny_encoder: str, tmp_path: Path) -> None:
    cells = [
        Cell("t", "ours", 1, recipe=SHORT, encoder=tiny_encoder, shots=2),
        Cell("t", "ours", 2, recipe=SHORT, encoder="bilstm", head="crf", shots=3, score_on="pool"),
    ]
    results = tmp_path / "r.jsonl"
    run_cells(cells, benchmark, results)
    again = load_cells(str(results), encoders=[tiny_encoder, "bilstm"])
    assert sorted(again, key=lambda cell: cell.seed) == cells
    assert run_cells(again, benchmark, results) == []  # they are the same cells
    assert load_cells(str(results), encoders=["bilstm"]) == load_cells(str(results), heads=["crf"]) == cells[1:]
    assert load_cells(str(results), ["patience=3"], seeds=[2])[0].recipe == f"{SHORT} patience=3"
    with pytest.raises(UsageError, match="no line of such a cell"):
        load_cells(str(results), datasets=["conll03"])
