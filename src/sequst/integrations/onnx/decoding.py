"""Labels and their probabilities from the scores of words, as in `sequst.tagger.heads`, in numpy: an export needs no torch.

B rows of at most W words with C labels; words come first in a row and padding after them. Sums are in float64, which keeps
enough digits for any window without the shifts that `sequst.tagger.crf` needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.floating[Any]]
    Mask = NDArray[np.bool_]
    Labels = NDArray[np.int64]


class Transitions(NamedTuple):
    """The scores of transitions between labels, and of the labels at the two ends of a row."""

    between: Numbers  # (C, C) from a row's label to a column's
    start: Numbers  # (C,) where a row begins its sentence
    inside: Numbers  # (C,) where a row begins inside its sentence
    end: Numbers  # (C,)

    def save(self, path: Path) -> None:
        save_file({name: np.ascontiguousarray(value) for name, value in self._asdict().items()}, path)

    @classmethod
    def load(cls, path: Path, labels: int) -> Transitions:
        """From a file; an error where they are not those of so many labels."""
        found = load_file(path)
        scores = cls(*(found[name].astype(np.float64) for name in cls._fields))
        if [value.shape for value in scores] != [(labels, labels), (labels,), (labels,), (labels,)]:
            raise ValueError(f"its scores are not those of {labels} labels")
        if not all(np.isfinite(value).all() for value in scores):
            raise ValueError("its scores are no finite numbers")
        return scores

    def first(self, opens: Mask) -> Numbers:
        """(B, C): the scores of the first label of every row."""
        return np.where(opens[:, None], self.start, self.inside)


def decode(
    scores: Numbers, words: Mask, opens: Mask, transitions: Transitions | None, marginal: bool
) -> tuple[Labels, Numbers]:
    """(labels (B, W), the probability of each (B, W)) from scores (B, W, C): the best of every word by itself, or the best path
    over the transitions. Probabilities are those of every word by itself, or `marginal`: over all paths."""
    scores = scores.astype(np.float64)
    if not marginal:
        scores = scores - _log_sum(scores, -1)[..., None]
    labels = scores.argmax(-1) if transitions is None else best_path(scores, words, opens, transitions)
    log_probs = log_marginals(scores, words, opens, transitions) if marginal and transitions is not None else scores
    return labels, np.exp(np.take_along_axis(log_probs, labels[..., None], -1)[..., 0])


def best_path(scores: Numbers, words: Mask, opens: Mask, transitions: Transitions) -> Labels:
    """(B, W): the labels whose scores and transitions sum to the most; 0 beyond the words."""
    best = transitions.first(opens) + scores[:, 0]  # (B, C) of the best path that ends in each label
    stay = np.arange(scores.shape[-1])
    came_from = []
    for step in range(1, scores.shape[1]):
        ways = best[:, :, None] + transitions.between  # (B, from, to)
        here = words[:, step, None]
        came_from.append(np.where(here, ways.argmax(1), stay))
        best = np.where(here, ways.max(1) + scores[:, step], best)
    place = (best + transitions.end).argmax(-1)
    path = [place]
    for origin in reversed(came_from):
        place = np.take_along_axis(origin, place[:, None], 1)[:, 0]
        path.append(place)
    return np.where(words, np.stack(path[::-1], 1), 0)


def log_marginals(scores: Numbers, words: Mask, opens: Mask, transitions: Transitions) -> Numbers:
    """(B, W, C): the log probability of every label of every word, over all paths; 0 beyond the words."""
    forward = [transitions.first(opens) + scores[:, 0]]
    for step in range(1, scores.shape[1]):
        after = _log_sum(forward[-1][:, :, None] + transitions.between, 1) + scores[:, step]
        forward.append(np.where(words[:, step, None], after, forward[-1]))
    backward = [np.broadcast_to(transitions.end, forward[0].shape)]
    for step in range(scores.shape[1] - 1, 0, -1):
        before = _log_sum(transitions.between + (scores[:, step] + backward[-1])[:, None], 2)
        backward.append(np.where(words[:, step, None], before, backward[-1]))
    both = np.stack(forward, 1) + np.stack(backward[::-1], 1)
    return np.where(words[..., None], both - _log_sum(both, -1)[..., None], 0.0)


def _log_sum(values: Numbers, axis: int) -> Numbers:
    """log sum exp along an axis."""
    most = values.max(axis, keepdims=True)
    total: Numbers = np.log(np.exp(values - most).sum(axis)) + most.squeeze(axis)
    return total
