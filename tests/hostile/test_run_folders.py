"""Run folders that were damaged: a resumed run ends with its numbers, or says which file is damaged and what to do."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sequst.api import resume
from sequst.errors import SequstError
from sequst.training.checkpoint import load_state, save_state
from sequst.training.directory import RunDirectory
from sequst.uncertainty.beliefs import Beliefs
from tests.hostile.mutation import Trial, mutated


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def flipped(data: bytes, place: int, bit: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


def attempt(load: Callable[[], Any]) -> tuple[Any, str]:
    """(what is loaded, or the message of its error)."""
    try:
        return load(), ""
    except SequstError as error:
        return None, str(error)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def test_a_flipped_bit_of_a_checkpoint_is_noticed(seed: int, tmp_path: Path) -> None:
    """Or changes nothing that is read."""
    state = {"weights": {"a": torch.randn(40, 30), "b": torch.arange(50)}, "step": 7, "lines": [{"f1": 1.5, "name": "x"}]}
    save_state(tmp_path / "state.pt", state)
    data, rng, noticed = (tmp_path / "state.pt").read_bytes(), random.Random(seed), 0
    for _ in range(400):
        (tmp_path / "bad.pt").write_bytes(flipped(data, rng.randrange(len(data)), rng.randrange(8)))
        found, error = attempt(lambda: load_state(tmp_path / "bad.pt"))
        noticed += bool(error)
        if error:
            assert f"{tmp_path / 'bad.pt'} is damaged" in error
            assert "delete it, and --resume repeats that part" in error
        else:
            assert same(found, state)
    assert noticed > 300
    for length in range(0, len(data), 97):
        (tmp_path / "bad.pt").write_bytes(data[:length])
        with pytest.raises(SequstError, match="is damaged"):
            load_state(tmp_path / "bad.pt")


def test_every_bit_of_a_checkpoints_directory_is_noticed(tmp_path: Path) -> None:
    """Or changes nothing that is read. No checksum covers it."""
    state = {"weights": {"a": torch.arange(12.0), "b": torch.arange(5)}}
    save_state(tmp_path / "state.pt", state)
    data = (tmp_path / "state.pt").read_bytes()
    for place in range(data.index(b"PK\1\2"), len(data)):
        for bit in range(8):
            (tmp_path / "bad.pt").write_bytes(flipped(data, place, bit))
            found, error = attempt(lambda: load_state(tmp_path / "bad.pt"))
            assert error or same(found, state), (place, bit)


def test_a_flipped_bit_of_beliefs_is_noticed(seed: int, finished: Path, tmp_path: Path) -> None:
    data, rng = (finished / "rounds/1/beliefs/beliefs.npz").read_bytes(), random.Random(seed)
    whole = Beliefs.from_file(finished / "rounds/1/beliefs/beliefs.npz")
    for _ in range(200):
        (tmp_path / "b.npz").write_bytes(flipped(data, rng.randrange(len(data)), rng.randrange(8)))
        found, error = attempt(lambda: Beliefs.from_file(tmp_path / "b.npz"))
        if error:
            assert "b.npz is damaged" in error
        else:
            assert found.labels.tolist() == whole.labels.tolist()
            assert found.information_gain.tolist() == whole.information_gain.tolist()


SUMMARY = {"dev_f1": 50.0, "dev_set": "2 sentences", "device": "cpu", "history": [], "kept_round": 0, "seconds": 1.5}
READERS: dict[str, Callable[[RunDirectory], Any]] = {
    "run.json": lambda run: (run.facts, run.files()),
    "settings.yaml": lambda run: run.settings(),
    "summary.json": lambda run: run.summary,
    "rounds/0/teacher/done.pt": lambda run: run.outcome(0, "teacher"),
    "rounds/1/beliefs/beliefs.npz": lambda run: Beliefs.from_file(run.beliefs(1)),
    "rounds/1/beliefs/selected.npz": lambda run: run.selection(1),
}


@pytest.mark.parametrize("name", READERS)
def test_a_mutated_file_is_refused_or_harmless(
    seed: int, name: str, run: Path, trial: Trial, sequst: Callable[..., Any]
) -> None:
    (run / "summary.json").write_text(json.dumps(SUMMARY))
    kind, whole, rng = f"run: {Path(name).name}", (run / name).read_bytes(), random.Random(f"{name} {seed}")
    for _ in range(40):
        (run / name).write_bytes(mutated(whole, rng))
        _, error = trial(kind, lambda: READERS[name](RunDirectory.open(run)))
        assert not error or str(run) in error or "--labeled" in error, error
        if name == "summary.json":
            done = sequst("train", "--resume", run)
            assert done.returncode in (0, 1, 2)
            assert "bug in sequst" not in done.stderr, done.stderr
    assert trial.refused(kind) > 5


@pytest.mark.parametrize("name", ["rounds/0/teacher/done.pt", "rounds/1/beliefs/beliefs.npz", "rounds/1/retune/done.pt"])
def test_what_is_damaged_is_named_and_can_be_done_again(name: str, run: Path, finished: Path) -> None:
    data = (run / name).read_bytes()
    (run / name).write_bytes(flipped(data, len(data) // 2, 3))
    with pytest.raises(SequstError, match=f"{name} is damaged"):
        resume(run)
    (run / name).unlink()
    again = resume(run).summary
    whole = Path(shutil.copytree(finished, run.parent / "whole"))
    expected = resume(whole).summary
    assert {**again, "seconds": 0} == {**expected, "seconds": 0}


FACTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a list": lambda facts: [facts],
    "nothing": lambda facts: {},
    "no threads": lambda facts: {**facts, "threads": "two"},
    "threads beyond all": lambda facts: {**facts, "threads": 10**9},
    "another precision": lambda facts: {**facts, "precision": "fp7"},
    "no encoder": lambda facts: {**facts, "encoder": None},
    "a command that is none": lambda facts: {**facts, "command": 7},
    "no files": lambda facts: {**facts, "files": []},
    "a file of no path": lambda facts: {**facts, "files": {"labeled": {"path": 7}}},
    "a file of other facts": lambda facts: {**facts, "files": {"labeled": {"path": "x", "secret": 7}}},
}


@pytest.mark.parametrize("change", FACTS.values(), ids=FACTS)
def test_facts_are_checked(change: Callable[[dict[str, Any]], Any], run: Path) -> None:
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(change(facts)))
    with pytest.raises(SequstError, match=r"run\.json is damaged or not written by sequst .*begin a new run"):
        resume(run)


@pytest.mark.parametrize("change", [{"dev_f1": 10**400}, {"seconds": "x"}, {"history": [7]}, {"test": {"types": {}}}])
def test_a_summary_of_other_values(change: dict[str, Any], run: Path, sequst: Callable[..., Any]) -> None:
    (run / "summary.json").write_text(json.dumps({**SUMMARY, **change}))
    done = sequst("train", "--resume", run)
    assert f"{run / 'summary.json'} is damaged" in done.stderr
    assert done.returncode == 1
    assert not done.stdout


def test_a_setting_out_of_its_range_is_told_with_its_file(run: Path) -> None:
    path = run / "settings.yaml"
    path.write_text(path.read_text().replace("seed: 12", "seed: -1"))
    with pytest.raises(SequstError, match=r"run/settings\.yaml: setting seed=-1: must be at least 0"):
        resume(run)


def test_a_message_stays_short_whatever_the_path(run: Path) -> None:
    facts = json.loads((run / "run.json").read_text())
    facts["files"]["labeled"]["path"] = "x" * 5000
    (run / "run.json").write_text(json.dumps(facts))
    with pytest.raises(SequstError, match=r"^--labeled /.*the run needs it to continue$") as caught:
        resume(run)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("name", ["run.json", "settings.yaml", "summary.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b"\xff\xfe", b"\x00" * 9, b'{"files": 7}', b"[" * 9000])
def test_files_of_other_things(name: str, content: bytes, run: Path) -> None:
    (run / name).write_bytes(content)
    with pytest.raises(SequstError, match=name):
        resume(run)
