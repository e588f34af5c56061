"""What the next labels bring: a learning curve through the trainings so far, and what it says of a few labels more.

The curve is F1(n) = a - b n^-c. It is written as F1(n) = a - (a - f) (N / n)^c, where f is the F1 at the current number of
labels N. All f, a up to 100 and c are weighed by how well they explain the points, and the gain is averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 4
"""Trainings below which nothing is told: a curve has three unknowns."""
SLOWEST, FASTEST = 0.1, 2.0
"""Least and largest exponent c; all between are as likely at first."""
SUREST = 0.1
"""Lower bound of the standard error of a point, in points of F1."""
CELLS = 32
"""Of the grid, along each of its three sides."""
ZOOMS = 4
"""How often the grid is laid anew around what explains the points."""
NEGLIGIBLE = 12.0
"""Log odds to the best cell from which on a cell does not count."""


class Point(NamedTuple):
    """A training: its number of labels, and its F1 with an interval, from 0 to 100."""

    labels: int
    f1: float
    low: float
    high: float


class Outlook(NamedTuple):
    """The F1 that so many `labels` more are expected to bring, in points, and where it lies with the probability asked for."""

    labels: int
    gain: float
    low: float
    high: float


class TooFew(NamedTuple):
    """Why nothing can be said yet."""

    reason: str


def outlook(points: Sequence[tuple[int, float, float, float]], more: int = 20, level: float = 0.9) -> Outlook | TooFew:
    """What `more` labels than the last point has will bring. `level` is that of the points' intervals too.

    The interval begins at 0 if the curve may be flat. Errors of the points are taken as independent and normal.
    """
    given = [Point(*point) for point in points if point[0] > 0]
    if len(given) < FEWEST:
        return TooFew(f"at least four trainings are needed; there {'is' if len(given) == 1 else 'are'} {len(given)}")
    least, most = min(point.labels for point in given), max(point.labels for point in given)
    if most < 2 * least:
        return TooFew(f"the trainings have {least} to {most} labels; one with twice as many as the first is needed")
    now = given[-1].labels
    current, room, exponents, weights = _posterior(given, level)
    gains = room * (100.0 - current) * (1.0 - (now / (now + more)) ** exponents)
    low, high = _interval(gains.ravel(), weights.ravel(), level)
    return Outlook(more, float((gains * weights).sum()), low, high)


Grid = tuple["NDArray[np.float64]", "NDArray[np.float64]", "NDArray[np.float64]", "NDArray[np.float64]"]


def _posterior(points: Sequence[Point], level: float) -> Grid:
    """(f, the share of the way from f to 100 at which a lies, c, their weights, which add up to 1), on a grid."""
    sigmas = NormalDist().inv_cdf(0.5 + level / 2.0)
    measured = np.array([point.f1 for point in points])
    errors = np.array([max((point.high - point.low) / (2.0 * sigmas), SUREST) for point in points])
    ratios = points[-1].labels / np.array([point.labels for point in points], dtype=np.float64)
    box = [(0.0, 100.0), (0.0, 1.0), (SLOWEST, FASTEST)]
    for _ in range(1 + ZOOMS):
        sides = [_middles(*side) for side in box]
        current, room, exponents = np.meshgrid(*sides, indexing="ij", sparse=True)
        misfit = _misfit(current, room, sides[2], measured, errors, ratios)
        fit = -0.5 * misfit / max(1.0, float(misfit.min()) / len(points))  # the best of a coarse grid may fit badly
        likely = fit > fit.max() - NEGLIGIBLE
        box = [
            _around(side, whole, likely.any(axis=tuple({0, 1, 2} - {axis})))
            for axis, (side, whole) in enumerate(zip(sides, box, strict=True))
        ]
    weights = np.exp(fit - fit.max())
    return current, room, exponents, weights / weights.sum()


def _misfit(
    current: NDArray[np.float64],
    room: NDArray[np.float64],
    exponents: NDArray[np.float64],
    measured: NDArray[np.float64],
    errors: NDArray[np.float64],
    ratios: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The squared error of every cell, in standard errors: sums over points, of which none needs the whole grid."""
    climb = room * (100.0 - current)  # a - f
    weight = errors**-2.0
    missing = ratios[None, :] ** exponents[:, None]  # (C, P): share of the climb that was still to come
    to_come, squared = missing @ weight, missing**2 @ weight
    crossed, plain = missing @ (weight * measured), float(weight @ measured)
    limit = current + climb
    flat = float(weight @ measured**2) - 2.0 * limit * plain + limit**2 * float(weight.sum())
    misfit: NDArray[np.float64] = flat + 2.0 * climb * (crossed - limit * to_come) + climb**2 * squared
    return misfit


def _middles(low: float, high: float) -> NDArray[np.float64]:
    """The middles of `CELLS` cells of equal size."""
    return low + (high - low) * (np.arange(CELLS) + 0.5) / CELLS


def _around(side: NDArray[np.float64], whole: tuple[float, float], likely: NDArray[np.bool_]) -> tuple[float, float]:
    """The likely part of a side, with a cell more at its ends."""
    places, step = np.flatnonzero(likely), float(side[1] - side[0])
    return max(whole[0], float(side[places[0]]) - 1.5 * step), min(whole[1], float(side[places[-1]]) + 1.5 * step)


def _interval(values: NDArray[np.float64], weights: NDArray[np.float64], level: float) -> tuple[float, float]:
    """What holds `level` of the weight with equal tails, and the shortest that does, which begins at 0 if low values are the
    likeliest: both together."""
    order = np.argsort(values, kind="stable")
    values, after = values[order], np.cumsum(weights[order])
    before = after - weights[order]
    starts = np.flatnonzero(before <= 1.0 - level)
    ends = np.minimum(np.searchsorted(after, before[starts] + level), len(values) - 1)
    shortest = int(np.argmin(values[ends] - values[starts]))
    tails = np.minimum(np.searchsorted(after, [0.5 - level / 2.0, 0.5 + level / 2.0]), len(values) - 1)
    low = 0.0 if after[starts[shortest]] <= 0.01 else min(values[starts[shortest]], values[tails[0]])
    return float(low), float(max(values[ends[shortest]], values[tails[1]]))
