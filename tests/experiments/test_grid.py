from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from sequst.errors import SequstError, UsageError
from sequst.experiments import engines
from sequst.experiments.cells import Cell
from sequst.experiments.grid import run_grid
from sequst.experiments.results import KEYS, read_results
from sequst.files import lock

SHORT = "teacher.min_steps=2 teacher.epochs=0.1 evaluations=1"


@pytest.fixture(scope="module")
def data(make_benchmark: Callable[..., Path]) -> Path:
    return make_benchmark("mit_restaurant", test=20)


def cell(seed: int, recipe: str = SHORT) -> Cell:
    return Cell("g", "mit_restaurant", seed, recipe=recipe, encoder="bilstm", shots=2)


def test_a_failed_cell_is_recorded_and_tried_again(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "results.jsonl"
    told: list[tuple[int, int]] = []
    bad = cell(2, "bilstm.vectors=nowhere.txt")
    outcome = run_grid(
        [cell(1), bad, cell(1)], data, output, commit="c", device="cpu",
        tell=lambda cell, result, grid: told.append((grid.ended, grid.total)),
    )  # fmt: skip
    assert [line["seed"] for line in outcome.lines] == [1]
    [(failed, error)] = outcome.failed
    assert failed == bad
    assert "no such file" in error
    [line] = read_results(tmp_path / "results.failures.jsonl")
    assert (line["seed"], line["recipe"]) == (2, "bilstm.vectors=nowhere.txt")
    assert told == [(1, 2), (2, 2)]
    again = run_grid([cell(1), bad], data, output, commit="c", device="cpu")
    assert (again.skipped, again.lines, len(again.failed)) == (1, [], 1)


def test_a_device_that_is_not_there_is_one_error(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match="this torch sees no GPU"):
        run_grid([cell(1), cell(2)], data, tmp_path / "r.jsonl", commit="c", device="cuda")
    ended: list[bool] = []
    machines = [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {"GPU": 1.0}}]
    cluster = SimpleNamespace(
        is_initialized=lambda: False, init=lambda **_: None, nodes=lambda: machines, shutdown=lambda: ended.append(True)
    )
    monkeypatch.setattr(engines, "needed", lambda module, extra: cluster)
    with pytest.raises(UsageError, match="no machine of the Ray cluster has a GPU"):
        run_grid([cell(1), cell(2)], data, tmp_path / "r.jsonl", commit="c", device="cuda", engine="ray")
    assert ended == [True]
    assert not (tmp_path / "r.failures.jsonl").exists()


