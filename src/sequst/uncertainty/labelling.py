"""From what the teachers believe to what the student learns: the kinds of pseudo-labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from sequst.tagger.crf import Chain, iob2_constraints, viterbi
from sequst.tagger.transitions import transition_scores
from sequst.uncertainty.beliefs import Beliefs, Probabilities, draw_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT_ONCE = 512
"""Sentences that are decoded together."""


@dataclass(frozen=True)
class Labelling:
    """`hard`, the best tag; `sampled`, a draw; `soft`, probabilities; `mean`, those of MC dropout."""

    kind: str = "hard"
    sharpness: float = 1.0
    """Soft labels are probabilities to this power, normed again."""
    valid: bool = False
    """Hard labels of several teachers are the best path that IOB2 allows; one alone decodes its own."""
    rest: str = "dropped"
    """Words that are not selected: `dropped`, or learnt with the `mean` probabilities of MC dropout."""
    transitions: tuple[tuple[str, float], ...] = ()
    """What such a path weighs beside: see `tagger.transitions`."""

    @property
    def soft(self) -> bool:
        """Whether targets are probabilities of all labels."""
        return self.kind in ("soft", "mean") or self.learns_rest

    @property
    def learns_rest(self) -> bool:
        """Whether words that are not selected count too."""
        return self.rest == "mean"

    def needs(self, passes: int, mixed: bool) -> Probabilities:
        """Which probabilities a teacher's beliefs must hold; `mixed` with others', they are those of the passes, if any."""
        if mixed:
            return "mean" if passes else "plain"
        if self.learns_rest:
            return "mean"
        kinds: dict[str, Probabilities] = {"soft": "plain", "mean": "mean"}
        return kinds.get(self.kind, "none")

    def apply(self, beliefs: Beliefs, names: Sequence[str], seed: int, mixed: bool) -> Beliefs:
        """The beliefs of several teachers with labels of this kind; those of one have theirs already."""
        if not mixed:
            return beliefs
        assert beliefs.probabilities is not None
        if self.kind == "sampled":
            chances = torch.from_numpy(np.random.default_rng(seed).random(len(beliefs)))
            drawn = draw_labels(torch.from_numpy(beliefs.probabilities).double().log(), chances).numpy()
            return dataclasses.replace(_with_labels(beliefs, drawn), drawn_from=beliefs.labels)
        if not self.valid:
            return beliefs
        return _with_labels(beliefs, best_valid(beliefs.probabilities, beliefs.starts, names, dict(self.transitions)))

    def targets(
        self, beliefs: Beliefs, selected: NDArray[np.bool_], weights: NDArray[np.float64] | None = None, classes: int = 0
    ) -> NDArray[np.int64] | NDArray[np.float32]:
        """What the student learns: labels (N,), or probabilities of all `classes` (N, C), times the `weights` of the words, if
        they have any: a loss is the expectation of them, and so is weighed."""
        if weights is not None:
            plain = self.targets(beliefs, selected)
            soft = np.eye(classes, dtype=np.float32)[plain] if plain.ndim == 1 else plain
            return (soft * weights[:, None]).astype(np.float32)
        if not self.soft:
            return beliefs.labels
        assert beliefs.probabilities is not None
        found = sharpened(beliefs.probabilities, self.sharpness)
        if self.kind in ("soft", "mean"):
            return found
        certain = np.eye(found.shape[1], dtype=np.float32)[beliefs.labels]
        return np.where(selected[:, None], certain, found)


def sharpened(probabilities: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """p^power, normed again; the largest of a word is never lost to rounding."""
    if power == 1.0:
        return probabilities
    raised = (probabilities / probabilities.max(-1, keepdims=True)).astype(np.float64) ** power
    normed: NDArray[np.float32] = (raised / raised.sum(-1, keepdims=True)).astype(np.float32)
    return normed


def best_valid(
    probabilities: NDArray[np.float32], starts: NDArray[np.int64], names: Sequence[str],
    weights: Mapping[str, float] | None = None,
) -> NDArray[np.int64]:  # fmt: skip
    """(N,): of each sentence the labels of the highest product of probabilities, and of transition `weights` where given, in
    which every I- continues something."""
    forbidden, start = iob2_constraints(list(names))
    transitions = forbidden + transition_scores(weights or {}, names)
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
        path, _ = viterbi(Chain(emissions, torch.from_numpy(inside), transitions, start, end))
        labels[places] = path[torch.from_numpy(inside)].numpy()
    return labels


def _with_labels(beliefs: Beliefs, labels: NDArray[np.int64]) -> Beliefs:
    """The same beliefs about other labels; the probabilities must be those that confidence is read from."""
    assert beliefs.probabilities is not None
    confidence = np.take_along_axis(beliefs.probabilities, labels[:, None], -1)[:, 0]
    return dataclasses.replace(beliefs, labels=labels, confidence=confidence)
