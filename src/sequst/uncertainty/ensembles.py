"""Combined beliefs of several teachers, and labels from probabilities."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from sequst.tagger.crf import Chain, iob2_constraints, viterbi
from sequst.tagger.planning import plan
from sequst.tagger.transitions import transition_scores
from sequst.uncertainty.beliefs import Beliefs

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT_ONCE = 512
"""Sentences that are decoded together."""


def mixture(members: Sequence[Beliefs]) -> Beliefs:
    """The mean of several beliefs about the same words, which must hold probabilities.

    It is as if the passes of all were those of one: the probabilities are their mean, and the information gain is the entropy
    of that less the mean of the entropies, so that members that disagree add to it. Labels are the argmax of the mean.
    """
    part = 1.0 / len(members)
    mean: NDArray[np.float64] = np.zeros(())
    entropies: NDArray[np.float64] = np.zeros(())
    for member in members:
        assert member.probabilities is not None
        probabilities = member.probabilities.astype(np.float64)
        mean = mean + part * probabilities
        entropies = entropies + part * (_entropy(probabilities) - member.information_gain)
    gain = np.clip(_entropy(mean) - entropies, 0.0, None).astype(np.float32)
    found = dataclasses.replace(members[0], information_gain=gain, probabilities=mean.astype(np.float32))
    return with_labels(found, mean.argmax(-1))


def _entropy(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """-sum p log p over the last dimension, with 0 log 0 = 0."""
    logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
    entropy: NDArray[np.float64] = -(probabilities * logs).sum(-1)
    return entropy


def with_labels(beliefs: Beliefs, labels: NDArray[np.int64]) -> Beliefs:
    """The same beliefs about other labels, with the confidences that their probabilities give."""
    assert beliefs.probabilities is not None
    confidence = np.take_along_axis(beliefs.probabilities, labels[:, None], -1)[:, 0]
    return dataclasses.replace(beliefs, labels=labels, plain_confidence=confidence, confidence=confidence)


def with_drawn_labels(beliefs: Beliefs, seed: int) -> Beliefs:
    """The same beliefs about labels that are drawn from their probabilities."""
    assert beliefs.probabilities is not None
    chances = np.random.default_rng(seed).random(len(beliefs))
    reached = beliefs.probabilities.astype(np.float64).cumsum(-1)
    passed = (reached <= chances[:, None] * reached[:, -1:]).sum(-1)
    drawn = passed.clip(max=reached.shape[-1] - 1)
    return dataclasses.replace(with_labels(beliefs, drawn), drawn_from=beliefs.labels)


def best_valid(beliefs: Beliefs, names: Sequence[str], weights: Mapping[str, float]) -> NDArray[np.int64]:
    """(N,): of each sentence the best path that IOB2 allows, by the probabilities and the transition `weights`."""
    assert beliefs.probabilities is not None
    forbidden, start = iob2_constraints(list(names))
    transitions, end = forbidden + transition_scores(weights, names), torch.zeros_like(start)
    logs = torch.from_numpy(np.log(np.maximum(beliefs.probabilities, np.finfo(np.float32).tiny)))
    parts = [part for part in torch.tensor_split(logs, beliefs.starts[1:-1].tolist()) if len(part)]
    labels = [torch.empty(0, dtype=torch.int64) for _ in parts]
    for rows in plan([len(part) for part in parts], max_rows=AT_ONCE, max_tokens=len(logs)):
        some = [parts[row] for row in rows]
        inside = pad_sequence([torch.ones(len(part), dtype=torch.bool) for part in some], batch_first=True)
        path = viterbi(Chain(pad_sequence(some, batch_first=True), inside, transitions, start, end))
        for row, part, best in zip(rows, some, path, strict=True):
            labels[row] = best[: len(part)]
    return torch.cat(labels).numpy() if labels else np.zeros(0, dtype=np.int64)
