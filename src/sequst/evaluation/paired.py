"""A paired t-test over runs that share data and seed."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Paired(NamedTuple):
    """The mean of the differences, how many there are, and the two-sided p value of their being none; None for fewer than two
    pairs, or where all differences are the same."""

    difference: float
    pairs: int
    p: float | None


def paired_test(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Student's t-test of the differences first - second, pair by pair."""
    differences = [one - other for one, other in zip(first, second, strict=True)]
    mean = statistics.mean(differences)
    spread = statistics.stdev(differences) if len(differences) > 1 else 0.0
    if spread == 0.0:
        return Paired(mean, len(differences), None)
    t = mean / (spread / math.sqrt(len(differences)))
    return Paired(mean, len(differences), t_tail(t, len(differences) - 1))


def t_tail(t: float, freedom: int) -> float:
    """P(|T| >= |t|) of Student's t, a finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle, odd = math.atan(abs(t) / math.sqrt(freedom)), freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= math.cos(angle) ** 2 * k / (k + 1)
    inside = math.sin(angle) * total
    return max(0.0, 1.0 - (2.0 / math.pi * (angle + inside) if odd else inside))


@functools.lru_cache(maxsize=256)
def t_quantile(level: float, freedom: int) -> float:
    """The t with P(|T| <= t) = level, by bisection."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level {level}: above 0 and below 1")
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > 1.0 - level:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if t_tail(middle, freedom) > 1.0 - level else (low, middle)
    return (low + high) / 2.0
