"""How well a score separates right from wrong: right ones should score higher."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def auroc(scores: ArrayLike, right: ArrayLike) -> float | None:
    """The chance that something right has a higher score than something wrong, ties counted half; None without one of each."""
    values, is_right = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.bool_)
    good, bad = int(is_right.sum()), int((~is_right).sum())
    if not good or not bad:
        return None
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[place]  # of equals the mean rank
    return float((ranks[is_right].sum() - good * (good + 1) / 2.0) / (good * bad))


def risk_coverage(scores: ArrayLike, right: ArrayLike) -> float | None:
    """The area under the risk-coverage curve, in percent: the share of errors among the best-scored, averaged over how many of
    them are taken. Of equals each takes a share of their errors. None where there is nothing."""
    values, wrong = np.asarray(scores, dtype=np.float64), ~np.asarray(right, dtype=np.bool_)
    if not len(values):
        return None
    _, place, counts = np.unique(-values, return_inverse=True, return_counts=True)
    errors = (np.bincount(place, wrong) / counts)[place][np.argsort(-values, kind="stable")]
    return float(100.0 * (np.cumsum(errors) / np.arange(1, len(values) + 1)).mean())
