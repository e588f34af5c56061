from __future__ import annotations

import pytest
import torch
import transformers
from torch import nn

from sequst.tagger.batches import Batch, collate
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.mc_dropout import mc_dropout


@pytest.fixture
def tagger(tiny_encoder: str) -> Tagger:
    return Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1)


def batch_of(tagger: Tagger) -> Batch:
    windows = tagger.splitter.windows([["We", "play", "in", "Oslo"], ["a"]])
    return collate(windows, [0, 1], tagger.pad_id)


@torch.no_grad()
def passes(tagger: Tagger, seed: int, count: int = 2) -> list[torch.Tensor]:
    batch = batch_of(tagger)
    with mc_dropout(tagger, seed):
        return [tagger(batch) for _ in range(count)]


def test_passes_differ_and_the_seed_decides_them(tagger: Tagger) -> None:
    first, again, other = passes(tagger, 1), passes(tagger, 1), passes(tagger, 2)
    assert not torch.equal(first[0], first[1])
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])


def test_modes_and_random_state_are_restored_even_after_an_exception(tagger: Tagger) -> None:
    tagger.eval()
    tagger.head.train()
    before = {name: module.training for name, module in tagger.named_modules()}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with pytest.raises(TypeError), mc_dropout(tagger, 1):
        torch.rand("not a size")  # type: ignore[call-overload]
    assert {name: module.training for name, module in tagger.named_modules()} == before
    assert torch.equal(torch.rand(3), expected)


def test_attention_dropout_is_on(tiny_encoder: str) -> None:
    """With every other dropout at 0 the passes still differ, under the fused attention too."""
    for implementation in ("sdpa", "eager"):
        tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1)
        tagger.encoder.model.set_attn_implementation(implementation)
        for name, module in tagger.named_modules():
            if isinstance(module, nn.Dropout) and "attention.self" not in name:
                module.p = 0.0
        first, second = passes(tagger, 1)
        assert not torch.equal(first, second), implementation
        for module in tagger.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        first, second = passes(tagger, 1)
        assert torch.equal(first, second), "nothing but dropout is random"


def test_attention_dropout_is_on_in_an_architecture_without_fused_attention() -> None:
    config = transformers.MPNetConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, hidden_dropout_prob=0.0
    )
    model = transformers.MPNetModel(config).eval()
    ids = torch.arange(5, 15).unsqueeze(0)
    with torch.no_grad(), mc_dropout(model, 3):
        assert not torch.equal(model(ids).last_hidden_state, model(ids).last_hidden_state)
    with torch.no_grad():
        assert torch.equal(model(ids).last_hidden_state, model(ids).last_hidden_state)


def test_running_statistics_are_left_alone() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5)).eval()
    with mc_dropout(model, 1):
        model(torch.randn(8, 4) + 3)
    assert torch.equal(model[0].running_mean, torch.zeros(4))