def test_a_killed_worker_costs_its_own_cell_alone(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    kept = engines._Worker.give

    def give(self: Any, cell: Cell) -> None:
        kept(self, cell)
        if not made:
            made.append(self)
            os.kill(self._process.pid, signal.SIGKILL)

    monkeypatch.setattr(engines._Worker, "give", give)
    outcome = run_grid([cell(seed) for seed in (1, 2)], data, tmp_path / "r.jsonl", commit="c", device="cpu")
    [(failed, error)] = outcome.failed
    assert failed.seed == 1
    assert "exit code -9" in error
    assert [line["seed"] for line in outcome.lines] == [2]


def test_a_worker_that_is_killed_while_another_ends_keeps_its_cell() -> None:
    workers, theirs = [], []
    for seed, code in ((1, None), (2, -9)):
        worker, (mine, other) = object.__new__(engines._Worker), Pipe()
        worker.connection, worker.cell = mine, cell(seed)
        worker._process = SimpleNamespace(exitcode=code, join=lambda: None)  # type: ignore[assignment]
        workers.append(worker)
        theirs.append(other)
    local = object.__new__(engines.Local)
    local._workers = workers
    theirs[0].send(({"f1": 1.0}, {}))
    assert [ended.seed for ended, _ in local.wait(5)] == [1]
    theirs[1].close()
    [(failed, error)] = local.wait(5)
    assert failed.seed == 2
    assert "exit code -9" in str(error)
    assert [worker.cell for worker in local._workers] == [None]


def test_a_folder_without_the_benchmark_leaves_nothing(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "nowhere"):
        done = sequst("experiment", "run", "smoke", "--data", tmp_path / folder, "--output", tmp_path / "out", "--commit", "c")
        assert done.returncode == 2
        assert "--data" in done.stderr
        assert not (tmp_path / "out").exists()


class Timed:
    """An engine of two places whose cells take as many seconds, of a clock of its own, as their seed says."""

    now = 0.0

    def __init__(self, job: engines.Job) -> None:
        self.ends: dict[Cell, float] = {}

    def room(self) -> int:
        return 2 - len(self.ends)

    def begin(self, cell: Cell) -> None:
        self.ends[cell] = Timed.now + cell.seed

    def wait(self, seconds: float | None) -> list[engines.Ended]:
        soon = min(self.ends.values())
        Timed.now = soon if seconds is None else min(soon, Timed.now + seconds)
        ended = [cell for cell, end in self.ends.items() if end <= Timed.now]
        for cell in ended:
            del self.ends[cell]
        return [(cell, ({**dict.fromkeys(KEYS, 0), **cell.facts}, {})) for cell in ended]

    def end(self) -> None:
        pass


def test_what_the_time_does_not_suffice_for_is_left(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timed, "now", 0.0)
    monkeypatch.setitem(engines.ENGINES, "timed", Timed)
    monkeypatch.setattr("sequst.experiments.grid.time.monotonic", lambda: Timed.now)
    options: dict[str, Any] = {"commit": "c", "engine": "timed", "limit_seconds": 60}
    outcome = run_grid([cell(seed) for seed in (10, 30, 25, 100, 5)], data, tmp_path / "r.jsonl", **options)
    # 0 to 10 and 10 to 35 at one place, 0 to 30 at the other; 100 begins at 30 and is stopped; 5 fits in at 35
    assert [line["seed"] for line in outcome.lines] == [10, 30, 25, 5]
    assert outcome.left == 1
    monkeypatch.setattr(Timed, "now", 0.0)
    outcome = run_grid([cell(seed) for seed in (40, 41, 42)], data, tmp_path / "s.jsonl", **options)
    assert [line["seed"] for line in outcome.lines] == [40, 41]  # less is left than the shortest took: the third is not begun
    assert (Timed.now, outcome.left) == (41, 1)


def test_the_limit_stops_what_is_running(data: Path, tmp_path: Path) -> None:
    long = cell(3, "teacher.min_steps=100000 evaluations=1")
    begun = time.monotonic()
    outcome = run_grid([long], data, tmp_path / "r.jsonl", commit="c", device="cpu", limit_seconds=4)
    assert time.monotonic() - begun < 40
    assert (outcome.lines, outcome.left) == ([], 1)
    assert not (tmp_path / "r.jsonl").exists()  # nothing half-written


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_grid_that_is_stopped(
    data: Path, tmp_path: Path, stop: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tmp_path / "long.yaml"
    recipe.write_text(
        "datasets: [mit_restaurant]\nencoders: [bilstm]\nshots: [2]\nseeds: [1]\nsettings: [teacher.min_steps=1000000]\n"
    )
    (tmp_path / "scratch").mkdir()
    command = [sys.executable, "-m", "sequst", "experiment", "run", recipe, "--data", data, "--output", tmp_path / "o"]
    options: dict[str, Any] = {"env": {**os.environ, "TMPDIR": str(tmp_path / "scratch")}, "stderr": subprocess.PIPE}
    grid = subprocess.Popen([*command, "--commit", "c", "--device", "cpu"], text=True, **options)
    while not list((tmp_path / "scratch").glob("sequst-*/*/run/run.json")):
        assert grid.poll() is None
        time.sleep(0.1)
    workers = [process for process in psutil.Process(grid.pid).children() if "spawn_main" in " ".join(process.cmdline())]
    assert workers
    grid.send_signal(stop)
    _, told = grid.communicate(timeout=60)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
    if stop == signal.SIGTERM:
        assert grid.returncode == 143
        assert "the same command runs the rest" in told
    else:
        assert list((tmp_path / "scratch").iterdir())
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
        run_grid([cell(1)], data, tmp_path / "r.jsonl", commit="c", device="cpu")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_two_grids_do_not_write_to_one_place(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    with contextlib.closing(lock(output.with_suffix(".lock"), "")), pytest.raises(SequstError, match="another grid is writing"):
        run_grid([cell(1)], data, output, commit="c")


def test_a_thousand_cells_that_are_done_take_no_time(data: Path, tmp_path: Path) -> None:
    cells = [cell(seed) for seed in range(1000)]
    with (tmp_path / "r.jsonl").open("w") as file:
        for each in cells:
            facts = {**dict.fromkeys(KEYS, 0), "device": "cpu", "commit": "c", **each.facts}
            file.write(json.dumps({name: facts[name] for name in KEYS}) + "\n")
    begun = time.monotonic()
    assert run_grid(cells, data, tmp_path / "r.jsonl", commit="c", device="cpu").skipped == 1000
    assert time.monotonic() - begun < 10


def test_the_smoke_recipe_from_the_command_line(data: Path, tmp_path: Path, sequst: Callable[..., Any]) -> None:
    command = ["experiment", "run", "smoke", "--data", data, "--output", tmp_path / "out", "--commit", "c", "--device", "cpu"]
    done = sequst(*command)
    assert done.returncode == 0, done.stderr
    lines = read_results(tmp_path / "out" / "results.jsonl")
    assert [line["method"] for line in lines] == ["finetune", "sequst"]
    assert len(read_results(tmp_path / "out" / "results.rounds.jsonl")) == 2
    assert "2 cells run, 0 done before" in done.stderr
    assert "0 cells run, 2 done before" in sequst(*command).stderr
    other = sequst(*command, "--dataset", "conll03")
    assert other.returncode == 2
    assert "Get it: ask NIST" in other.stderr
