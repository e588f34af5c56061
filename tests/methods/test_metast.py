from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sequst.api import train
from sequst.corpus.generated import generate
from sequst.corpus.sampling import Split
from sequst.errors import SequstError
from sequst.methods.metast import MetaWeightedWords, call_with, twice_differentiable, window_losses
from sequst.objectives.masked import word_losses
from sequst.objectives.reweighting import slopes_of, worth_by_tangent
from sequst.tagger.accel.fused_encoder import FusedEncoder
from sequst.tagger.accel.layers import Layers
from sequst.tagger.batches import Batch, collate
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.heads import SoftmaxHead
from sequst.tagger.tagger import Tagger, labels_of
from sequst.training.loop import Examples
from sequst.training.settings import MetaSt, Settings
from sequst.uncertainty.beliefs import Beliefs
from tests.methods.test_self_training import QUICK, metrics, run, same_weights
from tests.tagger.accel import plain_training_kernels as plain_learning
from tests.tagger.accel.test_fused_encoder import without_dropout
from tests.training.test_steps import calls_of


class Labelled:
    """What `MetaWeightedWords` reads of a run."""

    def __init__(self, **options: Any) -> None:
        self.settings = Settings(metast=MetaSt(**options))


def examples_of(tagger: Tagger, sentences: list[Any]) -> Examples:
    return Examples(tagger.splitter.windows([s.words for s in sentences]), [tagger.label_ids(s.tags or ()) for s in sentences])


def weighed_by(tagger: Tagger, split: Split, **options: Any) -> MetaWeightedWords:
    return MetaWeightedWords(Labelled(**options), examples_of(tagger, split.labeled), seed=1)  # type: ignore[arg-type]


def losses_of(tagger: Tagger, batch: Batch) -> torch.Tensor:
    assert batch.labels is not None
    return word_losses(tagger(batch), batch.labels)


@pytest.mark.parametrize(("encoder", "head"), [("tiny", "softmax"), ("tiny", "crf"), ("bilstm", "softmax"), ("bilstm", "crf")])
def test_weights_are_the_slopes_of_the_meta_loss(encoder: str, head: str, split: Split, tiny_encoder: str) -> None:
    """Of a whole tagger, by differences: in double precision but for the scores, and without dropout."""
    name, rate = (tiny_encoder if encoder == "tiny" else encoder), 0.5
    text = [s.words for s in split.labeled]
    tagger = Tagger.from_encoder(name, labels_of(split.labeled), seed=1, head=head, text=text).double()
    without_dropout(tagger)
    tagger.eval()
    examples = examples_of(tagger, split.labeled[:4])
    batch = examples_of(tagger, split.dev[:3]).batch([0, 1, 2], tagger)
    assert batch.labels is not None
    objective = MetaWeightedWords(Labelled(warmup=0.0, rate=rate), examples, seed=1)  # type: ignore[arg-type]
    found, _ = objective.weighed(tagger, batch)
    chosen = batch.selected
    learners = dict(tagger.named_parameters())

    def after(weights: torch.Tensor) -> float:
        loss = (weights * word_losses(tagger(batch), batch.labels)[chosen]).sum()  # type: ignore[arg-type]
        gradients = torch.autograd.grad(loss, list(learners.values()), allow_unused=True)
        moved = {
            name: value if gradient is None else value - rate * gradient
            for (name, value), gradient in zip(learners.items(), gradients, strict=True)
        }
        return call_with(tagger, moved, lambda tagger: tagger.loss(examples.batch([0, 1, 2, 3], tagger))).item()

    count = int(chosen.sum())
    even, slopes = torch.full((count,), 1 / count, dtype=torch.double), []
    for i in range(count):
        little = torch.zeros_like(even)
        little[i] = 1e-4
        slopes.append((after(even + little) - after(even - little)) / 2e-4)
    expected = torch.tensor(slopes).neg().clamp(min=0)
    assert (expected > 0).any()
    assert (expected == 0).any()
    assert torch.allclose(found[chosen].float(), expected / expected.sum(), rtol=1e-2, atol=1e-3)


