"""Whether a confidence means what it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BINS = 15


def expected_calibration_error(confidences: Sequence[float], correct: Sequence[bool], bins: int = BINS) -> float | None:
    """The gap between confidence and accuracy, averaged over bins of equally many predictions; None where there are none.

    Confidences are from 0 to 1, the result from 0 to 100.
    """
    if not confidences:
        return None
    order = np.argsort(np.asarray(confidences), kind="stable")
    sure = np.asarray(confidences, dtype=np.float64)[order]
    right = np.asarray(correct, dtype=np.float64)[order]
    gaps = [
        len(part) * abs(sure[part].mean() - right[part].mean())
        for part in np.array_split(np.arange(len(sure)), bins)
        if len(part)
    ]
    return float(100.0 * sum(gaps) / len(sure))
