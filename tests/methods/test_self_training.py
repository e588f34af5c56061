from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sequst.corpus.sampling import Split
from sequst.errors import SequstError, UsageError
from sequst.methods.registry import METHODS
from sequst.methods.running import Result, resume, train
from sequst.methods.self_training import PseudoLabelledWords
from sequst.objectives.masked import masked_cross_entropy, masked_phce
from sequst.tagger.batches import collate
from sequst.tagger.tagger import Tagger
from sequst.training.loop import Examples
from sequst.training.run import Run
from sequst.training.state import load_state
from sequst.uncertainty.beliefs import Beliefs
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
    """Round by round, without the first teacher's line."""
    return [line for line in metrics(result.path) if line["phase"] == "round" and line["round"] > 0]


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
    worse = [i for i in range(1, len(scores)) if scores[i] < max(scores[:i])]  # of equals the later is kept
    assert len(scores) == 5 or worse == [len(scores) - 1]  # with a patience of 1 the first round that is worse is the last
    assert rounds_of(result)[0]["agreement"] is None
    assert all(line["agreement"] > 0 for line in rounds_of(result)[1:])


def test_the_student_of_the_best_round_can_be_kept(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    retuned, student = (
        run(split, tiny_encoder, tmp_path / keep, "sst", max_rounds=1, dev=None, keep=keep, keep_rounds=True)
        for keep in ("teacher", "student")
    )
    for result, phase in ((retuned, "retune"), (student, "student")):
        weights = load_state(result.path / "rounds" / "1" / phase / "done.pt")["tagger"]
        kept = result.tagger.encoder.state_dict()
        assert all(torch.equal(kept[name], weights[f"encoder.{name}"]) for name in kept)
    assert not same_weights(retuned.tagger, student.tagger)
    scored = run(split, tiny_encoder, tmp_path / "scored", "sst", keep="student")
    [first, *rounds] = scored.summary["history"]
    assert scored.summary["dev_f1"] == max([first["teacher_f1"], *(line["student_f1"] for line in rounds)])


def test_labelled_sentences_can_be_mixed_in(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    seen: list[Examples] = []

    class Watched(Run):
        def pseudo_examples(self, *arguments: Any) -> Examples:
            seen.append(super().pseudo_examples(*arguments))
            return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sequst.methods.running.Run", Watched)
        for kind in ("hard", "mean"):
            run(split, tiny_encoder, tmp_path / kind, "sequst", max_rounds=1, mix_labeled=True, pseudo_labels=kind)
    hard, mean = seen
    labelled = len(split.labeled)
    names = Tagger.load(tmp_path / "hard" / "model").labels
    for sentence, labels, soft in zip(split.labeled, hard.labels[-labelled:], mean.labels[-labelled:], strict=True):
        truth = [names.index(tag) for tag in sentence.tags or ()]
        assert list(labels) == truth
        assert [list(row).index(1.0) for row in soft] == truth  # type: ignore[arg-type]
    assert hard.selected is not None
    assert all(all(counted) for counted in hard.selected[-labelled:])
    assert len(hard.labels) == 60 + labelled


def test_soft_labels_carry_what_the_teacher_doubts(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    results = {
        kind: run(split, tiny_encoder, tmp_path / kind, "sst", max_rounds=1, dev=None, pseudo_labels=kind, keep_rounds=True)
        for kind in ("hard", "soft", "mean")
    }
    beliefs = {kind: Beliefs.from_file(result.path / "rounds/1/beliefs/beliefs.npz") for kind, result in results.items()}
    assert beliefs["hard"].probabilities is None
    assert not beliefs["soft"].information_gain.any()  # SST asks for no pass; the mean of the passes needs them
    assert beliefs["mean"].information_gain.any()
    assert all(np.array_equal(beliefs["hard"].labels, other.labels) for other in beliefs.values())
    assert not same_weights(results["hard"].tagger, results["soft"].tagger)
    assert not same_weights(results["soft"].tagger, results["mean"].tagger)


def test_a_new_student_learns_with_cross_entropy_first(split: Split, tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1).eval()
    windows = tagger.splitter.windows([("one", "two", "three")])
    batch = collate(windows, [0], tagger.pad_id, [[0, 1, 2]])
    probabilities = tagger(batch)
    tau = 2.0  # an untrained head gives every tag about a third, which is below 1/2
    plain = masked_cross_entropy(probabilities, batch.labels, batch.selected)  # type: ignore[arg-type]
    robust = masked_phce(probabilities, batch.labels, batch.selected, tau)  # type: ignore[arg-type]
    assert plain != robust
    learning = PseudoLabelledWords(functools.partial(masked_phce, tau=tau), 0.3, None)
    found = []
    for done in (0.0, 0.29, 0.3, 0.9):
        learning.begin_step(done)
        found.append(learning.loss(tagger, batch)[0])
    assert found == [plain, plain, robust, robust]


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
    kept = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert kept["unlabeled_sentences"] == 60
    for shown in (done.stderr, done.stdout):  # as the rounds end, and once more as a whole
        rows = [line.split() for line in shown.splitlines()]
        for line in kept["history"][1:]:
            figures = [line["student_f1"], line["teacher_f1"], line["selected"], line["agreement"], line["error"]]
            figures += [line["selected_error"], line["entity_error"], line["selected_entity_error"]]
            row = [f"{value:.1f}" for value in figures if value is not None]
            assert [str(line["round"]), *row] in rows
    assert "       student  teacher  selected  agreement" in done.stdout
