from __future__ import annotations

import numpy as np
import pytest
import torch

from sequst.corpus.sampling import Split
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import Beliefs, form_beliefs
from sequst.uncertainty.ensembles import mixture
from sequst.uncertainty.information import PassSums


def of_passes(passes: torch.Tensor) -> Beliefs:
    """The beliefs that passes (P, N, C) of log probabilities add up to."""
    sums = PassSums()
    sums.add(passes)
    labels = sums.mean.argmax(-1)
    confidence = sums.confidence(labels).float().numpy()
    gain, mean = sums.information_gain().float().numpy(), sums.mean.float().numpy()
    return Beliefs(labels.numpy(), confidence, confidence, gain, np.array([0, len(labels)]), mean)


def test_two_that_disagree_by_hand() -> None:
    sure = np.array([[1.0, 0.0]], dtype=np.float32)
    one, other = (
        Beliefs(np.array([label]), np.ones(1, np.float32), np.ones(1, np.float32), np.zeros(1, np.float32), np.array([0, 1]), p)
        for label, p in ((0, sure), (1, sure[:, ::-1]))
    )
    found = mixture([one, other], [3.0, 1.0])
    assert found.labels.tolist() == [0]
    assert found.confidence.tolist() == [0.75]
    # each is certain, so all of the entropy of (3/4, 1/4) is disagreement
    assert found.information_gain[0] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert found.probabilities is not None
    assert found.probabilities.tolist() == [[0.75, 0.25]]


def test_it_is_as_if_all_passes_were_those_of_one() -> None:
    passes = torch.log_softmax(2.0 * torch.randn(12, 40, 5, generator=torch.Generator().manual_seed(1)), -1)
    whole, parts = of_passes(passes), [of_passes(passes[:6]), of_passes(passes[6:])]
    found = mixture(parts, [1.0, 1.0])
    assert found.labels.tolist() == whole.labels.tolist()
    assert found.confidence == pytest.approx(whole.confidence, abs=1e-6)
    assert found.information_gain == pytest.approx(whole.information_gain, abs=1e-5)
    assert (found.information_gain > parts[0].information_gain).mean() > 0.5


def test_of_taggers(tiny_encoder: str, split: Split) -> None:
    taggers = [Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=seed) for seed in (1, 2)]
    members = [form_beliefs(tagger, split.dev, passes=3, seed=1, probabilities="mean") for tagger in taggers]
    found, alone = mixture(members, [1.0, 1.0]), mixture(members, [1.0, 0.0])
    assert found.information_gain.mean() > max(member.information_gain.mean() for member in members)
    assert alone.probabilities == pytest.approx(members[0].probabilities)
    assert alone.information_gain == pytest.approx(members[0].information_gain, abs=1e-5)
    assert found.starts.tolist() == members[0].starts.tolist()
