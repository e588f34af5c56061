"""`Tagger.predict` keeps what its forward makes of the weights, as long as they stay as they are."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from sequst.corpus.generated import generate
from sequst.tagger.accel.cpu_forward import CpuForward
from sequst.tagger.accel.forward import Forward
from sequst.tagger.predict import label_words
from sequst.tagger.tagger import Tagger, labels_of

TEXT = "Can Sydney conduct The Planets in Verona on Friday?"


@pytest.fixture
def tagger(tiny_encoder: str) -> Tagger:
    return Tagger.from_encoder(tiny_encoder, labels_of(generate().pool), seed=2)


def confidences(tagger: Tagger) -> list[float]:
    prediction = tagger.predict(TEXT)
    return [round(each, 4) for each in prediction.confidences]


def test_it_is_made_once(tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    begin = CpuForward.__init__

    def counted(self: CpuForward, *arguments: object) -> None:
        nonlocal made
        made += 1
        begin(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(CpuForward, "__init__", counted)
    first = confidences(tagger)
    assert [confidences(tagger) for _ in range(3)] == [first] * 3
    assert made == 1


@pytest.mark.parametrize("way", ["in place", "optimiser", "load", "data", "half and back"])
def test_weights_that_change_are_seen(tagger: Tagger, way: str) -> None:
    before = confidences(tagger)
    weights = list(tagger.encoder.parameters())
    if way == "in place":
        with torch.no_grad():
            for weight in weights:
                weight.mul_(1.5)
    elif way == "optimiser":
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        torch.optim.AdamW(weights, lr=0.05).step()
    elif way == "load":
        tagger.load_state_dict({name: 1.5 * weight for name, weight in tagger.state_dict().items()})
    elif way == "data":
        for weight in weights:
            weight.data = 1.5 * weight.data
    else:
        tagger.half()
        tagger.float()
    plain = [round(each, 4) for each in label_words(tagger, [tagger.predict(TEXT).sentence]).confidences.tolist()]
    assert confidences(tagger) == pytest.approx(plain, abs=2e-4)
    if way != "half and back":
        assert confidences(tagger) != before


def test_it_goes_with_its_tagger(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, labels_of(generate().pool), seed=2)
    tagger.predict(TEXT)
    kept = weakref.ref(Forward(tagger, keep=True).cpu)  # type: ignore[type-var]
    assert kept() is not None
    copy = Tagger.from_encoder(tagger.encoder, tagger.labels)  # type: ignore[arg-type]
    del tagger
    gc.collect()
    assert kept() is None
    assert copy.predict(TEXT).tags


def test_bf16_and_fp32_are_kept_apart(tagger: Tagger) -> None:
    exact = confidences(tagger)
    with torch.autocast("cpu", torch.bfloat16):
        confidences(tagger)
    assert confidences(tagger) == exact
