from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tagger.accel import plain_training_kernels as plain_learning
from tests.tagger.accel.test_cpu_forward import MODELS, SMALL, batch_of, model_of
from torch import Tensor, nn
from torch.autograd import forward_ad

from sequst.tagger.accel import fused_encoder as learning
from sequst.tagger.accel.fused_encoder import FusedEncoder
from sequst.tagger.accel.kernels import Drop
from sequst.tagger.accel.layers import Layers
from sequst.tagger.batches import Batch, collate
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.tagger import Tagger

KEYS = torch.tensor([123456789, 987654321], dtype=torch.int32)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return model_of(request.param)


def learning_of(model: Any) -> FusedEncoder:
    known = Layers.of(model)
    assert known is not None
    return FusedEncoder(model, known, plain_learning, torch.float32)


def gradients(model: nn.Module, states: Tensor, batch: Batch) -> dict[str, Tensor]:
    """Of a loss that looks at every sub-word which is no padding."""
    model.zero_grad()
    there = batch.attention_mask.bool()
    target = torch.randn(states.shape, generator=torch.Generator().manual_seed(3)).to(states)
    (states - target)[there].pow(2).sum().backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def alike(ours: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float) -> None:
    assert set(ours) == set(theirs)
    for name in theirs:
        torch.testing.assert_close(ours[name], theirs[name], atol=tolerance * float(theirs[name].abs().max() + 1), rtol=0)


