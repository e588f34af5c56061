from __future__ import annotations

import numpy as np
import pytest
import torch

from sequst.calibration.temperature import best_temperature, fit_temperature
from sequst.corpus.sampling import Split
from sequst.errors import UsageError
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs
from sequst.uncertainty.mc_dropout import dropout_rate


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_scores_that_are_off_by_a_factor_are_put_right(temperature: float) -> None:
    generator = torch.Generator().manual_seed(1)
    scores = 2.0 * torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(scores, -1), 1, generator=generator)[:, 0]
    found = best_temperature(torch.log_softmax(scores * temperature, -1), labels)
    assert found == pytest.approx(temperature, rel=0.05)


def test_a_temperature_leaves_labels_and_softens_beliefs(tiny_encoder: str, split: Split) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1)
    plain, soft = (form_beliefs(tagger, split.dev, passes=3, seed=1, temperature=t, probabilities="plain") for t in (1.0, 4.0))
    assert plain.labels.tolist() == soft.labels.tolist()
    assert (soft.plain_confidence < plain.plain_confidence).all()
    assert soft.confidence.mean() < plain.confidence.mean()  # of the label without dropout, which a pass may think little of
    assert soft.information_gain.mean() < plain.information_gain.mean()
    assert plain.probabilities is not None
    assert soft.probabilities is not None
    raised = plain.probabilities.astype(np.float64) ** 0.25
    assert soft.probabilities == pytest.approx(raised / raised.sum(-1, keepdims=True), abs=1e-5)


def test_without_known_tags_there_is_nothing_to_fit(tiny_encoder: str, split: Split) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["B-X", "I-X"], seed=1)
    with pytest.raises(UsageError, match="needs a dev set"):
        fit_temperature(tagger, split.dev)
    real = Tagger.from_encoder(tiny_encoder, ["O", "B-X"], seed=1)
    assert 0.1 < fit_temperature(real, split.dev) < 20.0  # types that it does not know are left out


def test_the_rate_of_the_passes(tiny_encoder: str, split: Split) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1)
    rates = [module.p for module in tagger.modules() if isinstance(module, torch.nn.Dropout)]

    def gain(rate: float) -> float:
        with dropout_rate(tagger, rate):
            return float(form_beliefs(tagger, split.dev, passes=10, seed=1).information_gain.mean())

    own = gain(0.0)
    assert gain(rates[0]) == own
    assert gain(0.02) < own < gain(0.4)
    with pytest.raises(RuntimeError), dropout_rate(tagger, 0.3):
        raise RuntimeError
    assert [module.p for module in tagger.modules() if isinstance(module, torch.nn.Dropout)] == rates
