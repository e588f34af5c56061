"""What several teachers believe together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from sequst.tagger.crf import Chain, iob2_constraints, viterbi
from sequst.tagger.transitions import transition_scores
from sequst.uncertainty.beliefs import Beliefs, draw_labels

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
    labels = mean.argmax(-1)
    confidence = np.take_along_axis(mean, labels[:, None], -1)[:, 0].astype(np.float32)
    gain = np.clip(_entropy(mean) - entropies, 0.0, None).astype(np.float32)
    return dataclasses.replace(
        members[0],
        labels=labels,
        plain_confidence=confidence,
        confidence=confidence,
        information_gain=gain,
        probabilities=mean.astype(np.float32),
        drawn_from=None,
        seconds=sum(member.seconds for member in members),
    )


def _entropy(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """-sum p log p over the last dimension, with 0 log 0 = 0."""
    logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
    entropy: NDArray[np.float64] = -(probabilities * logs).sum(-1)
    return entropy


def with_labels(beliefs: Beliefs, labels: NDArray[np.int64]) -> Beliefs:
    """The same beliefs about other labels; they must hold the probabilities that confidence is read from."""
    assert beliefs.probabilities is not None
    confidence = np.take_along_axis(beliefs.probabilities, labels[:, None], -1)[:, 0]
    return dataclasses.replace(beliefs, labels=labels, confidence=confidence)


def draw_mixed(beliefs: Beliefs, seed: int) -> Beliefs:
    """With labels drawn from the probabilities."""
    assert beliefs.probabilities is not None
    chances = torch.from_numpy(np.random.default_rng(seed).random(len(beliefs)))
    drawn = draw_labels(torch.from_numpy(beliefs.probabilities).double().log(), chances).numpy()
    return dataclasses.replace(with_labels(beliefs, drawn), drawn_from=beliefs.labels)


def best_valid(beliefs: Beliefs, names: Sequence[str], weights: Mapping[str, float]) -> NDArray[np.int64]:
    """(N,): of each sentence the best path that IOB2 allows, by the probabilities and the transition `weights`."""
    probabilities, starts = beliefs.probabilities, beliefs.starts
    assert probabilities is not None
    forbidden, start = iob2_constraints(list(names))
    transitions = forbidden + transition_scores(weights, names)
    end = torch.zeros_like(start)
    labels = np.zeros(len(probabilities), dtype=np.int64)
    tiny = np.finfo(np.float32).tiny
    sizes = np.diff(starts)
    order = np.argsort(sizes, kind="stable")  # of like length together: less padding
    order = order[sizes[order] > 0]
    for some in np.split(order, range(AT_ONCE, len(order), AT_ONCE)) if len(order) else []:
        inside = np.arange(sizes[some].max(initial=0))[None, :] < sizes[some, None]  # (B, W)
        places = (starts[:-1][some, None] + np.arange(inside.shape[1]))[inside]
        emissions = torch.zeros(*inside.shape, len(names))
        emissions[torch.from_numpy(inside)] = torch.from_numpy(np.log(np.maximum(probabilities[places], tiny)))
        path = viterbi(Chain(emissions, torch.from_numpy(inside), transitions, start, end))
        labels[places] = path[torch.from_numpy(inside)].numpy()
    return labels
