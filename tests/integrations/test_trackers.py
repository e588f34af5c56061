from __future__ import annotations

import json
import struct
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accelerate import tracking

from sequst.api import resume, train
from sequst.corpus.sampling import Split
from sequst.errors import SequstError, UsageError
from sequst.integrations import trackers
from sequst.integrations.trackers import AcceleratedTracker, make_tracker

Cli = Callable[..., Any]
Seen = dict[str, list[tuple[int, float]]]
"""Of every name the steps and the values."""
SHORT = {"min_steps": 4, "epochs": 0.1}


def numbers_of(run: Path) -> Seen:
    """What a tracker must have of metrics.jsonl: of every number of every line its name, the line and the value."""
    found: Seen = {}
    for step, text in enumerate((run / "metrics.jsonl").read_text().splitlines(), 1):
        line = json.loads(text)
        for name, value in line.items():
            if isinstance(value, int | float):
                found.setdefault(f"{line['phase']}/{name}", []).append((step, value))
    return found


@pytest.fixture
def files(split: Split, tmp_path: Path) -> list[Any]:
    split.save(tmp_path / "data")
    flags = [f"--set={phase}.{name}={value}" for phase in ("teacher", "student") for name, value in SHORT.items()]
    data = tmp_path / "data"
    named = ["--labeled", data / "labeled.conll", "--dev", data / "dev.conll", "--unlabeled", data / "unlabeled.conll"]
    return [*named, "--set=max_rounds=1", *flags]


def of_tensorboard(run: Path, store: Path) -> tuple[Seen, None, None]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    names = events.Tags()["scalars"]
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in names}, None, None


def of_wandb(run: Path, store: Path) -> tuple[Seen, dict[str, Any], bool]:
    """The file that `wandb sync` would send, of which wandb has no reader in Python: a head of seven bytes, then blocks of 32
    KiB with parts of records, each after its checksum (4 bytes), length (2) and kind (1: 1 whole, 4 the last part)."""
    from wandb.proto.wandb_internal_pb2 import Record

    [path] = (run / "wandb").glob("offline-run-*/run-*.wandb")
    content, place, parts = path.read_bytes(), 7, b""
    seen: Seen = {}
    settings: dict[str, Any] = {}
    codes = []
    while place + 7 <= len(content):
        if 32768 - place % 32768 < 7:  # too little for a part: the block is filled up
            place += 32768 - place % 32768
            continue
        length, kind = struct.unpack_from("<HB", content, place + 4)
        parts += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            record, parts = Record.FromString(parts), b""
            settings |= {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.config.update}
            if record.HasField("exit"):
                codes.append(record.exit.exit_code)
            for item in record.history.item:
                name = item.key or "/".join(item.nested_key)
                if not name.startswith("_"):
                    seen.setdefault(name, []).append((record.history.step.num, json.loads(item.value_json)))
    return seen, settings, codes == [0]


def of_mlflow(run: Path, store: Path) -> tuple[Seen, dict[str, Any], bool]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{store}")
    found = client.get_experiment_by_name("sequst")
    assert found is not None
    [tracked] = client.search_runs([found.experiment_id], filter_string=f"run_name = '{run.name}'")
    history = {name: client.get_metric_history(tracked.info.run_id, name) for name in tracked.data.metrics}
    seen = {name: sorted((each.step, each.value) for each in values) for name, values in history.items()}
    return seen, tracked.data.params, tracked.info.status == "FINISHED"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where MLflow keeps runs; Weights & Biases keeps them with the run, and asks no server."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_CONSOLE", "off")
    return tmp_path / "mlflow.db"


READERS: dict[str, Callable[[Path, Path], tuple[Seen, Any, Any]]] = {
    "tensorboard": of_tensorboard, "wandb": of_wandb, "mlflow": of_mlflow,
}  # fmt: skip


