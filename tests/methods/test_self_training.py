from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from sequst.api import Result, overridden, resume, train
from sequst.corpus.formats.read import read
from sequst.corpus.sampling import Split
from sequst.errors import SequstError, UsageError
from sequst.evaluation.evaluate import Evaluation, evaluate
from sequst.methods.pseudo_labels import believe, pseudo_examples
from sequst.methods.registry import METHODS
from sequst.methods.self_training import Parts, PseudoLabelledWords
from sequst.methods.sequst import parts_of
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import CROSS_ENTROPY, WordLoss, masked_mean, word_losses
from sequst.tagger.batches import collate
from sequst.tagger.heads import Decoded
from sequst.tagger.tagger import Tagger
from sequst.training.checkpoint import load_state
from sequst.training.directory import RunDirectory
from sequst.training.loop import Examples, PhaseResult, PhaseSpec
from sequst.training.run import Run
from sequst.training.settings import Settings
from sequst.uncertainty.beliefs import Beliefs, form_beliefs
from sequst.uncertainty.selectors import SampledWords, WeighedOfEachClass
from tests.test_api import KILLER, metrics, summary, untimed

QUICK = {"min_steps": 8, "epochs": 0.1, "learning_rate": 1e-3}
OPTIONS: dict[str, Any] = {
    "evaluations": 2,
    "head_rate": 3.0,
    "max_rounds": 2,
    "patience": 2,
    "teacher": {**QUICK, "min_steps": 120},
    "student": {**QUICK, "min_steps": 60},
    "retune": QUICK,
    "uncertainty": {"passes": 3},
    "abstain": False,  # dev F1 is that of the round which is kept
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


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if "max_rounds" not in method.unused])
def test_every_method_runs_and_records(name: str, split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", name, max_rounds=1)
    [line] = rounds_of(result)
    assert line["selected"] == 100
    assert line["error"] > 0
    assert (line["selected_error"] == line["error"]) is (name in ("sst", "metast", "without-selection"))
    if name == "sequst":
        drawn = run(split, tiny_encoder, tmp_path / "drawn", name, max_rounds=1, selection={"selector": "sampled"})
        assert 40 < rounds_of(drawn)[0]["selected"] < 60
    assert line["agreement"] is None
    student = [entry for entry in metrics(result.path) if entry["phase"] == "student"]
    assert ("gcr_mu" in student[-1]) is (name not in ("sst", "metast", "without-gcr"))
    assert result.summary["rounds"] == 1


def test_agreement_is_with_the_round_before(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", "sst", keep_rounds=True)
    first, second = (Beliefs.from_file(result.path / f"rounds/{n}/beliefs/beliefs.npz").labels for n in (1, 2))
    assert [line["agreement"] for line in rounds_of(result)] == [None, pytest.approx(100 * (first == second).mean())]


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
    scored = run(split, tiny_encoder, tmp_path / "scored", "sst", keep="student", choose="best")
    [first, *rounds] = scored.summary["history"]
    assert scored.summary["dev_f1"] == max([first["teacher_f1"], *(line["student_f1"] for line in rounds)])


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> list[Examples]:
    """What students are given to learn from now on."""
    seen: list[Examples] = []

    def watched(*arguments: Any) -> Examples:
        seen.append(pseudo_examples(*arguments))
        return seen[-1]

    monkeypatch.setattr("sequst.methods.self_training.pseudo_examples", watched)
    return seen


def test_words_are_weighed(split: Split, tiny_encoder: str, tmp_path: Path, taught: list[Examples]) -> None:
    """Each word as much as its confidence and certainty say beside others with the same label; labels stay integers, and the
    loss of a batch is the weighted one."""
    result = run(split, tiny_encoder, tmp_path / "run", "sequst", max_rounds=1, keep_rounds=True)
    beliefs = Beliefs.from_file(result.path / "rounds/1/beliefs/beliefs.npz")
    scores = (beliefs.confidence * beliefs.certainty).astype(np.float64)
    [examples] = taught
    assert examples.weights is not None
    assert np.concatenate(examples.labels).tolist() == beliefs.labels.tolist()
    means = np.array([scores[beliefs.labels == label].mean() for label in beliefs.labels])
    assert np.concatenate(examples.weights) == pytest.approx(scores / means, rel=1e-5)
    [_, line] = result.summary["history"]
    assert line["selected"] == 100.0
    assert line["selected_entity_error"] < line["entity_error"]  # wrong ones weigh less
    tagger = result.tagger
    batch = examples.batch([0, 1, 2], tagger)
    assert batch.labels is not None
    assert batch.weights is not None
    for loss in (CROSS_ENTROPY, WordLoss(13.0)):
        found, _ = PseudoLabelledWords(loss).loss(tagger, batch)
        each = batch.weights * word_losses(tagger(batch), batch.labels, loss.tau)
        assert found.item() == pytest.approx(masked_mean(each, batch.selected).item(), rel=1e-5)


def test_the_dev_set_is_scored_once_for_each_evaluation(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[int] = []

    def watched(tagger: Tagger, sentences: Any) -> Evaluation:
        scored.append(len(sentences))
        return evaluate(tagger, sentences)

    monkeypatch.setattr("sequst.training.run.evaluate", watched)
    result = run(split, tiny_encoder, tmp_path / "run", "sst", max_rounds=1)
    assert len(scored) == 3 * OPTIONS["evaluations"]  # teacher, student and re-tuning, and nothing beside
    assert result.summary["history"][0]["teacher_f1"] is not None


def test_settings_become_parts(split: Split, tiny_encoder: str) -> None:
    labels = ["O", *(f"{letter}-{type_}" for type_ in "ABCDE" for letter in "BI")]

    def of(**options: Any) -> Parts:
        return parts_of(SimpleNamespace(settings=overridden(Settings(), options, "test"), labels=labels))  # type: ignore[arg-type]

    assert of().loss == WordLoss(tau=1.25 * 11, warmup=0.3)  # five types have 11 tags
    assert of(robust={"tau": 7.0, "warmup": 0.6}).loss == WordLoss(tau=7.0, warmup=0.6)
    assert of(robust={"loss": "cross-entropy"}).loss == CROSS_ENTROPY
    assert of(gcr={"weight": 0.0}).regulariser is None
    assert of(selection={"selector": "sampled", "share": 0.3, "power": 2.0}).selector == SampledWords(2.0, "both", 0.3)
    assert of().selector == WeighedOfEachClass()


def test_a_new_student_learns_with_cross_entropy_first(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1).eval()
    windows = tagger.splitter.windows([("one", "two", "three")])
    batch = collate(windows, [0], tagger.pad_id, [[0, 1, 2]])
    assert batch.labels is not None
    tau = 2.0  # an untrained head gives every tag about a third, which is below 1/2
    plain, robust = (masked_mean(word_losses(tagger(batch), batch.labels, each), batch.selected) for each in (math.inf, tau))
    assert plain != robust
    learning = PseudoLabelledWords(WordLoss(tau, warmup=0.3))
    found = []
    for step in (0, 29, 30, 90):
        learning.begin_step(step, 100)
        found.append(learning.loss(tagger, batch)[0])
    assert found == [plain, plain, robust, robust]


def test_the_consistency_term_draws_nothing_from_dropout(split: Split, tiny_encoder: str) -> None:
    """Without noise the two sides are the same, dropout or not, and the stream of dropout is where it was."""
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1).train()
    tagger.head.dropout.p = 0.5
    batch = collate(tagger.splitter.windows([("one", "two", "three")]), [0], tagger.pad_id, [[0, 1, 2]])
    part = GaussianConsistency(32, weight=1.0, samples=3)
    torch.nn.init.zeros_(part.nets.scale.bias)
    hidden = tagger.hidden(batch)
    before = torch.get_rng_state()
    loss, _ = part(hidden, batch.owned, tagger.head, batch.rows, torch.Generator().manual_seed(1))
    assert loss.item() == pytest.approx(0.0, abs=1e-7)
    assert torch.equal(before, torch.get_rng_state())
    tagger.eval()
    assert torch.equal(tagger.log_probs(hidden, batch, dropout=False), tagger.log_probs(hidden, batch))


BRIEF: dict[str, Any] = {"student": {**QUICK, "min_steps": 30}, "evaluations": 1}
"""Enough where scores are scripted."""


def scripted(monkeypatch: pytest.MonkeyPatch, first: float, rounds: list[tuple[float, float]]) -> None:
    """Dev scores as told: of the first teacher, then of student and teacher of each round."""
    kept = Run.train

    def train(self: Run, tagger: Tagger, spec: PhaseSpec) -> PhaseResult:
        result = kept(self, tagger, spec)
        result.dev_f1 = rounds[spec.round - 1][spec.name == "retune"] if spec.round else first
        return result

    monkeypatch.setattr(Run, "train", train)


@pytest.mark.parametrize(
    ("teachers", "patience", "ran", "kept"),
    [
        ([50.0, 50.0, 50.0, 50.0], 2, 2, (2, "retune")),  # a plateau is no rise, and of equals the later is kept
        ([60.0, 50.0, 61.0, 40.0], 2, 4, (3, "retune")),
        ([40.0, 60.0, 60.0, 70.0], 1, 1, (0, "teacher")),
        ([40.0, 60.0, 60.0, 70.0], 2, 4, (4, "retune")),
    ],
)
def test_which_round_is_kept(
    teachers: list[float], patience: int, ran: int, kept: tuple[int, str], split: Split, tiny_encoder: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    scripted(monkeypatch, 50.0, [(0.0, f1) for f1 in teachers])
    options = {**BRIEF, "max_rounds": 4, "patience": patience, "keep_rounds": True, "choose": "best"}
    result = run(split, tiny_encoder, tmp_path / "run", "sst", **options)
    assert result.summary["rounds"] == ran
    assert result.summary["kept_round"] == kept[0]
    weights = load_state(result.path / "rounds" / str(kept[0]) / kept[1] / "done.pt")["tagger"]
    found = result.tagger.encoder.state_dict()
    assert all(torch.equal(found[name], weights[f"encoder.{name}"]) for name in found)


@pytest.mark.parametrize(
    ("f1s", "kept"),
    [
        ((60.0, 45.0, 51.0), 3),  # a few points on a small dev set say nothing
        ((60.0, 51.0, 49.9), 2),  # ten do
        ((38.0, 39.0, 30.0), 0),
    ],
)
def test_the_last_round_that_has_not_broken_down_is_kept(
    f1s: tuple[float, ...], kept: int, split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, 50.0, [(0.0, f1) for f1 in f1s])
    result = run(split, tiny_encoder, tmp_path / "run", "sst", **{**BRIEF, "max_rounds": 3, "patience": 1, "choose": "last"})
    assert (result.summary["rounds"], result.summary["kept_round"]) == (3, kept)


MANY: dict[str, Any] = {"ensemble": {"teachers": 2, "students": 2}, "keep_rounds": True, "valid_tags": False}


def test_several_teachers_and_students(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", "sequst", choose="best", **MANY)
    found = {n: Beliefs.from_file(result.path / f"rounds/{n}/beliefs/beliefs.npz") for n in (1, 2)}
    taggers: dict[str, Tagger] = {}
    for place in ("0/teacher", "0/teacher-2", "1/retune", "1/retune-2"):
        tagger = Tagger.from_encoder(tiny_encoder, result.tagger.labels)
        tagger.load_state_dict(load_state(result.path / "rounds" / place / "done.pt")["tagger"])
        taggers[place] = tagger.eval()
    means = {place: _mean(tagger, split, round_) for place, tagger in taggers.items() for round_ in [int(place[0]) + 1]}
    plain = {1: (means["0/teacher"] + means["0/teacher-2"]) / 2, 2: (means["1/retune"] + means["1/retune-2"]) / 2}
    for round_, beliefs in found.items():
        assert beliefs.probabilities is None  # labels have been made of them
        expected = np.take_along_axis(plain[round_], beliefs.labels[:, None], -1)[:, 0]
        assert np.abs(beliefs.confidence - expected).mean() < 0.03  # other masks, and three passes each
        assert (beliefs.labels == plain[round_].argmax(-1)).mean() > 0.95
    history = result.summary["history"]
    assert [line["member"] in (1, 2) for line in history] == [True] * 3
    kept = history[result.summary["kept_round"]]
    assert kept["teacher_f1"] == result.summary["dev_f1"] == max(line["teacher_f1"] for line in history)
    (result.path / "summary.json").unlink()
    assert resume(result.path).summary == result.summary


def _mean(tagger: Tagger, split: Split, seed: int) -> np.ndarray[Any, Any]:
    beliefs = form_beliefs(tagger, split.unlabeled[:60], passes=20, seed=seed, probabilities=True)
    assert beliefs.probabilities is not None
    return beliefs.probabilities


@pytest.mark.parametrize("dev", [True, False])
def test_a_student_that_breaks_down_does_not_take_the_run_along(
    dev: bool, split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_o_from_round_three(run: Run, teachers: list[Tagger], round_: int, **options: Any) -> Beliefs:
        beliefs = believe(run, teachers, round_, **options)
        return dataclasses.replace(beliefs, labels=np.zeros_like(beliefs.labels)) if round_ == 3 else beliefs

    monkeypatch.setattr("sequst.methods.self_training.believe", all_o_from_round_three)
    options: dict[str, Any] = {} if dev else {"dev": None}
    result = run(split, tiny_encoder, tmp_path / "run", "sst", max_rounds=4, patience=4, keep_rounds=True, **options)
    assert result.summary["rounds"] == 2
    assert (result.path / "report.html").is_file()
    if not dev:  # the teacher of round 2 is the broken one
        weights = load_state(result.path / "rounds" / "1" / "retune" / "done.pt")["tagger"]
        found = result.tagger.encoder.state_dict()
        assert all(torch.equal(found[name], weights[f"encoder.{name}"]) for name in found)


def test_a_student_that_diverges_does_not_take_the_run_along(
    split: Split, tiny_encoder: str, tmp_path: Path, sequst: Callable[..., Any]
) -> None:
    Split(split.labeled, split.dev, split.unlabeled[:30], 5, "sentences", 12).save(tmp_path / "data")
    inputs = [f"--{role}={tmp_path / 'data' / role}.conll" for role in ("labeled", "unlabeled", "dev")]
    settings = flags({**OPTIONS, "student": {**QUICK, "learning_rate": 1e30}})
    output = tmp_path / "a run"
    done = sequst("train", *inputs, f"--encoder={tiny_encoder}", "--method=sst", f"--output={output}", *settings)
    assert done.returncode == 0, done.stderr
    assert "warning: phase student of round 1" in done.stderr
    assert "--set student.learning_rate=" in done.stderr
    assert "fp32" not in done.stderr
    assert "kept: the best of the first teachers" in done.stdout
    assert f"sequst predict '{output}/model' -" in done.stderr
    kept = json.loads((output / "summary.json").read_text())
    assert (kept["kept_round"], kept["rounds"]) == (0, 0)
    assert kept["dev_f1"] == kept["history"][0]["teacher_f1"]
    assert "The best of the first teachers is kept" in (output / "report.html").read_text()
    assert "history" not in (output / "model" / "README.md").read_text()


def test_time_spent_on_beliefs_counts_and_outlives_a_stop(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", "sequst", max_rounds=1, keep_rounds=True)
    beliefs = Beliefs.from_file(result.path / "rounds/1/beliefs/beliefs.npz")
    assert beliefs.seconds > 0
    (result.path / "summary.json").unlink()
    again = resume(result.path)
    assert again.summary["seconds"] == pytest.approx(result.summary["seconds"])
    slower = dataclasses.replace(beliefs, seconds=beliefs.seconds + 1000)
    (result.path / "rounds/1/beliefs/beliefs.npz").write_bytes(slower.to_bytes())
    (result.path / "summary.json").unlink()
    assert resume(result.path).summary["seconds"] == pytest.approx(result.summary["seconds"] + 1000)


@pytest.mark.parametrize("method", ["finetune", "sst", "sequst"])
def test_under_a_chain(method: str, split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    options = {"unlabeled": None} if method == "finetune" else {}
    result = run(split, tiny_encoder, tmp_path / "run", method, max_rounds=1, head="crf", **options)
    assert result.summary["dev_f1"] > 15  # an untrained tagger is below 5
    tagger = result.tagger
    assert tagger.head.kind == "crf"
    chain = dict(tagger.head.named_parameters(recurse=False))
    assert all(scores.abs().max() > 0.01 for scores in chain.values())  # they have learnt something
    for prediction in tagger.predict([s.words for s in split.dev]):
        for tag, following in itertools.pairwise(("O", *prediction.tags)):
            assert not following.startswith("I-") or tag[2:] == following[2:]
    beliefs = form_beliefs(tagger, split.dev, passes=3, seed=1)
    assert beliefs.information_gain.max() > 0


def test_hidden_tags_are_for_diagnosis_alone(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    bare = Split(split.labeled, split.dev, [s.without_tags() for s in split.unlabeled], split.shots, split.sampler, split.seed)
    with_tags = run(split, tiny_encoder, tmp_path / "a", "sequst", max_rounds=1, dev=None)
    without = run(bare, tiny_encoder, tmp_path / "b", "sequst", max_rounds=1, dev=None)
    assert same_weights(with_tags.tagger, without.tagger)
    assert rounds_of(without)[0]["error"] is None
    assert rounds_of(with_tags)[0]["error"] is not None


def test_what_cannot_work_is_said(split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="needs unlabelled text; add --unlabeled FILE"):
        train(split.labeled, tmp_path / "a", encoder=tiny_encoder, method="sequst")
    assert not (tmp_path / "a").exists()
    monkeypatch.setattr(
        "sequst.tagger.heads.SoftmaxHead.decode",
        lambda self, scores, rows: Decoded(torch.zeros_like(rows.words, dtype=torch.long), self.log_probs(scores, rows)),
    )
    with pytest.raises(SequstError, match="labels every unlabelled word O"):
        run(split, tiny_encoder, tmp_path / "b", "sst")


MOMENTS = {
    "in the teacher": ("sequst.training.loop:_set_rate", 60, ""),
    "in the MC passes": ("sequst.uncertainty.beliefs:mc_passes", 1, ""),
    "while saving beliefs": ("sequst.files:_sync", 1, "beliefs.npz"),
    "in the student": ("sequst.training.loop:_set_rate", 150, ""),
    "while saving the student": ("sequst.files:_sync", 1, "student/.done.pt"),
    "in the second re-tuning": ("sequst.training.loop:_set_rate", 253, ""),
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


def test_rounds_of_a_large_text_end_the_same_when_stopped_though_the_text_is_gone(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw.txt"
    lines = [" ".join(sentence.words) for sentence in split.unlabeled[:60]]
    raw.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = {"unlabeled": raw, "round_size": 20, "keep_rounds": True}
    expected = run(split, tiny_encoder, tmp_path / "whole", "sequst", **options)
    assert [line.get("agreement") for line in expected.summary["history"]] == [None] * 3  # rounds have no word in common
    assert expected.summary["unlabeled_sentences"] == 40
    words = [Beliefs.from_file(RunDirectory(expected.path).beliefs(round_)).starts[-1] for round_ in (1, 2)]
    drawn = [sentence.words for sentence in read(expected.path / "inputs/drawn.jsonl")]
    assert words == [sum(map(len, half)) for half in (drawn[:20], drawn[20:])]

    def stopped(self: Run, tagger: Tagger, spec: PhaseSpec) -> PhaseResult:
        if (spec.round, spec.name) == (2, "student"):
            raise KeyboardInterrupt
        return train_phase(self, tagger, spec)

    train_phase = Run.train
    with monkeypatch.context() as patch:
        patch.setattr(Run, "train", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(split, tiny_encoder, tmp_path / "run", "sequst", **options)
    raw.unlink()
    assert untimed(resume(tmp_path / "run").summary) == untimed(expected.summary)


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
    rows = [line.split() for line in done.stdout.splitlines()]
    for line in kept["history"][1:]:
        figures = [line["student_f1"], line["teacher_f1"], line["selected"], line["agreement"], line["error"]]
        figures += [line["selected_error"], line["entity_error"], line["selected_entity_error"]]
        row = [f"{value:.1f}" for value in figures if value is not None]
        assert [str(line["round"]), *row] in rows
        student = re.search(
            rf"^round {line['round']}: student +\d+ steps, \d+ s, loss \S+, dev F1 (\S+)$", done.stderr, re.MULTILINE
        )
        assert student is not None
        assert float(student[1]) == pytest.approx(line["student_f1"], abs=0.05)
    assert "       student  teacher  selected  agree" in done.stdout
