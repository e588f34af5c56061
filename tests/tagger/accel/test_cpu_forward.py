from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import transformers
from tests.tagger.accel import plain_kernels as plain
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from sequst.corpus.generated import generate
from sequst.errors import UsageError
from sequst.tagger.accel.cpu_forward import CpuForward
from sequst.tagger.accel.dropout_masks import Masks
from sequst.tagger.accel.forward import Forward, forward_of
from sequst.tagger.accel.layers import Layers
from sequst.tagger.accel.varlen_forward import VarlenForward
from sequst.tagger.batches import Batch
from sequst.tagger.predict import Words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs
from sequst.uncertainty.mc_dropout import mc_dropout
from sequst.uncertainty.passes import mc_passes

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 200}
MODELS: dict[str, Any] = {
    "bert": lambda: transformers.BertForTokenClassification(transformers.BertConfig(**SMALL, attn_implementation="eager")),
    "roberta": lambda: transformers.RobertaForTokenClassification(
        transformers.RobertaConfig(**SMALL, attn_implementation="eager", pad_token_id=1)
    ),
    "mpnet": lambda: transformers.MPNetForTokenClassification(transformers.MPNetConfig(**SMALL, attn_implementation="eager")),
}


def batch_of(lengths: tuple[int, ...] = (9, 4, 7)) -> Batch:
    torch.manual_seed(3)
    longest = max(lengths)
    mask = torch.tensor([[1] * length + [0] * (longest - length) for length in lengths])
    ids = torch.randint(5, 200, mask.shape) * mask + (1 - mask)
    words = mask.bool()
    heads = torch.arange(longest) * mask
    opens, places = torch.ones(len(lengths), dtype=torch.bool), words.flatten().nonzero().flatten()
    return Batch(ids, mask, heads, words, words, None, words, opens, [0], list(lengths), list(lengths), places)


def test_of_other_activations(model: Any) -> None:
    model.config.hidden_act = "relu"
    for layer in model.base_model.encoder.layer:
        layer.intermediate.intermediate_act_fn = torch.nn.ReLU()
    test_it_computes_what_transformers_computes(model, (9, 4), "")


def lean_of(model: Any) -> CpuForward:
    known = Layers.of(model)
    assert known is not None
    return CpuForward(known)


def model_of(kind: str) -> Any:
    """In evaluation mode, with random weights and no classifier."""
    torch.manual_seed(1)
    model = MODELS[kind]()
    for parameter in model.parameters():  # biases and norms too, that nothing hides behind a 0 or a 1
        torch.nn.init.normal_(parameter, std=0.3)
    model.classifier = torch.nn.Identity()
    model.dropout.p = 0.0
    return model.eval()


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return model_of(request.param)


