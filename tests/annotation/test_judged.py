"""Intervals of an F1 that few sentences tell: how often the true one is inside, and how wide they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sequst.annotation.judged import F1Interval, compare, counts_by_type, judged_f1, judged_types
from sequst.evaluation.spans import Counts, score_spans

KINDS = {
    "hard": {"rate": 0.3, "mean": 0.5, "alike": 2.0, "invented": 0.3, "empty": 0.3},  # F1 49
    "uneven": {"rate": 0.5, "mean": 0.6, "alike": 1.0, "invented": 0.4, "empty": 0.1},  # 62
    "usual": {"rate": 0.3, "mean": 0.7, "alike": 2.0, "invented": 0.2, "empty": 0.2},  # 72
    "good": {"rate": 0.4, "mean": 0.85, "alike": 1.5, "invented": 0.3, "empty": 0.2},  # 86
    "best": {"rate": 0.25, "mean": 0.9, "alike": 4.0, "invented": 0.1, "empty": 0.4},  # 91
}
"""Texts: entities in a sentence (0 to 5), how well they are found, how much sentences are alike, what is found beside them."""


def text(kind: dict[str, float], count: int, rng: np.random.Generator) -> NDArray[Any]:
    """(count, 3): true positives, false positives, false negatives of sentences, some of which are harder than others."""
    entities = rng.binomial(5, kind["rate"], count) * (rng.random(count) >= kind["empty"])
    ease = rng.beta(kind["mean"] * kind["alike"], (1 - kind["mean"]) * kind["alike"], count)
    found = rng.binomial(entities, ease)
    wrong = rng.binomial(entities - found, 0.5) + rng.binomial(2, kind["invented"] * (1 - ease))
    return np.stack([found, wrong, entities - found], 1)


def f1_of(counts: NDArray[Any]) -> float:
    return Counts(*map(int, counts.sum(0))).f1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [5, 10, 20, 40])
def test_the_true_f1_is_inside_as_often_as_promised(kind: str, count: int) -> None:
    rng = np.random.default_rng(count)
    true = f1_of(text(KINDS[kind], 400_000, rng))
    draws = text(KINDS[kind], 2000 * count, rng).reshape(2000, count, 3)
    found = [judged_f1(draw.tolist()) for draw in draws]
    inside = np.mean([each.low <= true <= each.high for each in found])
    assert 0.86 <= inside <= 0.97
    assert all(0 <= each.low <= each.value <= each.high <= 100 for each in found)
    if count == 40:  # compared with who knows how much the F1 of forty sentences varies
        oracle = 2 * 1.645 * np.std([each.value for each in found])
        assert np.median([each.high - each.low for each in found]) < 1.1 * oracle


def test_a_rare_type_has_an_honest_interval_too() -> None:
    """One that three sentences in ten have: of twenty, some six tell of it."""
    rng, rare = np.random.default_rng(3), {**KINDS["usual"], "rate": 0.15, "empty": 0.5}
    true = f1_of(text(rare, 400_000, rng))
    found = [judged_f1(draw.tolist()) for draw in text(rare, 2000 * 20, rng).reshape(2000, 20, 3)]
    assert 0.86 <= np.mean([each.low <= true <= each.high for each in found]) <= 0.99


def test_a_bootstrap_of_ten_is_too_narrow() -> None:
    """Why there is more to it than resampling."""
    rng = np.random.default_rng(1)
    true, inside = f1_of(text(KINDS["best"], 400_000, rng)), []
    for draw in text(KINDS["best"], 400 * 10, rng).reshape(400, 10, 3):
        sums = draw[rng.integers(0, 10, (300, 10))].sum(1)
        whole = 2 * sums[:, 0] + sums[:, 1] + sums[:, 2]
        low, high = np.percentile(100 * 2 * sums[:, 0] / np.maximum(whole, 1), [5, 95])
        inside.append(low <= true <= high)
    assert np.mean(inside) < 0.8


def test_by_hand() -> None:
    """Two of two entities in the first sentence, one of two and a wrong one in the second."""
    found = judged_f1([(2, 0, 0), (1, 1, 1)])
    assert found == F1Interval(75.0, pytest.approx(found.low), pytest.approx(found.high), 0.9, 2, 4)
    # sizes 4 and 4; half a sentence of 60 adds 2 to 8: (6 + 1.2) / 10 = 0.72
    influence = np.array([4 - 0.72 * 4, 2 - 0.72 * 4, 2 * (0.6 - 0.72)]) / 10
    error = np.sqrt((influence**2).sum() * 2.5 / 1.5)
    reach = 2.353363 * error / (0.72 * 0.28)  # the t of 0.9 with three degrees of freedom
    logit = np.log(0.72 / 0.28)
    assert found.low == pytest.approx(100 / (1 + np.exp(reach - logit)), rel=1e-5)
    assert found.high == pytest.approx(100 / (1 + np.exp(-reach - logit)), rel=1e-5)


def test_more_sentences_and_less_certainty_are_narrower() -> None:
    pattern = [(2, 0, 0), (1, 1, 1), (0, 0, 0), (1, 0, 1)]
    widths = [judged_f1(pattern * times).high - judged_f1(pattern * times).low for times in (1, 2, 5, 20)]
    assert widths == sorted(widths, reverse=True)
    levels = [judged_f1(pattern, level).high - judged_f1(pattern, level).low for level in (0.5, 0.8, 0.95)]
    assert levels == sorted(levels)


def test_without_an_error_or_without_an_entity() -> None:
    perfect, all_wrong = judged_f1([(1, 0, 0)] * 8), judged_f1([(0, 1, 1)] * 8)
    assert (perfect.value, perfect.high) == (100.0, 100.0)
    assert 50 < perfect.low < 95  # eight of eight is no proof
    assert (all_wrong.value, all_wrong.low) == (0.0, 0.0)
    assert all_wrong.high > 5
    assert judged_f1([(1, 0, 0)] * 40).low > perfect.low
    for none in ([], [(0, 0, 0)] * 5):
        assert judged_f1(none) == F1Interval(0.0, 0.0, 100.0, 0.9, len(none), 0)


def test_types_have_counts_and_intervals_of_their_own() -> None:
    gold = [("B-PER", "O", "B-LOC"), ("B-PER", "I-PER", "O"), ("O", "O", "O")]
    predicted = [("B-PER", "O", "O"), ("B-PER", "O", "B-LOC"), ("O", "O", "B-ORG")]
    counts = counts_by_type(gold, predicted)
    assert counts == {
        "LOC": [(0, 0, 1), (0, 1, 0), (0, 0, 0)], "ORG": [(0, 0, 0), (0, 0, 0), (0, 1, 0)],
        "PER": [(1, 0, 0), (0, 1, 1), (0, 0, 0)],
    }  # fmt: skip
    scores = score_spans(gold, predicted)
    found = judged_types(counts)
    assert {type_: each.value for type_, each in found.items()} == {type_: c.f1 for type_, c in scores.types.items()}
    assert (found["PER"].sentences, found["PER"].entities) == (3, 2)
    assert judged_f1(scores.sentences).value == scores.total.f1


def two_taggers(kind: dict[str, float], count: int, better: float, rng: np.random.Generator) -> list[NDArray[Any]]:
    """The counts of two taggers on the same sentences. They agree on most; the second finds an entity more often."""
    entities = rng.binomial(5, kind["rate"], count) * (rng.random(count) >= kind["empty"])
    ease = rng.beta(kind["mean"] * kind["alike"], (1 - kind["mean"]) * kind["alike"], count)
    luck, wrong = rng.random((2, count, 5)), rng.random((2, count, 5))
    for draws in (luck, wrong):
        draws[1] = np.where(rng.random((count, 5)) < 0.8, draws[0], draws[1])
    taggers = []
    for number, chance in enumerate((ease, np.clip(ease + better, 0, 1))):
        there = np.arange(5) < entities[:, None]
        right = there & (luck[number] < chance[:, None])
        missed = there & ~right
        taggers.append(np.stack([right.sum(1), (missed & (wrong[number] < 0.5)).sum(1), missed.sum(1)], 1))
    return taggers


@pytest.mark.parametrize("kind", ["hard", "usual", "good"])
@pytest.mark.parametrize("better", [0.0, 0.1])
def test_a_difference_is_inside_as_often_as_promised(kind: str, better: float) -> None:
    rng = np.random.default_rng(5)
    one, other = two_taggers(KINDS[kind], 300_000, better, rng)
    true = f1_of(one) - f1_of(other)
    for count in (5, 10, 20, 40):
        pairs = zip(*(each.reshape(500, count, 3) for each in two_taggers(KINDS[kind], 500 * count, better, rng)), strict=True)
        found = [compare(first.tolist(), second.tolist()) for first, second in pairs]
        assert np.mean([each.low <= true <= each.high for each in found]) >= 0.86
        assert all(-100 <= each.low <= each.value <= each.high <= 100 for each in found)
    alone = [judged_f1(first.tolist()) for first in one[: 500 * 40].reshape(500, 40, 3)]
    paired = np.median([each.high - each.low for each in found])
    assert paired < np.sqrt(2) * np.median([each.high - each.low for each in alone])  # what two samples of 40 would give


def test_a_difference_by_hand() -> None:
    first, second = [(1, 0, 0)] * 3 + [(0, 0, 0)], [(1, 0, 0)] * 2 + [(0, 1, 1), (0, 0, 0)]
    found = compare(first, second)
    assert found.value == pytest.approx(100 - 100 * 4 / 6)
    back = compare(second, first)
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low))
    same = compare(first, first)
    assert (same.value, same.low, same.sentences) == (0.0, -same.high, 4)
    assert same.high > 5  # three sentences do not prove that two are equal
    assert compare([(0, 0, 0)], [(0, 0, 0)]) == (0.0, -100.0, 100.0, 0.9, 1)
    with pytest.raises(ValueError, match="4 and 1 sentences"):
        compare(first, [(1, 0, 0)])
