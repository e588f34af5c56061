from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sequst.corpus.sampling import Split
from sequst.errors import SequstError, UsageError
from sequst.methods.registry import METHODS
from sequst.methods.running import Result, resume, train
from sequst.tagger.tagger import Tagger
from tests.methods.test_running import KILLER, metrics, summary

QUICK = {"min_steps": 8, "epochs": 0.1, "evaluations": 2, "learning_rate": 1e-3, "head_learning_rate": 3e-3}
OPTIONS: dict[str, Any] = {
    "max_rounds": 2,
    "patience": 2,
    "teacher": {**QUICK, "min_steps": 120},
    "student": {**QUICK, "min_steps": 60},
    "retune": QUICK,
    "uncertainty": {"passes": 3},
}
OFF: dict[str, Any] = {"selection": {"selector": "all"}, "robust": {"loss": "cross-entropy"}, "gcr": {"weight": 0.0}}


def run(split: Split, encoder: str, output: Path, method: str, **options: Any) -> Result:
    sources = {"unlabeled": split.unlabeled[:60], "dev": split.dev}
    return train(split.labeled, output, **{**sources, **OPTIONS, "encoder": encoder, "method": method, **options})


def same_weights(first: Tagger, second: Tagger) -> bool:
    one, other = first.state_dict(), second.state_dict()
    return all(torch.equal(one[name], other[name]) for name in one)


def rounds_of(result: Result) -> list[dict[str, Any]]:
    return [line for line in metrics(result.path) if line["phase"] == "round"]


def test_sequst_with_everything_off_is_sst_bit_for_bit(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    # without a dev set the result is the last teacher
    sst = run(split, tiny_encoder, tmp_path / "sst", "sst", dev=None)
    off = run(split, tiny_encoder, tmp_path / "off", "sequst", dev=None, **OFF)
    full = run(split, tiny_encoder, tmp_path / "full", "sequst", dev=None)
    assert same_weights(sst.tagger, off.tagger)
    assert not same_weights(sst.tagger, full.tagger)
    assert rounds_of(sst) == rounds_of(off)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.unlabeled])
def test_every_method_runs_and_records(name: str, split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", name, max_rounds=1)
    [line] = rounds_of(result)
    all_words = name in ("sst", "without-selection")
    assert line["selected"] == 100 if all_words else 40 < line["selected"] < 60
    assert line["error"] > 0
    assert (line["selected_error"] == line["error"]) is all_words
    assert line["agreement"] is None
    student = [entry for entry in metrics(result.path) if entry["phase"] == "student"]
    assert ("gcr_mu" in student[-1]) is (name not in ("sst", "without-gcr"))
    assert result.summary["rounds"] == 1


def test_the_best_round_is_kept_and_patience_ends_it(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", "sst", max_rounds=4, patience=1, keep_rounds=True)
    teacher = max(line["dev_f1"] for line in metrics(result.path) if line["phase"] == "teacher")
    scores = [teacher, *(line["teacher_f1"] for line in rounds_of(result))]
    assert result.summary["dev_f1"] == max(scores)
    worse = [i for i in range(1, len(scores)) if scores[i] <= max(scores[:i])]
    assert len(scores) == 5 or worse == [len(scores) - 1]  # with a patience of 1 the first round that is no better is the last
    assert rounds_of(result)[0]["agreement"] is None
    assert all(line["agreement"] > 0 for line in rounds_of(result)[1:])


def test_hidden_tags_are_for_diagnosis_alone(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    bare = Split(split.labeled, split.dev, [s.without_tags() for s in split.unlabeled], split.shots, split.sampler, split.seed)
    with_tags = run(split, tiny_encoder, tmp_path / "a", "sequst", max_rounds=1, dev=None)
    without = run(bare, tiny_encoder, tmp_path / "b", "sequst", max_rounds=1, dev=None)
    assert same_weights(with_tags.tagger, without.tagger)
    assert rounds_of(without)[0]["error"] is None
    assert rounds_of(with_tags)[0]["error"] is not None


def test_what_cannot_work_is_said(split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="name it with --unlabeled"):
        train(split.labeled, tmp_path / "a", encoder=tiny_encoder, method="sequst")
    assert not (tmp_path / "a").exists()
    monkeypatch.setattr(Tagger, "decode", lambda self, p: (torch.zeros(p.shape[:2], dtype=torch.long), p[..., 0].exp()))
    with pytest.raises(SequstError, match="labels every unlabelled word O"):
        run(split, tiny_encoder, tmp_path / "b", "sst")


MOMENTS = {
    "in the teacher": ("sequst.training.loop:_set_rate", 60, ""),
    "in the MC passes": ("sequst.uncertainty.information:PassSums.add", 2, ""),
    "while saving beliefs": ("sequst.files:_sync", 1, "beliefs.npz"),
    "in the student": ("sequst.training.loop:_set_rate", 150, ""),
    "while saving the student": ("sequst.files:_sync", 1, "student/.done.pt"),
    "in the second round": ("sequst.uncertainty.information:PassSums.add", 5, ""),
}


def flags(options: dict[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, value in options.items():
        found += flags(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"--set={prefix}{name}={value}"]
    return found


@pytest.fixture(scope="module")
def whole(split: Split, tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a run and the run itself, which nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    Split(split.labeled, split.dev, split.unlabeled[:60], 5, "sentences", 12).save(folder / "data")
    data = folder / "data"
    train(
        data / "labeled.conll", folder / "run", unlabeled=data / "unlabeled.conll", dev=data / "dev.conll",
        encoder=tiny_encoder, method="sequst", checkpoint_seconds=0, **OPTIONS,
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_ends_the_same(moment: str, whole: Path, tiny_encoder: str, tmp_path: Path) -> None:
    place, count, about = MOMENTS[moment]
    data, output = whole / "data", tmp_path / "run"
    inputs = [f"--{role}={data / role}.conll" for role in ("labeled", "unlabeled", "dev")]
    settings = flags({**OPTIONS, "checkpoint_seconds": 0})
    command = ["train", *inputs, f"--encoder={tiny_encoder}", "--method=sequst", f"--output={output}", *settings]
    killed = subprocess.run(
        [sys.executable, "-c", KILLER, place, str(count), about, *command], capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    resume(output)
    assert summary(output) == summary(whole / "run")
    assert metrics(output) == metrics(whole / "run")
    weights = Path("model", "model.safetensors")
    assert (output / weights).read_bytes() == (whole / "run" / weights).read_bytes()


def test_rounds_are_told(split: Split, tiny_encoder: str, whole: Path, tmp_path: Path, sequst: Callable[..., Any]) -> None:
    data = whole / "data"
    inputs = [f"--{role}={data / role}.conll" for role in ("labeled", "unlabeled", "dev")]
    done = sequst(
        "train", *inputs, f"--encoder={tiny_encoder}", "--method=sst", f"--output={tmp_path / 'run'}", *flags(OPTIONS)
    )
    assert done.returncode == 0, done.stderr
    assert "round 1: student F1" in done.stderr
    assert "entity error %" in done.stderr
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["unlabeled_sentences"] == 60
