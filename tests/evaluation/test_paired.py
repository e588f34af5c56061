from __future__ import annotations

import pytest

from sequst.evaluation.paired import paired_test, t_quantile, t_tail


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [
        (12.7062, 1, 0.05),
        (4.3027, 2, 0.05),
        (2.7764, 4, 0.05),
        (4.6041, 4, 0.01),
        (2.0, 10, 0.07339),
        (2.0452, 29, 0.05),
        (3.0902, 10_000, 0.002007),
        (0.0, 3, 1.0),
    ],
)  # fmt: skip
def test_tails_as_printed_in_tables(t: float, freedom: int, p: float) -> None:
    assert t_tail(t, freedom) == pytest.approx(p, abs=2e-5)
    assert t_tail(-t, freedom) == pytest.approx(p, abs=2e-5)


def test_by_hand() -> None:
    found = paired_test([5.0, 7.0, 9.0], [4.0, 5.0, 6.0])  # differences 1, 2, 3: t = 2 / (1 / sqrt 3) = 3.4641
    assert found.difference == 2.0
    assert found.pairs == 3
    assert found.p == pytest.approx(t_tail(3.4641, 2), rel=1e-4)
    assert found.p == pytest.approx(0.0742, abs=1e-4)


def test_what_cannot_be_tested_has_no_p() -> None:
    assert paired_test([1.0], [0.5]) == (0.5, 1, None)
    assert paired_test([1.0, 2.0], [0.0, 1.0]).p is None


@pytest.mark.parametrize(("level", "freedom", "t"), [(0.9, 1, 6.3138), (0.95, 4, 2.7764), (0.9, 29, 1.6991), (0.5, 7, 0.7111)])
def test_quantiles_as_printed_in_tables(level: float, freedom: int, t: float) -> None:
    assert t_quantile(level, freedom) == pytest.approx(t, abs=1e-4)
    assert t_tail(t_quantile(level, freedom), freedom) == pytest.approx(1 - level)


def test_a_quantile_of_no_level_is_refused() -> None:
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="level"):
            t_quantile(level, 3)
