from __future__ import annotations

import pytest
import torch

from sequst.corpus.generated import generate
from sequst.tagger.batches import Batch, collate
from sequst.tagger.merging import merge
from sequst.tagger.tagger import Tagger, labels_of

LABELS = labels_of(generate().pool)


def tagger_of(encoder: str, seed: int, head: str = "softmax") -> Tagger:
    """One whose head sees states that are standardised in its own way."""
    tagger = Tagger.from_encoder(encoder, LABELS, seed=seed, head=head)
    draw = torch.Generator().manual_seed(seed)
    for weight in tagger.head.parameters():
        weight.data.normal_(generator=draw)
    tagger.head.standardise(torch.randn(tagger.head.linear.in_features, generator=draw), 0.5 * seed)
    return tagger.eval()


def batch_of(tagger: Tagger) -> Batch:
    windows = tagger.splitter.windows([sentence.words for sentence in generate().test[:4]])
    return collate(windows, list(range(len(windows))), tagger.pad_id)


@torch.inference_mode()
def scores(tagger: Tagger) -> torch.Tensor:
    batch = batch_of(tagger)
    return tagger.head.scores(tagger.hidden(batch))[batch.owned]


@pytest.mark.parametrize("shares", [None, [1.0, 3.0]])
def test_heads_on_one_encoder_score_as_their_mean(tiny_encoder: str, shares: list[float] | None) -> None:
    one, two = (tagger_of(tiny_encoder, seed) for seed in (1, 2))
    two.encoder.load_state_dict(one.encoder.state_dict())
    part = 0.5 if shares is None else 0.75
    expected = (1 - part) * scores(one) + part * scores(two)
    merged = tagger_of(tiny_encoder, 3)
    merge(merged, [one.state_dict(), two.state_dict()], shares)
    torch.testing.assert_close(scores(merged), expected, atol=1e-4, rtol=1e-4)


def test_every_weight_is_the_mean(tiny_encoder: str) -> None:
    taggers = [tagger_of(tiny_encoder, seed, "crf") for seed in (1, 2, 4)]
    for number, tagger in enumerate(taggers):
        for weight in tagger.encoder.parameters():
            weight.data.add_(0.1 * number)
    merged = tagger_of(tiny_encoder, 3, "crf")
    merge(merged, [tagger.state_dict() for tagger in taggers])
    for name, weight in merged.named_parameters():
        if "head.linear" not in name:
            own = torch.stack([dict(tagger.named_parameters())[name] for tagger in taggers])
            torch.testing.assert_close(weight, own.mean(0))
    assert dict(merged.named_parameters())["head.transitions"].abs().sum() > 0


def test_of_one_it_is_that_one_and_the_others_stay(tiny_encoder: str) -> None:
    one, other = tagger_of(tiny_encoder, 1), tagger_of(tiny_encoder, 2)
    before = {name: value.clone() for name, value in one.state_dict().items()}
    merge(other, [one.state_dict()])
    torch.testing.assert_close(scores(other), scores(one), atol=1e-4, rtol=1e-4)
    assert all(torch.equal(value, before[name]) for name, value in one.state_dict().items())
