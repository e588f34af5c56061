from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import UsageError
from sequst.experiments import engines
from sequst.experiments.cells import Cell
from sequst.experiments.grid import GridResult, run_grid
from sequst.experiments.results import read_results

psutil = pytest.importorskip("psutil")
ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")


@pytest.fixture(scope="module")
def data(make_benchmark: Callable[..., Path]) -> Path:
    return make_benchmark("ours", test=20)


def cell(seed: int, steps: int = 2, more: str = "") -> Cell:
    recipe = f"teacher.min_steps={steps} teacher.epochs=0.1 evaluations=1 {more}".strip()
    return Cell("g", "ours", seed, recipe=recipe, encoder="bilstm", shots=2)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two machines of one core each, as far as Ray can tell."""
    memory = {"object_store_memory": 80_000_000, "num_cpus": 1}
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={**memory, "include_dashboard": False})
    made.add_node(**memory)
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.timeout(400)
def test_a_machine_that_is_lost_costs_time_alone(
    cluster: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    begin = engines.OnRay.begin

    def counted(self: Any, cell: Cell, losses: int = 0) -> None:
        begun.append(cell.seed)
        begin(self, cell, losses)

    monkeypatch.setattr(engines.OnRay, "begin", counted)
    output = tmp_path / "r.jsonl"
    outcomes: list[GridResult] = []
    cells = [cell(seed, steps=200) for seed in range(1, 7)]
    cells.append(cell(9, more="bilstm.vectors=nowhere.txt"))
    options: dict[str, Any] = {"commit": "c", "device": "cpu", "engine": "ray"}
    grid = threading.Thread(target=lambda: outcomes.append(run_grid(cells, data, output, **options)))
    grid.start()
    [second] = [node for node in cluster.list_all_nodes() if not node.head]
    raylet = psutil.Process(second.all_processes["raylet"][0].process.pid)
    while not read_results(output) or not any("_task" in " ".join(child.cmdline()) for child in raylet.children()):
        time.sleep(0.05)  # until something is done, and the second machine is at work
    for process in raylet.children(recursive=True):  # a machine takes its processes along, of which Ray's might outlive it
        process.kill()
    cluster.remove_node(second, allow_graceful=False)
    grid.join()
    [outcome] = outcomes
    assert Counter(line["seed"] for line in read_results(output)) == Counter(range(1, 7))  # none lost, none twice
    assert len(begun) > len(set(begun)) == len(cells)  # what ran on the lost one was begun again
    assert [failed.seed for failed, _ in outcome.failed] == [9]
    assert "nowhere.txt: no such file" in outcome.failed[0][1]
    again = run_grid(cells[:6], data, output, **options)
    assert (again.skipped, again.lines) == (6, [])


@pytest.mark.timeout(400)
def test_the_same_numbers_as_without_ray_and_the_limit_is_kept(cluster: Any, data: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"commit": "c", "device": "cpu"}
    one = run_grid([cell(1, steps=20)], data, tmp_path / "local.jsonl", **options)
    two = run_grid([cell(1, steps=20)], data, tmp_path / "ray.jsonl", engine="ray", **options)
    for name in ("f1", "tp", "fp", "fn", "settings_hash"):
        assert one.lines[0][name] == two.lines[0][name]
    begun = time.monotonic()
    late = run_grid([cell(2, steps=100_000)], data, tmp_path / "late.jsonl", engine="ray", limit_seconds=4, **options)
    assert time.monotonic() - begun < 30
    assert late.left == 1
    assert not read_results(tmp_path / "late.jsonl")


def test_a_cluster_that_nobody_hears_of(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(UsageError, match=r"RAY_ADDRESS 127\.0\.0\.1:9: no Ray cluster answers there"):
        run_grid([cell(1)], data, tmp_path / "r.jsonl", commit="c", engine="ray")


class FakeRay:
    """A cluster on which every process dies."""

    class exceptions:  # noqa: N801
        class RayError(Exception):
            pass

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.machines = [{"CPU": 16.0, "GPU": 2.0}, {"CPU": 4.0}]

    def is_initialized(self) -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": machine} for machine in self.machines]

    def remote(self, function: Any) -> Any:
        return self

    def options(self, **asked: Any) -> Any:
        self.asked.append(asked)
        this = self

        class Remote:
            def remote(self, *arguments: Any) -> int:
                return len(this.asked)

        return Remote()

    def wait(self, references: list[int], timeout: float | None) -> tuple[list[int], list[int]]:
        return references[:1], references[1:]

    def get(self, reference: int) -> Any:
        raise self.exceptions.RayError("the worker died")


def test_a_cell_that_kills_every_process_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRay()
    monkeypatch.setattr(engines, "needed", lambda module, extra: fake)
    engine = engines.OnRay(engines.Job(Path("data"), "c", share=4))
    assert engine.room() == 8  # four on each of two GPUs, none on the machine without
    engine.begin(cell(1))
    assert engine.room() == 7
    ended: list[engines.Ended] = []
    while not ended:
        ended = engine.wait(None)
    assert len(fake.asked) == engine.LOSSES
    assert fake.asked[0] == {"num_cpus": 2.0, "num_gpus": 0.25, "max_retries": 0}
    assert "lost 3 times" in str(ended[0][1])
    fake.machines = []
    assert engine.room() == 1  # it waits for a machine to come


def test_shares_of_machines_without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRay()
    fake.machines = [{"CPU": 16.0}, {"CPU": 2.0}]
    monkeypatch.setattr(engines, "needed", lambda module, extra: fake)
    engine = engines.OnRay(engines.Job(Path("data"), "c", share=4))
    assert engine.room() == 6
    engine.begin(cell(1))
    assert fake.asked == [{"num_cpus": 1.0, "max_retries": 0}]
