from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sequst.api import train
from sequst.corpus.sampling import Split
from sequst.errors import UsageError
from sequst.methods import seqvat as seqvat_module
from sequst.methods.vat import Divergence, LabelledAndAdversarial, constant, word_divergence
from sequst.objectives.adversarial import adversarial_direction, unit
from sequst.objectives.consistency import divergence
from sequst.tagger.accel.fused_encoder import FusedEncoder
from sequst.tagger.accel.layers import Layers
from sequst.tagger.batches import collate
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.tagger import Tagger, labels_of
from sequst.training.settings import Settings
from sequst.uncertainty.mc_dropout import same_dropout
from tests.methods.test_self_training import QUICK, metrics, same_weights
from tests.tagger.accel import plain_training_kernels as plain_learning


@pytest.mark.parametrize("head", ["softmax", "crf"])
@pytest.mark.parametrize("method", ["vat", "seqvat"])
def test_it_learns_beside_the_labelled_words(
    method: str, head: str, split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sequst.training.loop.WEIGHT_DECAY", 0.0)  # else words that the text alone has would decay
    options: dict[str, Any] = {
        "evaluations": 2,
        "encoder": tiny_encoder,
        "head": head,
        "teacher": {**QUICK, "min_steps": 60},
        "dev": split.dev,
    }
    result = train(split.labeled, tmp_path / "run", unlabeled=split.unlabeled[:60], method=method, **options)
    alone = train(split.labeled, tmp_path / "alone", **options)
    assert result.summary["dev_f1"] > 15  # an untrained tagger is below 5
    assert not same_weights(result.tagger, alone.tagger)
    lines = [line for line in metrics(result.path) if line["phase"] == "teacher"]
    assert all(line["adversarial"] > 0 for line in lines)
    assert lines[-1]["labelled"] < lines[0]["labelled"]
    off = train(split.labeled, tmp_path / "off", unlabeled=split.unlabeled[:60], method=method, vat={"weight": 0.0}, **options)
    torch.testing.assert_close(off.tagger.state_dict(), alone.tagger.state_dict())  # it draws from no stream of training


def test_weights_are_constant_while_the_direction_is_sought(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1)
    still = tagger.head.linear.bias.requires_grad_(False)
    with constant(tagger):
        assert not any(weight.requires_grad for weight in tagger.parameters())
    assert [weight for weight in tagger.parameters() if not weight.requires_grad] == [still]


def test_the_perturbation_found_moves_more_than_random_ones(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"encoder": tiny_encoder, "teacher": {**QUICK, "min_steps": 100}}
    tagger = train(split.labeled, tmp_path / "run", **options).tagger.train()
    batch = collate(tagger.splitter.windows([s.words for s in split.dev[:8]]), list(range(8)), tagger.pad_id)
    embeddings, mask = tagger.embeddings(batch), batch.attention_mask.float()

    def scores(inputs: torch.Tensor) -> torch.Tensor:
        with same_dropout(tagger, 5):
            return tagger.head.scores(tagger.hidden(batch, inputs))

    clean = scores(embeddings).detach()
    assert word_divergence(tagger, batch, clean, scores(embeddings)).item() == pytest.approx(0.0, abs=1e-6)

    def apart(inputs: torch.Tensor) -> torch.Tensor:
        return word_divergence(tagger, batch, clean, scores(inputs))

    worst = adversarial_direction(embeddings, mask, apart, torch.Generator().manual_seed(1), 0.1)
    rng = torch.Generator().manual_seed(2)
    with torch.no_grad():
        found = apart(embeddings + worst)
        others = [apart(embeddings + unit(torch.randn(embeddings.shape, generator=rng), mask)) for _ in range(10)]
    assert found > 1.5 * max(others)


@pytest.mark.parametrize("method", ["vat", "seqvat"])
def test_by_the_fast_way_it_is_the_same(method: str, split: Split, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a GPU, in plain kernels and without dropout: the loss of a step and its gradients."""
    apart: list[Divergence] = []
    monkeypatch.setattr(seqvat_module, "adversarial", lambda run, each: apart.append(each))
    run: Any = SimpleNamespace(settings=Settings(), data=SimpleNamespace(unlabeled=split.unlabeled[:40]))
    seqvat_module.seqvat(run)
    found = []
    for fast in (False, True):
        tagger = Tagger.from_encoder(tiny_encoder, labels_of(split.labeled), seed=1).train()
        assert isinstance(tagger.encoder, Transformer)
        for module in tagger.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        known = Layers.of(tagger.encoder)
        assert known is not None
        way = FusedEncoder(tagger.encoder, known, plain_learning, torch.float32)
        taken = 0

        def states(*inputs: Any, way: FusedEncoder = way) -> torch.Tensor:
            nonlocal taken
            taken += 1
            return FusedEncoder.states(way, *inputs)

        monkeypatch.setattr(way, "states", states)
        monkeypatch.setattr(way, "takes", lambda batch: True)
        tagger.encoder.fused = way if fast else None
        objective = LabelledAndAdversarial(run, tagger, word_divergence if method == "vat" else apart[0])
        objective.begin_step(3, 10)
        windows = tagger.splitter.windows([s.words for s in split.labeled])
        labels = [tagger.label_ids(s.tags or ()) for s in split.labeled]
        loss, told = objective.loss(tagger, collate(windows, list(range(6)), tagger.pad_id, labels))
        loss.backward()
        assert taken == (4 if fast else 0)  # labelled, clean, a little away, the worst
        assert told["adversarial"] > 0
        gradients = {name: weight.grad for name, weight in tagger.named_parameters() if weight.grad is not None}
        found.append((loss.detach(), told, gradients))
    torch.testing.assert_close(found[1][:2], found[0][:2], rtol=1e-4, atol=1e-6)
    assert found[0][2].keys() <= found[1][2].keys()
    for name, gradient in found[0][2].items():
        torch.testing.assert_close(found[1][2][name], gradient, atol=1e-4 * float(gradient.abs().max() + 1e-3), rtol=0)


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_the_clean_side_is_a_target(head: str, tiny_encoder: str) -> None:
    """The gradient of everything, a chain's own scores included, is that towards fixed probabilities."""
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1, head=head).eval()
    batch = collate(tagger.splitter.windows([("one", "two", "three", "four")]), [0], tagger.pad_id)
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in tagger.head.parameters(recurse=False):
            parameter.normal_(generator=rng)
    clean, other = (torch.randn(1, 4, 3, generator=rng) for _ in range(2))
    fixed = tagger.head.log_probs(clean, batch.rows).detach()
    learners = [tagger.head.linear.bias, *tagger.head.parameters(recurse=False)]
    found, expected = (
        torch.autograd.grad(loss, learners, allow_unused=True)
        for loss in (
            word_divergence(tagger, batch, clean, other + tagger.head.linear.bias),
            divergence(fixed, tagger.head.log_probs(other + tagger.head.linear.bias, batch.rows)).mean(),
        )
    )
    for one, two in zip(found, expected, strict=True):
        assert one is not None
        assert two is not None
        assert torch.allclose(one, two, atol=1e-6)


def test_a_killed_run_would_see_the_same_unlabelled_batches(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "encoder": tiny_encoder, "teacher": {**QUICK, "min_steps": 40}, "checkpoint_seconds": 0.0,
        "unlabeled": split.unlabeled[:60], "method": "vat", "dev": split.dev,
    }  # fmt: skip
    whole = train(split.labeled, tmp_path / "whole", **options)
    from sequst.api import resume
    from sequst.training import loop

    taken = 0
    kept = loop._set_rate

    def stopping(*arguments: Any) -> None:
        nonlocal taken
        taken += 1
        if taken == 23:
            raise KeyboardInterrupt
        kept(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "_set_rate", stopping)
        with pytest.raises(KeyboardInterrupt):
            train(split.labeled, tmp_path / "stopped", **options)
    again = resume(tmp_path / "stopped")
    assert same_weights(again.tagger, whole.tagger)
    assert metrics(again.path) == metrics(whole.path)


def test_an_encoder_that_takes_no_embeddings_is_refused_before_a_run_is_made(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Tagger.hidden

    def hidden(self: Tagger, batch: Any, embeddings: Any = None) -> Any:
        if embeddings is not None:
            raise TypeError("forward() got an unexpected keyword argument 'inputs_embeds'")
        return kept(self, batch)

    monkeypatch.setattr(Tagger, "hidden", hidden)
    options: dict[str, Any] = {"encoder": tiny_encoder, "teacher": QUICK}
    with pytest.raises(UsageError, match=r"seqvat perturbs word embeddings.*inputs_embeds"):
        train(split.labeled, tmp_path / "run", unlabeled=split.unlabeled[:20], method="seqvat", **options)
    assert not (tmp_path / "run").exists()
    train(split.labeled, tmp_path / "run", **options)
