from __future__ import annotations

import numpy as np
import pytest

from sequst.calibration.reliability import BINS, Bin, expected_calibration_error, reliability


def error(confidences: list[float], correct: list[bool], bins: int = BINS) -> float | None:
    return expected_calibration_error(reliability(confidences, correct, bins))


def test_by_hand() -> None:
    # two bins of two: |0.55 - 0.5| and |0.95 - 1.0|, equally heavy
    assert reliability([0.9, 0.5, 1.0, 0.6], [True, False, True, True], bins=2) == [
        Bin(pytest.approx(0.55), 0.5, 2),  # type: ignore[arg-type]
        Bin(pytest.approx(0.95), 1.0, 2),  # type: ignore[arg-type]
    ]
    assert error([0.9, 0.5, 1.0, 0.6], [True, False, True, True], bins=2) == pytest.approx(5.0)


def test_one_bin_is_the_gap_of_the_means() -> None:
    assert error([0.2, 0.4], [True, True], bins=1) == pytest.approx(70.0)


def test_fewer_predictions_than_bins() -> None:
    assert error([0.25], [True]) == pytest.approx(75.0)
    assert error([], []) is None


def test_confidences_that_mean_what_they_say_have_almost_none() -> None:
    rng = np.random.default_rng(0)
    sure = rng.uniform(size=60_000)
    right = rng.uniform(size=60_000) < sure
    found = error(sure.tolist(), right.tolist())
    assert found is not None
    assert found < 1.0
