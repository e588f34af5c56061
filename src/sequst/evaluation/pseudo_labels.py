"""The error of pseudo-labels, if the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sequst.corpus.tags import OUTSIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pseudo_label_error(
    labels: NDArray[np.int64], names: Sequence[str], truth: Sequence[Sequence[str] | None], weights: NDArray[np.float64]
) -> dict[str, float | None]:
    """The share of wrong words, in percent: of all, of the selected, by their weights, and of those that are labelled as an
    entity.

    `labels` are of all words one after the other, `names` the tags they stand for; a weight of 0 is that of a word that is not
    selected. None where there is no such word, and for all where the tags of some sentence are not known.
    """
    if any(tags is None for tags in truth):
        return dict.fromkeys(("error", "selected_error", "entity_error", "selected_entity_error"))
    predicted = np.array(names, dtype=object)[labels]
    gold = np.array([tag for tags in truth for tag in (tags or ())], dtype=object)
    wrong, entity, selected = predicted != gold, predicted != OUTSIDE, weights > 0

    def percent(of: NDArray[np.bool_], weights: NDArray[np.float64] | None = None) -> float | None:
        return float(100.0 * np.average(wrong[of], weights=None if weights is None else weights[of])) if of.any() else None

    return {
        "error": percent(np.ones_like(wrong)),
        "selected_error": percent(selected, weights),
        "entity_error": percent(entity),
        "selected_entity_error": percent(selected & entity, weights),
    }