def without_dropout(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


@pytest.mark.parametrize("lengths", [(9, 4, 7), (6, 6)])
def test_states_and_gradients_are_those_of_transformers(model: Any, lengths: tuple[int, ...]) -> None:
    batch = batch_of(lengths)
    without_dropout(model)
    model.train()
    ours = learning_of(model).states(batch)
    theirs = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
    there = batch.attention_mask.bool()
    torch.testing.assert_close(ours[there], theirs[there], atol=2e-5, rtol=1e-5)
    expected = gradients(model, theirs, batch)
    expected = {name: each for name, each in expected.items() if each.abs().max() > 0}
    found = gradients(model, ours, batch)
    alike({name: found[name] for name in expected}, expected, 1e-5)
    assert all(float(found[name].abs().max()) < 1e-5 for name in set(found) - set(expected))


def test_word_embeddings_may_be_given(model: Any) -> None:
    """And have their gradient, with those of weights or without."""
    batch = batch_of((9, 4, 7))
    without_dropout(model)
    model.train()
    there = batch.attention_mask.bool()
    noise = torch.randn(*batch.input_ids.shape, SMALL["hidden_size"], generator=torch.Generator().manual_seed(1))
    words = (model.get_input_embeddings()(batch.input_ids) + noise).detach().requires_grad_()
    way = learning_of(model)
    ours, theirs = way.states(batch, words), model(inputs_embeds=words, attention_mask=batch.attention_mask).logits
    torch.testing.assert_close(ours[there], theirs[there], atol=2e-5, rtol=1e-5)
    assert not torch.allclose(ours[there], way.states(batch)[there], atol=1e-3)
    expected = gradients(model, theirs, batch)
    expected = {name: each for name, each in expected.items() if each.abs().max() > 0}
    alike({name: each for name, each in gradients(model, ours, batch).items() if name in expected}, expected, 1e-5)
    slopes = []
    for kind in ("theirs", "ours", "ours alone"):
        model.requires_grad_(kind != "ours alone")
        inputs = {"inputs_embeds": words, "attention_mask": batch.attention_mask}
        states = model(**inputs).logits if kind == "theirs" else way.states(batch, words)
        slopes += torch.autograd.grad(states[there].pow(3).sum(), words)
    for slope in slopes[1:]:
        torch.testing.assert_close(slope, slopes[0], atol=1e-5 * float(slopes[0].abs().max()), rtol=0)


def test_copies_follow_the_weights_when_they_are_refreshed(model: Any) -> None:
    batch = batch_of((9, 4))
    without_dropout(model)
    model.train()
    way = learning_of(model)
    before = way.states(batch)
    with torch.no_grad():
        for weight in way.copies:
            weight += 0.01 * torch.randn_like(weight)
    assert torch.equal(way.states(batch), before)
    way.refresh()
    assert torch.equal(way.states(batch), learning_of(model).states(batch))
    assert not torch.equal(way.states(batch), before)


def by_autograd(states: Tensor, bias: Tensor | None, fused: Any, sizes: Tensor, keys: Tensor, *_: Tensor) -> Tensor:
    """Layers in plain steps, of which torch finds the gradients."""
    for layer in fused.layers:
        known = layer.known
        qkv = torch.cat([part(states) for part in (known.query, known.key, known.value)], -1)
        seen = plain_learning.attention(qkv, sizes, fused.heads, bias, keys, layer.attention_drop)
        change = known.output(seen)
        middle = plain_learning.add_norm(change, states, known.first_norm, keys, layer.first_drop, torch.float32).out
        inner = known.down(nn.functional.gelu(known.up(middle)))
        states = plain_learning.add_norm(inner, middle, known.second_norm, keys, layer.second_drop, torch.float32).out
    return states


def test_gradients_with_dropout_are_those_of_autograd(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of((9, 4, 7))
    without_dropout(model.base_model.embeddings)
    for module in model.base_model.encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.3
    model.train()
    found = []
    for way in (learning._Stack.apply, by_autograd):
        monkeypatch.setattr(learning._Stack, "apply", way)
        torch.manual_seed(4)
        states = learning_of(model).states(batch)
        found.append((states.detach(), gradients(model, states, batch)))
    torch.testing.assert_close(found[0][0], found[1][0], atol=1e-5, rtol=1e-5)
    alike(found[0][1], found[1][1], 1e-5)
    states = learning_of(model).states(batch)  # the generator went on
    assert not torch.allclose(states, found[0][0], atol=1e-2)


def test_changes_along_a_direction_are_those_of_autograd(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all weights at once, with dropout: a forward that carries how its states change."""
    batch = batch_of((9, 4, 7))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.3
    model.train()
    rng = torch.Generator().manual_seed(5)
    directions = {name: torch.randn(weight.shape, generator=rng) for name, weight in model.named_parameters()}
    found = []
    for way in (learning._Stack.apply, by_autograd):
        monkeypatch.setattr(learning._Stack, "apply", way)
        through = learning_of(model)
        torch.manual_seed(4)
        with forward_ad.dual_level():
            along = {name: forward_ad.make_dual(w.detach(), directions[name]) for name, w in model.named_parameters()}
            states = torch.func.functional_call(_States(model, through), {f"model.{n}": d for n, d in along.items()}, (batch,))
            found.append(forward_ad.unpack_dual(states))
    there = batch.attention_mask.bool()
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours[there], theirs[there], atol=1e-5 * float(theirs.abs().max()), rtol=1e-4)
    assert float(found[0].tangent.abs().max()) > 0.1


class _States(nn.Module):
    """Lets `functional_call` put other weights in the place of a model's."""

    def __init__(self, model: nn.Module, way: FusedEncoder) -> None:
        super().__init__()
        self.model, self._way = model, way

    def forward(self, batch: Batch) -> Tensor:
        return self._way.states(batch)


def test_it_goes_by_what_stands_in_place_of_the_weights(model: Any) -> None:
    batch = batch_of((9, 4))
    without_dropout(model)
    model.train()
    way = learning_of(model)
    before = way.states(batch)
    others = {f"model.{name}": weight + 0.01 * torch.randn_like(weight) for name, weight in model.named_parameters()}
    found = torch.func.functional_call(_States(model, way), others, (batch,))
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    expected = torch.func.functional_call(model, {name[6:]: each for name, each in others.items()}, (), inputs).logits
    there = batch.attention_mask.bool()
    torch.testing.assert_close(found[there], expected[there], atol=2e-5, rtol=1e-5)
    assert not torch.allclose(found, before, atol=1e-3)
    assert torch.equal(way.states(batch), before)


def test_masks_have_their_rate_and_differ_by_site() -> None:
    masks = [plain_learning.kept_features(torch.Size((500, 97)), KEYS, Drop.of_training(0.2, number)) for number in range(2)]
    weights = plain_learning.kept_weights(torch.Size((8, 4, 30, 30)), KEYS, Drop.of_training(0.2, 0))
    for mask in (*masks, weights):
        assert (mask == 0).float().mean().item() == pytest.approx(0.2, abs=0.01)
        assert mask.mean().item() == pytest.approx(1.0, abs=0.02)
    assert ((masks[0] == 0) & (masks[1] == 0)).float().mean().item() == pytest.approx(0.04, abs=0.01)


def test_a_cpu_goes_through_transformers(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O"])
    assert FusedEncoder.of(tagger.encoder) is None


def test_an_encoder_goes_another_way_only_where_it_is_told_to(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O"])
    batch = collate(tagger.splitter.windows([("a", "b")]), [0], tagger.pad_id)
    encoder, taken = tagger.encoder, []
    assert isinstance(encoder, Transformer)
    states = torch.ones(1, batch.input_ids.shape[1], encoder.width)
    way: Any = SimpleNamespace(takes=lambda batch: True, states=lambda batch, words: taken.append(words) or states)

    def goes(train: bool, **more: Any) -> bool:
        tagger.train(train)
        before = len(taken)
        found = encoder(batch, **more)
        assert (len(taken) > before) == torch.equal(found, torch.ones_like(found))
        return len(taken) > before

    assert not goes(True)
    encoder.fused = way
    assert goes(True)
    assert not encoder.has_second_derivative(batch)
    assert not goes(False)
    assert encoder.has_second_derivative(batch)
    embeddings = tagger.embeddings(batch)
    assert goes(True, embeddings=embeddings)
    assert taken == [None, embeddings]
    way.takes = lambda batch: False
    assert not goes(True)
    encoder.fused = None
    way.takes = lambda batch: True
    assert not goes(True)
    known = Layers.of(encoder)
    assert known is not None
    with FusedEncoder(encoder, known, plain_learning, torch.float32) as nothing:
        assert nothing is None
        assert encoder.fused is not None
    assert encoder.fused is None


DTYPES = {torch.float32: 1e-4, torch.bfloat16: 2e-2}


def learning_kernels_agree(
    device: str, dtype: torch.dtype, length: int, biased: bool, rate: float, rows: int = 5, heads: int = 3, size: int = 32
) -> None:
    from sequst.tagger.accel.kernels import training as fused_learning

    torch.manual_seed(0)
    drop, keys = Drop.of_training(rate, 7), KEYS.to(device)
    width, tolerance = heads * size, DTYPES[dtype]
    qkv, along, out = (torch.randn(rows * length, n * width, device=device).to(dtype) for n in (3, 3, 1))
    sizes = torch.tensor([length, 1, max(1, length - 3), length, 2], device=device, dtype=torch.int32)
    sizes = sizes.repeat(-(-rows // 5))[:rows].clamp(max=length)
    bias, of_bias = (torch.randn(heads, length, length, device=device) if biased else None for _ in range(2))
    of_norm = torch.randn(width, device=device), torch.randn(width, device=device)
    norm = nn.LayerNorm(width).to(device)
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    change, to = qkv[:, :width].contiguous(), qkv[:, width : 2 * width].contiguous()
    found: list[list[Tensor]] = []
    for kernels in (fused_learning, plain_learning):
        normed = kernels.add_norm(change, to, norm, keys, drop, dtype)
        back = kernels.add_norm_back(out, normed, norm, keys, drop)
        of_scores = torch.empty(rows, heads, length, length, device=device)
        given = sizes, heads, bias, keys, drop
        found.append(
            [
                kernels.attention(qkv, *given),
                kernels.attention_back(out, qkv.clone(), *given, of_scores if biased else None),
                *([of_scores] if biased else []),
                *normed,
                *back[:2],
                back.sums.sum(0),
                kernels.attention_along(along, qkv, sizes, heads, bias, of_bias, keys, drop),
                kernels.add_norm_along(out, to, normed, norm, of_norm, keys, drop, torch.float32),
            ]
        )
        assert torch.equal(kernels.attention_back(out, qkv.clone(), *given, None), found[-1][1])
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        scale = float(theirs.detach().float().abs().max())
        torch.testing.assert_close(ours.float(), theirs.float(), atol=tolerance * scale, rtol=tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("dtype", "length"),
    [(torch.bfloat16, 16), (torch.bfloat16, 32), (torch.bfloat16, 64), (torch.float32, 21), (torch.float32, 64)],
)
def test_fused_kernels_compute_what_the_plain_ones_do(dtype: torch.dtype, length: int, biased: bool, rate: float) -> None:
    learning_kernels_agree("cuda", dtype, length, biased, rate)


@pytest.mark.gpu
@pytest.mark.parametrize(("length", "heads", "size"), [(48, 12, 64), (64, 12, 64), (24, 3, 128), (32, 3, 16)])
def test_fused_kernels_at_the_sizes_of_real_encoders(length: int, heads: int, size: int) -> None:
    """As many rows as a batch has: a program then takes several turns."""
    learning_kernels_agree("cuda", torch.bfloat16, length, True, 0.1, 33, heads, size)


@pytest.mark.gpu
@pytest.mark.parametrize("length", [16, 32, 48, 64])
def test_attention_is_the_same_every_time(length: int) -> None:
    """Bit by bit, launched thousands of times without a pause: a race would show now and then."""
    from sequst.tagger.accel.kernels import training as fused_learning

    heads, size, rows = 12, 64, 33
    qkv, along = (torch.randn(rows * length, 3 * heads * size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.randn(rows * length, heads * size, device="cuda", dtype=torch.bfloat16)
    bias = torch.randn(heads, length, length, device="cuda")
    sizes = torch.randint(1, length + 1, (rows,), device="cuda", dtype=torch.int32)
    given = (sizes, heads, bias, KEYS.cuda(), Drop.of_training(0.1, 3))

    def once() -> list[Tensor]:
        place, of_scores = qkv.clone(), torch.empty(rows, heads, length, length, device="cuda")
        return [
            fused_learning.attention(place, *given),
            fused_learning.attention_along(along, place, *given[:3], bias, *given[3:]),
            fused_learning.attention_back(out, place, *given, of_scores),
            of_scores,
        ]

    first = once()
    differs = torch.zeros((), device="cuda", dtype=torch.int64)
    for _ in range(5000):
        for one, other in zip(first, once(), strict=True):
            differs += (one != other).sum()
    assert differs == 0


@pytest.mark.gpu
@pytest.mark.parametrize("kind", MODELS)
def test_in_full_precision_gradients_are_those_of_transformers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SMALL, "num_attention_heads", 2)
    model = model_of(kind)
    batch = batch_of((9, 4, 7)).to(torch.device("cuda"))
    without_dropout(model)
    model.to("cuda").train()
    forward = FusedEncoder.of(model, torch.float32)
    assert forward is not None
    assert forward.takes(batch)
    with torch.autocast("cuda", torch.bfloat16):
        assert not forward.takes(batch)
    exact = gradients(model, model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits, batch)
    ours = gradients(model, forward.states(batch), batch)
    alike({name: ours[name] for name, each in exact.items() if each.abs().max() > 1e-3},
          {name: each for name, each in exact.items() if each.abs().max() > 1e-3}, 1e-4)  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("kind", MODELS)
def test_in_half_precision_gradients_are_those_of_transformers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As close as two ways to compute in bf16 are."""
    monkeypatch.setitem(SMALL, "num_attention_heads", 2)  # heads of a size that the kernels take
    model = model_of(kind)
    batch = batch_of((9, 4, 7)).to(torch.device("cuda"))
    without_dropout(model)
    model.to("cuda").train()
    forward = FusedEncoder.of(model)
    assert forward is not None
    exact = gradients(model, model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits, batch)
    with torch.autocast("cuda", torch.bfloat16):
        assert forward.takes(batch)
        ours = gradients(model, forward.states(batch), batch)
        theirs = gradients(model, model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits.float(), batch)
    for name, each in exact.items():
        if float(each.norm()) > 1e-3:
            error = [float((way[name] - each).norm() / each.norm()) for way in (ours, theirs)]
            assert error[0] < 3 * error[1] + 0.02, name
