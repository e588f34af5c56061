"""The gain of the next labels: recovered from curves that are known, with an interval that holds it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from sequst.annotation.curve import Outlook, Point, TooFew, outlook

LABELS = [20, 40, 60, 80, 120, 160]
Curve = Callable[[float], float]


def curve(limit: float, first: float, exponent: float) -> Curve:
    """F1 by number of labels, `first` at twenty of them."""
    return lambda labels: float(limit - (limit - first) * (20 / labels) ** exponent)


def points(of: Curve, error: float, rng: np.random.Generator | None = None) -> list[Point]:
    """Measured with this standard error, which 90 % intervals of 1.645 errors tell of."""
    found = []
    for labels in LABELS:
        f1 = of(labels) + (0.0 if rng is None else error * rng.normal())
        found.append(Point(labels, f1, f1 - 1.645 * error, f1 + 1.645 * error))
    return found


def known(found: Outlook | TooFew) -> Outlook:
    assert isinstance(found, Outlook)
    return found


@pytest.mark.parametrize("more", [10, 20, 100])
@pytest.mark.parametrize(
    ("limit", "first", "exponent"), [(90, 55, 0.8), (80, 40, 0.5), (70, 50, 1.0), (95, 54, 0.3), (85, 85, 1)]
)
def test_a_curve_without_noise_is_recovered(limit: float, first: float, exponent: float, more: int) -> None:
    of = curve(limit, first, exponent)
    gain, found = of(160 + more) - of(160), known(outlook(points(of, 0.0), more))
    assert found.labels == more
    assert found.gain == pytest.approx(gain, rel=0.03, abs=0.1)
    assert found.low <= gain <= found.high
    assert found.high - found.low < 0.1 + 0.25 * gain


@pytest.mark.parametrize("error", [0.5, 1.0, 3.0, 6.0])
def test_the_true_gain_is_inside_as_often_as_promised(error: float) -> None:
    rng, inside, width, gains = np.random.default_rng(3), 0, [], []
    for _ in range(300):
        limit = rng.uniform(60, 95)
        of = curve(limit, rng.uniform(30, limit - 5), rng.uniform(0.2, 1.2))
        gains.append(of(200) - of(160))
        found = known(outlook(points(of, error, rng), 40))
        assert 0 <= found.low <= found.gain <= found.high <= 100
        inside += found.low <= gains[-1] <= found.high
        width.append(found.high - found.low)
    assert inside / 300 >= 0.86
    assert np.mean(width) < 4 * np.std(gains)  # whoever knew nothing but these curves would say as much


def test_what_is_flat_may_bring_nothing() -> None:
    rng = np.random.default_rng(5)
    found = [known(outlook(points(lambda labels: 85.0, 2.0, rng))) for _ in range(60)]
    assert np.mean([each.low == 0.0 for each in found]) > 0.85
    assert np.mean([each.gain for each in found]) < 0.2


def test_noise_widens_the_interval_and_nothing_else_changes() -> None:
    of = curve(80, 40, 0.5)
    found = [known(outlook(points(of, error))) for error in (0.1, 0.3, 1.0, 3.0, 6.0)]
    widths = [each.high - each.low for each in found]
    assert widths == sorted(widths)
    assert found == [known(outlook(points(of, error))) for error in (0.1, 0.3, 1.0, 3.0, 6.0)]


def test_more_labels_bring_more_and_a_lower_level_is_narrower() -> None:
    given = points(curve(80, 40, 0.5), 2.0, np.random.default_rng(1))
    gains = [known(outlook(given, more)).gain for more in (5, 10, 20, 40, 80)]
    assert gains == sorted(gains)
    assert known(outlook(given, 0)).high == 0.0
    wide, narrow = (
        known(outlook([(n, f1, f1 - reach, f1 + reach) for n, f1, *_ in given], 20, level))
        for level, reach in ((0.9, 3.29), (0.5, 1.349))
    )  # the same errors at both levels
    assert narrow.gain == pytest.approx(wide.gain, rel=1e-3)
    assert narrow.high - narrow.low < wide.high - wide.low


def test_the_current_number_of_labels_is_that_of_the_last_point() -> None:
    of = curve(90, 55, 0.8)
    given = points(of, 0.0)
    found = known(outlook([*given[3:], *given[:3]], 20))  # sixty labels were the last
    assert found.gain == pytest.approx(of(80) - of(60), rel=0.03)


def test_points_that_no_curve_explains_are_taken_as_less_exact() -> None:
    """An F1 that goes up and down by more than its intervals say."""
    jumps = [Point(n, f1, f1 - 0.1, f1 + 0.1) for n, f1 in zip(LABELS, (50, 62, 55, 66, 61, 70), strict=True)]
    found = known(outlook(jumps))
    assert 0.3 < found.high - found.low < 10


def test_too_few_trainings_are_told() -> None:
    given = points(curve(90, 55, 0.8), 1.0)
    assert outlook(given[:2]) == TooFew("at least four trainings are needed; there are 2")
    assert outlook(given[:1]) == TooFew("at least four trainings are needed; there is 1")
    assert outlook([]) == TooFew("at least four trainings are needed; there are 0")
    near = [Point(labels, 50, 40, 60) for labels in (40, 45, 50, 60)]
    assert outlook(near) == TooFew("the trainings have 40 to 60 labels; one with twice as many as the first is needed")
    assert outlook([Point(0, 0, 0, 0), *near]) == outlook(near)


def test_it_is_fast() -> None:
    given = points(curve(90, 55, 0.8), 2.0, np.random.default_rng(2)) * 5
    seconds = []
    for _ in range(5):
        begun = time.process_time()
        outlook(given)
        seconds.append(time.process_time() - begun)
    assert min(seconds) < 0.05
