"""Are two systems different? A paired t-test over runs that share their data and seed."""

from __future__ import annotations

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
    """P(|T| >= |t|) of Student's t with so many degrees of freedom."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly, the other tail
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    return front / _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, from its end to its beginning."""
    value = 1.0
    for m in range(200, 0, -1):
        k, odd = divmod(m, 2)
        if odd:
            term = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        else:
            term = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        value = 1.0 + term / value
    return value