@pytest.fixture
def going_fast(split: Split, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tagger]:
    """Makes taggers in training whose encoder goes the fast way, in plain kernels."""

    def make(head: str, dropout: bool = True) -> Tagger:
        tagger = Tagger.from_encoder(tiny_encoder, labels_of(split.labeled), seed=1, head=head).train()
        assert isinstance(tagger.encoder, Transformer)
        with torch.no_grad():
            tagger.head.linear.weight.normal_(generator=torch.Generator().manual_seed(2))  # words that differ in worth
        if not dropout:
            without_dropout(tagger)
        known = Layers.of(tagger.encoder)
        assert known is not None
        way = FusedEncoder(tagger.encoder, known, plain_learning, torch.float32)
        monkeypatch.setattr(way, "takes", lambda batch: True)
        tagger.encoder.fused = way
        return tagger

    return make


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_by_the_fast_way_they_are_the_same(
    head: str, going_fast: Callable[..., Tagger], split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a GPU, in plain kernels and without dropout: weights of words, and the gradients of what is learnt with them."""
    found = []
    for fast in (False, True):
        tagger = going_fast(head, dropout=False)
        if not fast:
            assert isinstance(tagger.encoder, Transformer)
            tagger.encoder.fused = None
        taken = calls_of(FusedEncoder, "states", monkeypatch)
        batch = examples_of(tagger, split.dev[:6]).batch([0, 1, 2, 3, 4, 5], tagger)
        objective = weighed_by(tagger, split, warmup=0.0, rate=0.5)
        objective.begin_step(3, 10)
        loss, told = objective.loss(tagger, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        assert len(taken) == (4 if fast else 0)  # those of the virtual step, the meta loss, the worth
        gradients = {name: weight.grad for name, weight in tagger.named_parameters() if weight.grad is not None}
        found.append((loss.detach(), told["weighed"], gradients))
    torch.testing.assert_close(found[1][0], found[0][0], rtol=2e-3, atol=1e-5)
    assert 0 < found[0][1] < 1
    assert abs(found[1][1] - found[0][1]) < 0.05
    assert found[0][2].keys() <= found[1][2].keys()
    for name, gradient in found[0][2].items():
        torch.testing.assert_close(found[1][2][name], gradient, atol=5e-3 * float(gradient.abs().max() + 1e-3), rtol=0)


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_by_the_fast_way_all_see_one_mask(
    head: str, going_fast: Callable[..., Tagger], split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout: the losses that are learnt are those of the virtual step, and they change along the meta gradient by what
    differences say."""
    tagger = going_fast(head)
    batch = examples_of(tagger, split.dev[:6]).batch([0, 1, 2, 3, 4, 5], tagger)
    objective = weighed_by(tagger, split, warmup=0.0, rate=0.5)
    objective.begin_step(3, 10)
    given: list[Any] = []
    monkeypatch.setattr("sequst.methods.metast.worth_by_tangent", lambda *all_: given.extend(all_) or worth_by_tangent(*all_))
    _, losses = objective.weighed(tagger, batch)
    losses_at, counted, parameters, meta_slopes, rate = given
    before = losses_at(parameters)
    assert torch.equal(before, losses)
    assert not torch.allclose(losses_of(tagger, batch), before, atol=1e-3)  # as other masks would have it
    step = slopes_of(torch.where(counted, before, 0.0).sum() / counted.sum(), parameters)
    slopes = meta_slopes(
        {name: (each - rate * step.get(name, 0.0)).detach().requires_grad_() for name, each in parameters.items()}
    )
    little = 1e-3

    def after(way: float) -> torch.Tensor:
        return losses_at({name: (p + way * little * slopes.get(name, 0.0)).detach() for name, p in parameters.items()})

    differences = torch.where(counted, rate * (after(1) - after(-1)) / (2 * little), 0.0)
    found = worth_by_tangent(*given)
    torch.testing.assert_close(found, differences, atol=2e-3 * float(differences.abs().max()), rtol=0.0)
    assert torch.equal(losses_at(parameters), before)


def test_other_parameters_are_gone_after_an_error(going_fast: Callable[..., Tagger], split: Split) -> None:
    tagger = going_fast("softmax", dropout=False)
    batch = examples_of(tagger, split.dev[:2]).batch([0, 1], tagger)
    before = tagger(batch)
    others = {name: weight + 0.1 for name, weight in tagger.named_parameters()}

    def fail(tagger: Tagger) -> None:
        assert not torch.allclose(tagger(batch), before, atol=1e-2)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        call_with(tagger, others, fail)
    assert torch.equal(tagger(batch), before)


def test_a_student_that_is_resumed_draws_the_same(split: Split, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"REFRESH": 2, "META_BATCH": 4, "SMOOTHING": 1e-6}.items():
        monkeypatch.setattr(f"sequst.methods.metast.{name}", value)
    tagger = Tagger.from_encoder(tiny_encoder, labels_of(split.labeled), seed=1)
    batch = examples_of(tagger, split.dev[:2]).batch([0, 1], tagger)
    whole = weighed_by(tagger, split, warmup=0.0)
    for step in range(5):  # at 0, 2 and 4 it looks
        whole.begin_step(step, 10)
        whole.weighed(tagger, batch)
        with torch.no_grad():
            tagger.head.linear.weight.normal_(generator=torch.Generator().manual_seed(step))
    resumed = weighed_by(tagger, split, warmup=0.0)
    whole.begin_step(5, 10), resumed.begin_step(5, 10)
    at_first = resumed._draw()
    resumed = weighed_by(tagger, split, warmup=0.0)
    resumed.begin_step(5, 10)
    resumed.nets.load_state_dict(whole.nets.state_dict())
    assert resumed._draw() == whole._draw() != at_first


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_corrupted_words_weigh_less(head: str, split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a student that has begun to learn, from other sentences than it is judged by."""
    monkeypatch.setattr("sequst.methods.metast.META_BATCH", 40)
    teacher = {"min_steps": 20, "epochs": 0.1}
    tagger = train(split.dev, tmp_path / "run", encoder="bilstm", head=head, teacher=teacher).tagger.train()
    known = {s.words for s in (*split.labeled, *split.dev)}
    sentences = [s for s in generate().pool if s.words not in known][:16]
    truth = [tagger.label_ids(s.tags or ()) for s in sentences]
    rng = np.random.default_rng(1)
    shifts = [rng.integers(1, len(tagger.labels), len(labels)) * (rng.random(len(labels)) < 0.2) for labels in truth]
    given = [((np.array(labels) + shift) % len(tagger.labels)).tolist() for labels, shift in zip(truth, shifts, strict=True)]
    batch = collate(tagger.splitter.windows([s.words for s in sentences]), list(range(16)), tagger.pad_id, given)
    assert batch.labels is not None
    objective = weighed_by(tagger, split, warmup=0.0, rate=0.2)
    total = torch.zeros_like(batch.selected, dtype=torch.float)
    for step in range(5):
        objective.begin_step(step, 10)
        weights, _ = objective.weighed(tagger, batch)
        assert weights.sum().item() == pytest.approx(1.0, abs=1e-4)
        assert not weights[~batch.selected].any()
        total += weights
    bad = torch.zeros_like(batch.selected)
    for row, shift in enumerate(shifts):
        bad[row, : len(shift)] = torch.tensor(shift > 0)
    assert total[bad].mean() < 0.6 * total[batch.selected & ~bad].mean()


@pytest.mark.parametrize("encoder", ["tiny", "bilstm"])
def test_a_tagger_called_with_other_parameters_keeps_its_own(encoder: str, tiny_encoder: str) -> None:
    name = tiny_encoder if encoder == "tiny" else encoder
    tagger, other = (Tagger.from_encoder(name, ["O", "B-X", "I-X"], seed=seed, text=[["one", "two"]]) for seed in (1, 2))
    batch = collate(tagger.splitter.windows([("one", "two")]), [0], tagger.pad_id)
    before = tagger(batch)
    assert torch.equal(call_with(tagger, dict(other.named_parameters()), lambda tagger: tagger(batch)), other(batch))
    assert torch.equal(tagger(batch), before)
    assert not torch.equal(other(batch), before)


def test_attention_can_be_differentiated_twice(tiny_encoder: str) -> None:
    """Fused attention cannot; the test fails where it is not switched off."""
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1)
    batch = collate(tagger.splitter.windows([("one", "two", "three")]), [0], tagger.pad_id)
    weights = [value for name, value in tagger.named_parameters() if "query.weight" in name]
    with twice_differentiable():
        gradients = torch.autograd.grad(tagger(batch).square().sum(), weights, create_graph=True)
        again = torch.autograd.grad(sum(g.square().sum() for g in gradients), weights)
    assert all(value.abs().sum() > 0 for value in again)


def test_losses_of_windows_by_hand(split: Split, tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, labels_of(split.labeled), seed=1).train()
    examples = examples_of(tagger, split.labeled)
    found = window_losses(tagger, examples)
    assert tagger.training
    tagger.eval()
    for i in (0, 7):
        batch = examples.batch([i], tagger)
        assert batch.labels is not None
        expected = -tagger(batch)[0, range(len(batch.labels[0])), batch.labels[0]].mean()
        assert found[i].item() == pytest.approx(expected.item(), rel=1e-4)


def test_labels_are_drawn_from_the_teacher(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", "metast", max_rounds=1, keep_rounds=True)
    beliefs = Beliefs.from_file(result.path / "rounds/1/beliefs/beliefs.npz")
    assert 0.02 < (beliefs.labels != beliefs.best).mean() < 0.9
    assert beliefs.confidence[beliefs.labels != beliefs.best].mean() < beliefs.confidence.mean()


def test_it_weighs_after_its_warm_up_and_retunes_gently(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", "metast", max_rounds=1, metast={"warmup": 0.5})
    lines = [line for line in metrics(result.path) if line["phase"] == "student"]
    assert lines[0]["weighed"] == pytest.approx(1.0)
    assert 0.1 < lines[-1]["weighed"] < 0.9
    [rate] = {line["learning_rate"] for line in metrics(result.path) if line["phase"] == "retune" and line["step"] == 4}
    assert rate < 0.1 * QUICK["learning_rate"]
    options = {"max_rounds": 1, "keep": "student", "dev": None}
    plain, exact = (
        run(split, tiny_encoder, tmp_path / str(warmup), "metast", metast={"warmup": warmup}, **options)
        for warmup in (0.99, 0.3)
    )
    assert [result.summary["kept_round"] for result in (plain, exact)] == [1, 1]
    assert not same_weights(plain.tagger, exact.tagger)


def test_a_teacher_that_finds_nothing_ends_the_run_whatever_is_drawn(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = SoftmaxHead.decode

    def all_o(self: SoftmaxHead, scores: Any, rows: Any) -> Any:
        decoded = kept(self, scores, rows)
        return decoded._replace(labels=torch.zeros_like(decoded.labels))

    monkeypatch.setattr(SoftmaxHead, "decode", all_o)
    with pytest.raises(SequstError, match="labels every unlabelled word O"):
        run(split, tiny_encoder, tmp_path / "run", "metast", dev=None)
