from __future__ import annotations

import functools
import gc
import itertools
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from sequst.annotation import next as choosing
from sequst.annotation.next import CANDIDATES, Chosen, choose_next, sentence_score
from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.predict import sentence_vectors
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.predict import annotate_with_uncertainty

choose = functools.partial(choose_next, judging=0.0)


@pytest.fixture
def tagger(tiny_encoder: str) -> Tagger:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2)
    tagger.head.linear.weight.data *= 50  # opinions that dropout can change
    return tagger


def words(chosen: list[Chosen]) -> list[tuple[str, ...]]:
    return [each.sentence.words for each in chosen]


def different(sentences: list[Sentence]) -> list[Sentence]:
    return list({sentence.words: sentence for sentence in reversed(sentences)}.values())[::-1]


def test_three_words_decide() -> None:
    assert sentence_score([0.1, 0.5, 0.0, 0.3, 0.4]) == pytest.approx((0.5 + 0.4 + 0.3) / 3)
    assert sentence_score([0.9]) == pytest.approx(0.3)  # one odd word is a third of three
    assert sentence_score([]) == 0.0


def test_neither_length_nor_one_odd_word_decides() -> None:
    known, odd, hard = [0.01] * 60, [0.01, 0.6, 0.01], [0.3, 0.3, 0.3, 0.01]
    assert sentence_score(known) < sentence_score(odd) < sentence_score(hard)
    assert sentence_score(hard) == pytest.approx(sentence_score([*hard, *known]))


def test_the_highest_information_gains_of_the_pool(tagger: Tagger) -> None:
    pool = different(generate().test[:60])
    chosen = choose(tagger, iter(pool), 7, diverse=False, passes=3, seed=5)
    scores = {p.words: sentence_score(p.information_gains) for p in annotate_with_uncertainty(tagger, pool, 3, 5)}
    assert words(chosen) == sorted(scores, key=lambda each: -scores[each])[:7]
    assert [each.score for each in chosen] == [scores[each.sentence.words] for each in chosen]
    assert chosen == choose(tagger, pool, 7, diverse=False, passes=3, seed=5)


def test_the_lowest_confidences_of_the_pool(tagger: Tagger) -> None:
    pool = different(generate().test[:60])
    chosen = choose(tagger, pool, 7, strategy="confidence", diverse=False)
    predictions = tagger.predict(pool)
    assert isinstance(predictions, list)
    scores = {p.words: float(np.sort(1 - np.array(p.confidences))[::-1][:3].sum() / 3) for p in predictions}
    assert words(chosen) == sorted(scores, key=lambda each: -scores[each])[:7]


@pytest.mark.parametrize("strategy", ["confidence", "information-gain", "random"])
def test_what_is_labelled_is_not_chosen_again(tagger: Tagger, strategy: str) -> None:
    pool = different(generate().test[:60])
    first = choose(tagger, pool, 7, strategy=strategy, passes=3, diverse=False)
    seen: list[int] = []
    done = (each.sentence for each in first)
    again = choose(tagger, pool, 60, strategy=strategy, passes=3, diverse=False, labeled=done, advance=seen.append)
    assert {*words(first), *words(again)} == {sentence.words for sentence in pool}
    assert not {*words(first)} & {*words(again)}
    assert sum(seen) == len(pool) - 7


@pytest.mark.parametrize("strategy", ["confidence", "information-gain", "random"])
def test_what_would_be_left_out_is_told_to_whoever_labels(tagger: Tagger, strategy: str) -> None:
    pool = different(generate().test[:60])
    before = choose(tagger, pool, 7, strategy=strategy, passes=3)
    tagger.entity_calibration = EntityCalibration(threshold=0.9)
    after = choose(tagger, pool, 7, strategy=strategy, passes=3)
    assert tagger.entity_calibration == EntityCalibration(threshold=0.9)
    assert [(each.prediction.tags, each.score) for each in after] == [(each.prediction.tags, each.score) for each in before]
    assert any(each.prediction.entities for each in after)
    assert any(each.left_out for each in tagger.predict(pool))  # type: ignore[union-attr]


def test_random_is_any_sentence_alike_by_the_seed(tagger: Tagger) -> None:
    pool = [Sentence((word,)) for word in "abcd"]
    drawn = [words(choose(tagger, pool, 1, strategy="random", seed=seed))[0][0] for seed in range(200)]
    assert all(30 < drawn.count(word) < 75 for word in "abcd")
    assert drawn[3] == choose(tagger, pool, 1, strategy="random", seed=3)[0].sentence.words[0]
    assert all(each.score is None for each in choose(tagger, pool, 2, strategy="random"))


