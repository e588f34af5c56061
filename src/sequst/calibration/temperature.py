"""Temperature: one number by which scores are divided before the softmax, so that probabilities fit the dev set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError
from sequst.tagger.predict import label_words
from sequst.tagger.tagger import Tagger

LOWEST, HIGHEST = 0.1, 20.0


def fit_temperature(tagger: Tagger, sentences: Sequence[Sentence]) -> float:
    """The temperature at which the tags of the sentences are most likely. Words of an unknown type do not count; at least one
    other must be there."""
    ids = {name: number for number, name in enumerate(tagger.labels)}
    known = [(i, ids[tag]) for i, tag in enumerate(tag for s in sentences for tag in s.tags or ()) if tag in ids]
    if not known:
        raise SequstError("no word of the dev set has a tag that the tagger knows: nothing to fit a temperature to")
    found = label_words(tagger, sentences, probabilities=True).probabilities
    places, tags = np.array(known).T
    assert found is not None
    logs = torch.from_numpy(found[places]).double().clamp(min=1e-30).log()
    return best_temperature(logs, torch.from_numpy(tags))


def best_temperature(log_probs: torch.Tensor, labels: torch.Tensor) -> float:
    """Maximises the likelihood of labels (N,) under log probabilities (N, C), by golden section: there is one optimum."""

    def loss(log_temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(log_probs / float(np.exp(log_temperature)), labels))

    low, high = float(np.log(LOWEST)), float(np.log(HIGHEST))
    ratio = (5.0**0.5 - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > 1e-4:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(right)
    return float(np.exp((low + high) / 2.0))