@pytest.mark.parametrize("name", trackers.TRACKERS)
def test_the_tool_has_every_line(
    name: str, files: list[Any], tiny_encoder: str, tmp_path: Path, store: Path, sequst: Cli
) -> None:
    pytest.importorskip(name)
    run = tmp_path / "run"
    common = ["train", "--method", "sst", *files, "--encoder", tiny_encoder]
    done = sequst(*common, "--output", run, "--tracker", name)
    assert done.returncode == 0, done.stderr
    found, settings, finished = READERS[name](run, store)
    wanted = numbers_of(run)
    assert set(found) == set(wanted)
    assert {key.partition("/")[0] for key in wanted} >= {"teacher", "student", "round"}
    for key, values in wanted.items():
        assert [step for step, _ in found[key]] == [step for step, _ in values]
        assert [value for _, value in found[key]] == pytest.approx([value for _, value in values], rel=1e-6)
    steps = sorted(step for values in wanted.values() for step, _ in values)
    assert sorted(set(steps)) == list(range(1, max(steps) + 1))
    if settings is not None:
        assert (settings["method"], str(settings["teacher.min_steps"])) == ("sst", "4")
    assert finished in (True, None)
    plain = tmp_path / "plain"
    assert sequst(*common, "--output", plain).returncode == 0
    facts = [json.loads((each / "summary.json").read_text()) for each in (run, plain)]
    assert facts[0]["settings_hash"] == facts[1]["settings_hash"]
    assert (run / "settings.yaml").read_text() == (plain / "settings.yaml").read_text()


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_run_that_fails_is_not_shown_as_finished(
    name: str, split: Split, tiny_encoder: str, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(name)

    def fail(*_: Any) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr("sequst.api.calibrate", fail)
    with pytest.raises(MemoryError):
        train(split.labeled, tmp_path / "run", dev=split.dev, encoder=tiny_encoder, teacher=SHORT, tracker=make_tracker(name))
    found, _, finished = READERS[name](tmp_path / "run", store)
    assert "teacher/loss" in found
    assert finished is False


class Fake:
    """A tracker as Accelerate has them, which remembers what it is told."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.arguments, self.options = arguments, options
        self.told: list[Any] = []

    def start(self) -> None:
        self.told.append("start")

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        assert all(isinstance(value, str | int | float | bool) for value in values.values())
        self.told.append(values)

    def log(self, values: dict[str, Any], step: int) -> None:
        self.told.append((step, values))

    def finish(self) -> None:
        self.told.append("finish")


def timeless(told: Any) -> Any:
    """Without what differs from one time to the next."""
    return {name: value for name, value in told[1].items() if "seconds" not in name} if isinstance(told, tuple) else told


@pytest.mark.parametrize(("name", "kind"), [("wandb", "WandBTracker"), ("mlflow", "MLflowTracker")])
def test_the_others_are_told_the_same(
    name: str, kind: str, split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Fake] = []

    def fake(*arguments: Any, **options: Any) -> Fake:
        made.append(Fake(*arguments, **options))
        return made[-1]

    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setattr(tracking, kind, fake)
    run = tmp_path / "my-run"
    train(split.labeled, run, dev=split.dev, encoder=tiny_encoder, teacher=SHORT, tracker=make_tracker(name))
    [tracker] = made
    assert tracker.arguments == ("sequst",)
    assert "my-run" in tracker.options.values()
    start, settings, *lines, finish = tracker.told
    assert (start, finish) == ("start", "finish")
    assert settings["teacher.min_steps"] == 4
    assert settings["encoder"] == tiny_encoder
    assert [step for step, _ in lines] == list(range(1, len(lines) + 1))
    seen: Seen = {}
    for step, values in lines:
        for key, value in values.items():
            seen.setdefault(key, []).append((step, value))
    assert seen == numbers_of(run)

    (run / "summary.json").unlink()
    resume(run, tracker=make_tracker(name))
    assert list(map(timeless, made[1].told)) == list(map(timeless, tracker.told))  # a resumed run passes its lines again


def test_a_tracker_that_fails_does_not_take_the_run_with_it(
    split: Split, tiny_encoder: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Fake):
        def log(self, values: dict[str, Any], step: int) -> None:
            super().log(values, step)
            raise ConnectionError("gone")

    made: list[Failing] = []

    def make(run: Path) -> Failing:
        made.append(Failing(run))
        return made[-1]

    tracker = AcceleratedTracker("wandb", make)
    train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, tracker=tracker)
    assert len(made[0].told) == 3  # begun, settings, one line
    assert [record.message for record in caplog.records if "wandb" in record.message] == [
        "wandb failed and is used no more (ConnectionError: gone); metrics.jsonl has all lines"
    ]
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) > 1


def test_a_tracker_that_cannot_begin_says_so(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    class Closed(Fake):
        def start(self) -> None:
            raise ConnectionError("no account")

    with pytest.raises(SequstError, match=r"--tracker wandb cannot begin \(ConnectionError: no account\).*--resume"):
        train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, tracker=AcceleratedTracker("wandb", Closed))
    assert resume(tmp_path / "run").summary["method"] == "finetune"


def test_a_missing_library_is_asked_for_before_the_run(
    files: list[Any], tiny_encoder: str, tmp_path: Path, sequst: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in trackers.TRACKERS:
        monkeypatch.setitem(sys.modules, name, None)
        done = sequst("train", *files, "--encoder", tiny_encoder, "--output", tmp_path / "run", "--tracker", name)
        assert done.returncode == 2
        assert f"pip install 'sequst[{name}]'" in done.stderr
        assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="unknown tracker 'tensorbord'; did you mean 'tensorboard'"):
        make_tracker("tensorbord")