@pytest.mark.parametrize("laid_out", ["", "oneDNN", "MKL"])
@pytest.mark.parametrize("lengths", [(9, 4, 7), (6, 6), (15, 20)])
def test_it_computes_what_transformers_computes(model: Any, lengths: tuple[int, ...], laid_out: str) -> None:
    batch = batch_of(lengths)
    lean = lean_of(model)
    if laid_out:
        with mock.patch("sequst.tagger.accel.cpu_forward._one_dnn_is_faster", return_value=laid_out == "oneDNN"):
            lean.lay_out()
    with torch.inference_mode():
        ours = lean.finish(lean.begin(batch))
        theirs = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
    torch.testing.assert_close(ours[batch.word_mask], theirs[batch.word_mask], atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("lengths", [(9, 4, 7), (6, 6)])
def test_with_the_same_masks_it_drops_what_transformers_drops(
    model: Any, lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, theirs = batch_of(lengths), Masks(5)
    lean = lean_of(model)
    dropped: list[tuple[int, ...]] = []

    def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if not training or p == 0:
            return x
        dropped.append(tuple(x.shape))
        if len(dropped) % 10 not in (9, 0):  # one of the embeddings, three of each layer
            return theirs.drop(x.clone(), p)
        x = x.clone()  # behind the last attention, of sub-words that speak for a word alone
        x[batch.word_mask] = theirs.drop(x[batch.word_mask], p)
        return x

    with torch.inference_mode():
        ours = [lean.finish(lean.begin(batch), masks) for masks in [Masks(5)] for _ in range(2)]
        monkeypatch.setattr(torch.nn.functional, "dropout", dropout)
        with mc_dropout(model, 1):
            theirs_too = [model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits for _ in range(2)]
    for first, second in zip(ours, theirs_too, strict=True):
        torch.testing.assert_close(first[batch.word_mask], second[batch.word_mask], atol=5e-5, rtol=1e-5)
    assert not torch.allclose(ours[0], ours[1])
    longest = max(lengths)
    assert dropped.count((len(lengths), 4, longest, longest)) == 2 * 3  # attention's own dropout, in every layer of both passes


def test_mpnet_asks_the_cpu_for_nothing() -> None:
    """Nothing is made there and copied, which would keep a GPU waiting, and a step from being recorded."""
    from sequst.tagger.accel.mpnet import PlacedEncoder, added_mask

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = func(*args, **(kwargs or {}))
            tensors = [each for each in tree_flatten((args, kwargs, found))[0] if isinstance(each, Tensor)]
            assert all(each.device.type == "meta" for each in tensors), func
            return found

    model = MODELS["mpnet"]().to("meta").train()
    model.base_model.encoder.__class__ = PlacedEncoder
    ids, mask = torch.ones(4, 8, dtype=torch.long, device="meta"), torch.ones(4, 8, device="meta")
    model(input_ids=ids, attention_mask=added_mask(mask))  # buckets are remembered
    with Watch():
        model(input_ids=ids, attention_mask=added_mask(mask)).logits.sum().backward()


def test_mpnet_is_what_transformers_has() -> None:
    """Its position bias and mask are made without the CPU, and are the same."""
    from sequst.tagger.accel.mpnet import PlacedEncoder, added_mask

    torch.manual_seed(1)
    model = MODELS["mpnet"]().eval()
    batch = batch_of()
    with torch.inference_mode():
        theirs = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
        model.base_model.encoder.__class__ = PlacedEncoder
        ours = model(input_ids=batch.input_ids, attention_mask=added_mask(batch.attention_mask)).logits
    assert torch.equal(ours[batch.word_mask], theirs[batch.word_mask])
    loss = model(input_ids=batch.input_ids, attention_mask=added_mask(batch.attention_mask)).logits.sum()
    loss.backward()  # what was remembered without gradients serves with them
    assert model.base_model.encoder.relative_attention_bias.weight.grad.abs().sum() > 0


def test_masks_drop_at_the_rate_and_keep_the_mean() -> None:
    ones = Masks(1).drop(torch.ones(1000, 1001), 0.1)
    kept = ones > 0
    share = 1 - kept.float().mean().item()
    assert share == pytest.approx(0.1, abs=5 * (0.1 * 0.9 / 1e6) ** 0.5)
    assert ones.mean().item() == pytest.approx(1.0, abs=2e-3)
    assert len(ones[kept].unique()) == 1
    for axis in (0, 1):  # no row and no column is dropped more than chance has it
        rates = 1 - kept.float().mean(axis)
        assert (rates - 0.1).abs().max() < 6 * (0.1 * 0.9 / 1000) ** 0.5
    neighbours = (kept[:, 1:] == kept[:, :-1]).float().mean().item()
    assert neighbours == pytest.approx(0.9**2 + 0.1**2, abs=2e-3)  # neighbours, cut from the same draw, know nothing of another
    assert torch.equal(Masks(1).drop(torch.ones(7), 0.5), Masks(1).drop(torch.ones(7), 0.5))
    assert not torch.equal(Masks(1).drop(torch.ones(99), 0.5), Masks(2).drop(torch.ones(99), 0.5))
    assert torch.equal(Masks(1).drop(torch.ones(99), 0.0), torch.ones(99))
    x, to = torch.randn(50), torch.randn(50)
    assert torch.allclose(Masks(4).add_dropped(x, to, 0.3), to + Masks(4).drop(x.clone(), 0.3), atol=1e-6)


def test_where_it_is_not_used(tiny_encoder: str) -> None:
    distil = transformers.DistilBertForTokenClassification(
        transformers.DistilBertConfig(dim=32, n_layers=1, n_heads=2, hidden_dim=32)
    )
    assert Layers.of(distil) is None
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"])
    assert Forward(tagger).cpu is not None
    tagger.train()
    assert Forward(tagger).cpu is None  # its dropout would be on
    with forward_of(tagger) as forward:
        assert forward.cpu is not None
    assert tagger.training
    assert Forward(Tagger.from_encoder("bilstm", ["O"], text=[["a"]])).cpu is None


@pytest.mark.parametrize("last", [1, 2, 3])
def test_layers_that_do_not_drop_out_are_done_at_once(model: Any, last: int) -> None:
    batch, lean = batch_of(), lean_of(model)
    with torch.inference_mode():
        whole, begun = lean.finish(lean.begin(batch)), lean.begin(batch, last)
        torch.testing.assert_close(lean.finish(begun), whole, atol=1e-6, rtol=1e-5)
        first, again, other = (lean.finish(begun, Masks(seed)) for seed in (1, 1, 2))
    assert begun.first == 3 - last
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


@pytest.fixture
def passes(tiny_encoder: str) -> Iterator[tuple[Tagger, Batch]]:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2)
    with torch.no_grad():
        tagger.head.linear.weight.mul_(30)
    [(batch, _)] = Words(tagger, generate().test[:12]).batches(10_000)
    with torch.inference_mode():
        yield tagger, batch


def test_passes_are_those_of_the_plain_path_within_chance(passes: tuple[Tagger, Batch]) -> None:
    """Mean and variance over many passes, word by word."""
    tagger, batch = passes
    count = 1500
    found = []
    for lean in (True, False):
        forward = Forward(tagger)
        if not lean:
            forward.cpu = None
        runs = torch.cat([p[:, batch.owned].exp() for p in mc_passes(tagger, forward, batch, count, 7)])
        found.append((runs.mean(0), runs.var(0)))
    (mean, spread), (plain_mean, plain_spread) = found
    apart = (mean - plain_mean) / ((spread + plain_spread) / count).sqrt()
    assert apart.abs().max() < 5.5  # of some hundred words and labels
    assert apart.pow(2).mean() < 1.5
    assert (spread.mean() / plain_spread.mean()).item() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("kind", ["lean", "packed", "plain"])
def test_only_the_last_layers_drop_out(passes: tuple[Tagger, Batch], kind: str) -> None:
    """With no dropout in the last layer and the head, passes that leave the others alone are all the same; and the spread of
    those that do not is what the plain path has."""
    tagger, batch = passes
    known = Layers.of(tagger.encoder)
    assert known is not None

    def spread(last: int, which: str) -> Tensor:
        forward = Forward(tagger)
        forward.cpu = forward.cpu if which == "lean" else None
        forward.varlen = VarlenForward(known, plain, torch.float32) if which == "packed" else None
        return torch.cat([p[:, batch.owned].exp() for p in mc_passes(tagger, forward, batch, 300, 7, last)]).var(0)

    assert spread(1, kind).mean() == pytest.approx(spread(1, "plain").mean().item(), rel=0.15)
    assert spread(1, kind).mean() < 0.9 * spread(0, kind).mean()
    for module in (*known.last(1)[0].modules(), tagger.head.dropout):
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert spread(1, kind).max() < 1e-9
    assert spread(2, kind).max() > 1e-6


def test_layers_that_are_not_there(passes: tuple[Tagger, Batch]) -> None:
    tagger, _ = passes
    for last in (-1, 3):
        with pytest.raises(UsageError, match=f"{last} last layers: the encoder has 2"):
            form_beliefs(tagger, generate().test[:2], 2, 1, last_layers=last)
    bilstm = Tagger.from_encoder("bilstm", ["O"], text=[["a"]])
    with pytest.raises(UsageError, match="1 last layers: only encoders like BERT"):
        form_beliefs(bilstm, generate().test[:2], 2, 1, last_layers=1)


def test_the_same_seed_gives_the_same_passes(passes: tuple[Tagger, Batch]) -> None:
    tagger, batch = passes
    runs = [torch.cat(list(mc_passes(tagger, Forward(tagger), batch, 3, seed))) for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    assert not torch.equal(runs[0][0], runs[0][1])
    state = torch.random.get_rng_state()
    list(mc_passes(tagger, Forward(tagger), batch, 2, 1))
    assert torch.equal(state, torch.random.get_rng_state())


def test_words_are_labelled_alike(tiny_encoder: str) -> None:
    from sequst.tagger.predict import label_words

    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2, max_length=12, overlap=4)
    sentences = generate().test[:40]
    lean = label_words(tagger, sentences)
    words = Words(tagger, sentences)
    confidences = np.zeros(len(words))
    with torch.inference_mode():
        for batch, places in words.batches(10_000):
            confidences[places] = tagger.decode(batch).confidences[batch.owned].numpy()
    assert lean.confidences == pytest.approx(confidences, abs=1e-5)