@pytest.mark.parametrize("strategy", choosing.STRATEGIES)
@pytest.mark.parametrize("diverse", [True, False])
def test_no_two_have_the_same_words_and_all_are_taken_where_there_are_fewer(
    tagger: Tagger, strategy: str, diverse: bool
) -> None:
    pool = [*generate().test[:5], Sentence(()), *generate().test[:5]]
    chosen = choose_next(tagger, pool, 50, strategy=strategy, diverse=diverse, passes=2)
    assert len(chosen) == 5
    assert sum(each.judging for each in chosen) == 1
    assert set(words(chosen)) == {sentence.words for sentence in pool if sentence.words}
    assert choose(tagger, [], 3, strategy=strategy, diverse=diverse, passes=2) == []


def test_near_copies_are_not_chosen_together(tagger: Tagger) -> None:
    """Five sentences, each with four that differ in their last word alone."""
    firsts = different([sentence for sentence in generate().test if len(sentence) > 8])[:5]
    ends = (".", "!", "?", ";")
    pool = [Sentence((*sentence.words, end), id=number) for number, sentence in enumerate(firsts) for end in ends]
    together = [each.sentence.id for each in choose(tagger, pool, 5, passes=3, diverse=True)]
    assert sorted(map(str, together)) == ["0", "1", "2", "3", "4"]
    plain = [each.sentence.id for each in choose(tagger, pool, 5, passes=3, diverse=False)]
    assert len(set(plain)) < 5  # which it was not for want of them


def test_lines_that_differ_in_numbers_do_not_crowd_out_the_rest(tagger: Tagger) -> None:
    others = generate().test[:60]
    line = others[0].words
    pool = [*(Sentence((*line, str(number))) for number in range(300)), *others]
    chosen = choose(tagger, pool, 10, passes=2)
    assert sum(each.sentence.words[: len(line)] == line for each in chosen) <= 3
    numbered = choose(tagger, pool[:300], 10, passes=2, diverse=False)
    assert len(numbered) == 10  # whoever does not ask for variety gets the highest scores


