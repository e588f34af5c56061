from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.tagger.accel import plain_kernels as plain
from tests.tagger.accel.test_cpu_forward import MODELS, batch_of, model_of
from torch import Tensor

from sequst.corpus.generated import generate
from sequst.tagger.accel.forward import Forward
from sequst.tagger.accel.kernels import Drop, Spans
from sequst.tagger.accel.layers import Layers
from sequst.tagger.accel.varlen_forward import AT_ONCE, VarlenForward, _shares
from sequst.tagger.predict import Words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.passes import mc_passes


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return model_of(request.param)


def packed(model: Any) -> VarlenForward:
    known = Layers.of(model)
    assert known is not None
    return VarlenForward(known, plain, torch.float32)


@pytest.mark.parametrize("lengths", [(9, 4, 7), (6, 6)])
def test_it_computes_what_transformers_computes(model: Any, lengths: tuple[int, ...]) -> None:
    batch = batch_of(lengths)
    with torch.inference_mode():
        ours = packed(model).hidden(batch)
        theirs = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
    torch.testing.assert_close(ours[batch.word_mask], theirs[batch.word_mask], atol=2e-5, rtol=1e-5)


def test_with_the_same_masks_it_drops_what_transformers_drops(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of((6, 6))  # of one length, so that packing changes no place
    keys = np.random.default_rng(5)
    model.base_model.embeddings.dropout.p = 0.0  # that dropout is torch's own
    with torch.inference_mode():
        ours = next(packed(model).passes(batch, 1, 5))[0]

    def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if not training or p == 0:
            return x
        first, second = keys.integers(2**31, size=2).tolist()
        drop = Drop(p, (first, second))
        if x.ndim == 4:
            stays = plain.kept_weights(torch.arange(x.numel()).view_as(x), drop)
        else:
            stays = plain.kept_features(x.numel() // x.shape[-1], x.shape[-1], drop, x.device).view_as(x)
        return torch.where(stays, x * drop.scale, 0.0)

    monkeypatch.setattr(torch.nn.functional, "dropout", dropout)
    with torch.inference_mode():
        theirs = model.train()(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
    torch.testing.assert_close(ours, theirs, atol=5e-5, rtol=1e-4)


def test_passes_at_once_are_passes_one_by_one(model: Any) -> None:
    """Whatever lies beside it, a pass sees its own sub-words alone: without dropout all are alike."""
    batch = batch_of()
    for dropout in (each for each in model.modules() if isinstance(each, torch.nn.Dropout)):
        dropout.p = 0.0
    with torch.inference_mode():
        several = torch.cat(list(packed(model).passes(batch, 3, 1)))
        one = packed(model).hidden(batch)
    assert several.shape == (3, *one.shape)
    for each in several:
        torch.testing.assert_close(each[batch.word_mask], one[batch.word_mask])


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_words_of_windows_are_found(tiny_encoder: str, head: str) -> None:
    """Sub-words that speak for no word, words that another window owns, rows of other lengths: as the tagger has them."""
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2, max_length=12, overlap=4, head=head)
    known = Layers.of(tagger.encoder)
    assert known is not None
    fast = VarlenForward(known, plain, torch.float32)
    with torch.inference_mode():
        for batch, _ in Words(tagger, generate().test[:20]).batches(200):
            torch.testing.assert_close(
                fast.hidden(batch)[batch.word_mask], tagger.hidden(batch)[batch.word_mask], atol=2e-5, rtol=1e-4
            )


def test_passes_are_those_of_the_plain_path_within_chance(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2)
    with torch.no_grad():
        tagger.head.linear.weight.mul_(30)
    [(batch, _)] = Words(tagger, generate().test[:4]).batches(10_000)
    known = Layers.of(tagger.encoder)
    assert known is not None
    count, found = 400, []
    with torch.inference_mode():
        for packed in (VarlenForward(known, plain, torch.float32), None):
            forward = Forward(tagger)
            forward.cpu, forward.varlen = None, packed
            runs = torch.cat([p[:, batch.owned].exp() for p in mc_passes(tagger, forward, batch, count, 7)])
            assert len(runs) == count
            found.append((runs.mean(0), runs.var(0)))
    (mean, spread), (plain_mean, plain_spread) = found
    apart = (mean - plain_mean) / ((spread + plain_spread) / count).sqrt()
    assert apart.abs().max() < 5
    assert apart.pow(2).mean() < 1.6
    assert (spread.mean() / plain_spread.mean()).item() == pytest.approx(1.0, abs=0.1)


def test_shares_are_even_and_fit() -> None:
    assert _shares(20, 100) == [20]
    assert _shares(20, 16384) == [4] * 5
    assert _shares(20, 10 * AT_ONCE) == [1] * 20
    assert _shares(0, 100) == []
    assert sum(_shares(20, 9000)) == 20
    for passes, tokens in ((20, 9000), (9, 14000), (7, 30000), (20, 65536)):
        assert sum(_shares(passes, tokens)) == passes
        assert max(_shares(passes, tokens)) * tokens <= AT_ONCE


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_masks_look_random(rate: float) -> None:
    """As many are dropped as should be, and no mask knows of another: of other keys, of its neighbours, of the rows above."""
    count, width = 1 << 10, 256
    drops = [Drop(rate, keys) for keys in ((7, 11), (8, 12), (7, 13), (123456789, 11))]
    masks = [plain.kept_features(count, width, drop, torch.device("cpu")).flatten().double() for drop in drops]
    masks += [plain.kept_weights(torch.arange(count * width), drop).double() for drop in drops]
    error = (rate * (1 - rate) / masks[0].numel()) ** 0.5
    for mask in masks:
        assert abs(float(mask.mean()) - (1 - rate)) < 5 * error
    one = masks[0]
    pairs = [(one, other) for other in masks[1:4]] + [(one[1:], masks[1][:-1]), (masks[4], masks[5]), (masks[4], masks[6])]
    pairs += [(mask, mask.roll(by)) for mask in (one, masks[4]) for by in (1, 2, 64, width // 2, width, width * 3)]
    for left, right in pairs:
        related = float(((left - left.mean()) * (right - right.mean())).mean()) / (rate * (1 - rate))
        assert abs(related) < 5 / one.numel() ** 0.5
    assert Drop(rate, (0, 0)).scale == pytest.approx(1 / (1 - rate), rel=1e-4)


def example(lengths: tuple[int, ...], passes: int, heads: int, size: int, dtype: torch.dtype, device: str) -> tuple[Any, ...]:
    torch.manual_seed(2)
    starts = torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32, device=device)
    spans = Spans(starts, sum(lengths), max(lengths))
    qkv = torch.randn(passes * spans.tokens, 3 * heads * size, device=device).to(dtype)
    return qkv, spans, torch.randn(heads, 2 * spans.longest - 1, device=device)


DTYPES = {torch.float32: 2e-5, torch.bfloat16: 2e-2}


def kernels_agree(device: str, dtype: torch.dtype, lengths: tuple[int, ...], biased: bool, rate: float) -> None:
    from sequst.tagger.accel.kernels import varlen as fused

    qkv, spans, bias = example(lengths, 2, 2, 32, dtype, device)
    drop = Drop(rate, (123456789, 2**31 - 5)) if rate else None
    ours, theirs = (kernels.attention(qkv, spans, 2, bias if biased else None, drop) for kernels in (fused, plain))
    torch.testing.assert_close(ours.float(), theirs.float(), atol=DTYPES[dtype], rtol=DTYPES[dtype])
    norm = torch.nn.LayerNorm(96).to(device)
    torch.nn.init.normal_(norm.weight), torch.nn.init.normal_(norm.bias)
    ours, theirs = (
        kernels.add_norm(qkv[:, :96].contiguous(), qkv[:, 96:].contiguous(), norm, drop) for kernels in (fused, plain)
    )
    torch.testing.assert_close(ours.float(), theirs.float(), atol=2 * DTYPES[dtype], rtol=DTYPES[dtype])


@pytest.mark.gpu
@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize(
    ("dtype", "lengths", "biased"),
    [
        (torch.bfloat16, (9, 4, 7), False),
        (torch.bfloat16, (30, 1, 22), True),
        (torch.bfloat16, (200, 130), False),
        (torch.float32, (64, 1, 33), True),
    ],
)
def test_fused_kernels_compute_what_the_plain_ones_do(
    dtype: torch.dtype, lengths: tuple[int, ...], biased: bool, rate: float
) -> None:
    kernels_agree("cuda", dtype, lengths, biased, rate)
