from __future__ import annotations

import numpy as np
import pytest

from sequst.evaluation.pseudo_labels import pseudo_label_error

NAMES = ["O", "B-X", "I-X"]


def test_by_hand() -> None:
    # truth      O  B-X | B-X  O  O
    # predicted  O  B-X | O  B-X  O
    labels = np.array([0, 1, 0, 1, 0])
    truth = [("O", "B-X"), ("B-X", "O", "O")]
    found = pseudo_label_error(labels, NAMES, truth, np.array([1.0, 1.0, 1.0, 0.0, 1.0]))
    assert found == {
        "error": pytest.approx(40.0),
        "selected_error": pytest.approx(25.0),
        "entity_error": pytest.approx(50.0),
        "selected_entity_error": pytest.approx(0.0),
    }


def test_wrong_words_that_weigh_less_count_less() -> None:
    labels, truth = np.array([0, 1, 0, 1, 0]), [("O", "B-X"), ("B-X", "O", "O")]
    found = pseudo_label_error(labels, NAMES, truth, np.array([1.0, 2.0, 0.5, 0.5, 0.0]))
    assert found == {
        "error": pytest.approx(40.0),
        "selected_error": pytest.approx(25.0),  # 1.0 of 4.0
        "entity_error": pytest.approx(50.0),
        "selected_entity_error": pytest.approx(20.0),  # 0.5 of 2.5
    }


def test_where_there_is_nothing_to_tell() -> None:
    labels, nothing = np.array([0, 0]), np.zeros(2)
    assert pseudo_label_error(labels, NAMES, [("O",), None], nothing)["error"] is None
    found = pseudo_label_error(labels, NAMES, [("O", "O")], nothing)
    assert (found["error"], found["selected_error"], found["entity_error"]) == (0.0, None, None)