def test_lines_that_differ_in_a_name_do_not_crowd_out_the_rest(tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hundred of them, of higher scores than all others, and ten to choose among fifty candidates."""
    line = generate().test[0].words
    others = [sentence for sentence in different(generate().test[:80]) if sentence.words != line]
    names = ["".join(letters) for letters in itertools.product("abcdefghij", "klmnopqrst", "uvw")]
    pool = [*(Sentence((*line, name)) for name in names), *others]

    def scored(*arguments: object) -> Iterator[tuple[float, object]]:
        for place, prediction in enumerate(tagger.predict(pool)):
            yield 1.0 if place < 300 else 0.5, prediction

    monkeypatch.setattr(choosing, "_scored", scored)
    kinds = {sentence.words: 1 + number for number, sentence in enumerate(others)}
    monkeypatch.setattr(
        choosing, "sentence_vectors", lambda _, sentences: np.eye(len(kinds) + 1)[[kinds.get(s.words, 0) for s in sentences]]
    )
    chosen = choose(tagger, pool, 10)
    assert sum(each.sentence.words[: len(line)] == line for each in chosen) == 1
    assert len(chosen) == 10


def test_the_pool_is_streamed_and_few_are_held(tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many sentences no more are alive than the candidates and the chunks that are being tagged."""
    chunk, count, alive = 32, 4, 0
    refs: list[weakref.ref[Held]] = []

    def by_chunks(tagger: Tagger, sentences: Iterator[Sentence], passes: int, seed: int, last_layers: int) -> object:
        return annotate_with_uncertainty(tagger, sentences, passes, seed, chunk, last_layers)

    def pool() -> Iterator[Sentence]:
        nonlocal alive
        for number, sentence in enumerate(itertools.islice(itertools.cycle(generate().test), 600)):
            held = Held((*sentence.words, f"w{number}"))
            refs.append(weakref.ref(held))
            if number % 100 == 0:
                gc.collect()
                alive = max(alive, sum(ref() is not None for ref in refs))
            yield held

    embedded = []
    monkeypatch.setattr(choosing, "annotate_with_uncertainty", by_chunks)
    monkeypatch.setattr(
        choosing, "sentence_vectors", lambda *arguments: embedded.append(len(arguments[1])) or sentence_vectors(*arguments)
    )
    seen = []
    assert len(choose_next(tagger, pool(), count, passes=1, advance=seen.append)) == count
    assert sum(seen) == len(refs) == 600
    assert max(embedded) == 2 * CANDIDATES * count
    assert len(embedded) < 10
    assert alive <= 3 * CANDIDATES * count + 2 + 3 * chunk + 2  # one is for judging, so two are held


class Held(Sentence):
    """A sentence that can be watched."""


def test_what_an_annotator_gets(tagger: Tagger) -> None:
    sentence = Sentence(("Anna", "sings"), text="Anna sings", offsets=((0, 4), (5, 10)), id="a")
    [chosen] = choose(tagger, [sentence], 1, passes=2)
    record = chosen.to_dict()
    assert (record["id"], record["text"], record["words"]) == ("a", "Anna sings", ["Anna", "sings"])
    assert record["score"] == pytest.approx(sum(record["information_gain"]) / 3, abs=1e-5)
    assert all({"confidence", "mc_confidence", "information_gain"} <= set(entity) for entity in record["entities"])


@pytest.mark.parametrize("strategy", choosing.STRATEGIES)
@pytest.mark.parametrize("diverse", [True, False])
def test_a_share_is_for_judging(tagger: Tagger, strategy: str, diverse: bool) -> None:
    pool, done = different(generate().test[:80]), generate().test[:10]
    chosen = choose_next(tagger, pool, 20, strategy=strategy, diverse=diverse, passes=2, judging=0.25, labeled=done)
    assert len(set(words(chosen))) == 20
    assert not {sentence.words for sentence in done} & set(words(chosen))
    assert [place for place, each in enumerate(chosen) if each.judging] == [2, 6, 10, 14, 18]
    for each in chosen:
        assert each.sentence.judging == each.judging == (not each.prediction.tags)
        assert each.judging <= (each.score is None)
        assert each.sentence.words in {sentence.words for sentence in pool}


def test_those_for_judging_do_not_depend_on_the_model(tagger: Tagger, tiny_encoder: str) -> None:
    other = Tagger.from_encoder(tiny_encoder, ["O", "B-y", "I-y"], seed=7)
    pool = different(generate().test[:100])
    drawn = [
        {each.sentence.words for each in choose_next(one, some, 20, strategy=strategy, diverse=diverse, seed=3) if each.judging}
        for one, some, strategy, diverse in (
            (tagger, pool, "confidence", False), (other, pool[::-1], "confidence", True), (other, pool * 2, "random", False),
        )
    ]  # fmt: skip
    assert drawn[0] == drawn[1] == drawn[2]
    assert len(drawn[0]) == 4


def test_any_sentence_may_be_for_judging_even_one_that_would_be_chosen(tagger: Tagger) -> None:
    """Of five sentences three are asked for, and one of these is random: each of the five alike, whatever its score."""
    pool = [Sentence((word,)) for word in "abcde"]
    best = words(choose(tagger, pool, 5, strategy="confidence", diverse=False))
    drawn: list[str] = []
    for seed in range(300):
        chosen = choose_next(tagger, pool, 3, strategy="confidence", diverse=False, seed=seed)
        [marked] = [each.sentence.words for each in chosen if each.judging]
        drawn.append(marked[0])
        assert [each.sentence.words for each in chosen if not each.judging] == [each for each in best if each != marked][:2]
    assert all(35 < drawn.count(word) < 90 for word in "abcde")  # of 300; 60 on average, standard deviation 7


def test_an_earlier_mark_does_not_stay_on_what_is_chosen(tagger: Tagger) -> None:
    pool = [Sentence((word,), judging=True) for word in "abcde"]
    chosen = choose_next(tagger, pool, 5, strategy="confidence")
    assert sum(each.judging for each in chosen) == 1
    assert not any(each.judging for each in choose(tagger, pool, 5, strategy="confidence"))


def test_an_annotator_gets_no_opinion_on_a_sentence_for_judging(tagger: Tagger) -> None:
    sentence = Sentence(("Anna", "sings"), ("B-x", "O"), "a", text="Anna sings", offsets=((0, 4), (5, 10)))
    [chosen] = choose_next(tagger, [sentence], 1, judging=1.0)
    assert chosen.to_dict() == {"id": "a", "text": "Anna sings", "words": ["Anna", "sings"], "judging": True}
    assert chosen.as_task() == (Sentence(("Anna", "sings"), None, "a", None, "Anna sings", ((0, 4), (5, 10)), True), None)


def test_misuse(tagger: Tagger) -> None:
    with pytest.raises(UsageError, match="count 0"):
        choose(tagger, [], 0)
    with pytest.raises(UsageError, match="did you mean 'confidence'"):
        choose(tagger, [], 1, strategy="confidance")
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(UsageError, match="a share from 0 to 1"):
            choose_next(tagger, [], 1, judging=share)
    with pytest.raises(UsageError, match="passes 0"):
        choose(tagger, [], 1, passes=0)
    with pytest.raises(UsageError, match="the encoder has 2"):
        choose(tagger, [], 1, last_layers=3)
