from __future__ import annotations

import random

import pytest

from sequst.evaluation.spans import Counts, f1_interval, score_spans

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y", "B-Z", "I-Z"]


def test_by_hand() -> None:
    gold = [["B-X", "I-X", "O", "B-Y"], ["O", "B-Y"]]
    predicted = [["B-X", "I-X", "B-Y", "O"], ["O", "B-X"]]
    scores = score_spans(gold, predicted)
    assert scores.total == Counts(tp=1, fp=2, fn=2)
    assert scores.sentences == [(1, 1, 1), (0, 1, 1)]
    assert scores.types == {"X": Counts(1, 1, 0), "Y": Counts(0, 1, 2)}
    assert scores.total.precision == scores.total.recall == scores.total.f1 == pytest.approx(100 / 3)


def test_equals_seqeval_on_random_tags() -> None:
    from seqeval.metrics import classification_report, f1_score, precision_score, recall_score

    rng = random.Random(0)
    for _ in range(50):
        lengths = [rng.randint(1, 12) for _ in range(rng.randint(1, 20))]
        # the prediction copies much of the gold, so that there is something right
        gold = [[rng.choice(TAGS) for _ in range(n)] for n in lengths]
        predicted = [[tag if rng.random() < 0.8 else rng.choice(TAGS) for tag in tags] for tags in gold]
        total = score_spans(gold, predicted).total
        assert total.precision == pytest.approx(100 * precision_score(gold, predicted, zero_division=0))
        assert total.recall == pytest.approx(100 * recall_score(gold, predicted, zero_division=0))
        assert total.f1 == pytest.approx(100 * f1_score(gold, predicted, zero_division=0))
        report = classification_report(gold, predicted, output_dict=True, zero_division=0)
        for type_, counts in score_spans(gold, predicted).types.items():
            assert counts.f1 == pytest.approx(100 * report[type_]["f1-score"])
            assert counts.precision == pytest.approx(100 * report[type_]["precision"])
            assert counts.tp + counts.fn == report[type_]["support"]


def test_nothing_there_is_zero() -> None:
    total = score_spans([["O"]], [["O"]]).total
    assert (total.precision, total.recall, total.f1) == (0, 0, 0)


def test_different_lengths_are_a_bug_of_the_caller() -> None:
    with pytest.raises(ValueError, match="shorter"):
        score_spans([["O"]], [])


def test_the_interval_of_f1_narrows_with_the_sentences() -> None:
    right, wrong = (["B-x", "O"], ["B-x", "O"]), (["B-x", "O"], ["O", "B-x"])

    def interval(pairs: list[tuple[list[str], list[str]]]) -> tuple[float, float]:
        return f1_interval(score_spans([a for a, _ in pairs], [b for _, b in pairs]).sentences)

    assert interval([right] * 5) == (100.0, 100.0)
    assert interval([]) == (0.0, 0.0)
    few, many = interval([right, wrong] * 10), interval([right, wrong] * 1000)
    # of 2,000 sentences, half right, the share of right ones has a standard deviation of 1.1 %
    assert many == pytest.approx((50 - 1.96 * 1.118, 50 + 1.96 * 1.118), abs=0.3)
    assert few[1] - few[0] > 5 * (many[1] - many[0])
