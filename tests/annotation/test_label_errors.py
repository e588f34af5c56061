from __future__ import annotations

import numpy as np
import pytest

from sequst.annotation import label_errors as doubts
from sequst.annotation.label_errors import LEAST, SHRINKAGE, HeldOutPrediction, Suspect, rank_suspects, usual_probabilities
from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.tags import Span

ALIKE = dict.fromkeys(("O", "B-LOC", "I-LOC", "B-PER", "I-PER"), 0.5)
LABELS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


def judged(given: str, rather: str, sure: float = 0.8, number: int = 1, labels: tuple[str, ...] = LABELS) -> HeldOutPrediction:
    """A tagger that gives its own tags the probability `sure`, and shares out the rest evenly."""
    tags, own = tuple(given.split()), tuple(rather.split())
    probabilities = np.full((len(own), len(labels)), (1 - sure) / (len(labels) - 1), dtype=np.float32)
    for word, tag in enumerate(own):
        probabilities[word, labels.index(tag)] = sure
    sentence = Sentence(tuple(f"w{i}" for i in range(len(tags))), tags, number, Source("f.conll", 10, line_per_word=True))
    return HeldOutPrediction(sentence, number, own, probabilities, labels)


def suspects_of(judged: HeldOutPrediction) -> list[Suspect]:
    """Where all tags are usually as likely as each other."""
    return doubts.suspects_of(judged, ALIKE)


@pytest.mark.parametrize(
    ("given", "rather", "kind", "start", "end"),
    [
        ("O B-LOC I-LOC", "O B-PER I-PER", "other type", 1, 3),
        ("O B-LOC I-LOC", "O B-LOC O", "other edges", 1, 3),
        ("O O B-LOC", "O B-LOC I-LOC", "other edges", 1, 3),
        ("B-LOC I-LOC O", "O B-PER I-PER", "other type and edges", 0, 3),
        ("O B-LOC I-LOC", "O O O", "no entity", 1, 3),
        ("O O O", "O B-PER I-PER", "missed entity", 1, 3),
    ],
)
def test_every_kind(given: str, rather: str, kind: str, start: int, end: int) -> None:
    [suspect] = suspects_of(judged(given, rather))
    assert (suspect.kind, suspect.start, suspect.end) == (kind, start, end)
    # each of the words that differ has 0.8 for the tagger's tag and 0.05 for each other
    assert suspect.alternative_probability == pytest.approx(0.8)
    assert suspect.given_probability == pytest.approx(0.05)
    assert suspect.doubt == pytest.approx(np.log(0.8 / 0.05))


def test_only_the_words_that_differ_count() -> None:
    one = judged("B-LOC I-LOC O", "B-LOC I-LOC I-LOC")
    one.probabilities[2] = [0.3, 0.1, 0.4, 0.1, 0.1]
    [suspect] = suspects_of(one)
    assert (suspect.given_probability, suspect.alternative_probability) == (pytest.approx(0.3), pytest.approx(0.4))
    both = judged("B-LOC I-LOC", "B-PER I-PER")
    both.probabilities[0] = [0.0, 0.1, 0.0, 0.9, 0.0]
    both.probabilities[1] = [0.0, 0.0, 0.4, 0.2, 0.4]
    [suspect] = suspects_of(both)
    assert suspect.given_probability == pytest.approx((0.1 * 0.4) ** 0.5)
    assert suspect.alternative_probability == pytest.approx((0.9 * 0.4) ** 0.5)


def test_agreement_is_no_suspect_and_others_stand_beside_it() -> None:
    assert suspects_of(judged("B-LOC O B-PER", "B-LOC O B-PER", sure=0.3)) == []
    [suspect] = suspects_of(judged("B-LOC O B-PER O", "B-LOC O B-LOC O"))
    assert (suspect.given, suspect.alternative) == (Span("PER", 2, 3), Span("LOC", 2, 3))


def test_one_for_two_and_two_for_one() -> None:
    """A given entity is held against that which shares most words with it; the smaller part is no entry of its own."""
    [suspect] = suspects_of(judged("B-LOC I-LOC I-LOC", "B-LOC I-LOC B-PER"))
    assert suspect.alternative == Span("LOC", 0, 2)
    two = suspects_of(judged("B-LOC B-LOC", "B-LOC I-LOC"))
    assert [each.given for each in two] == [Span("LOC", 0, 1), Span("LOC", 1, 2)]
    assert {each.alternative for each in two} == {Span("LOC", 0, 2)}


def test_tags_that_iob2_does_not_allow_are_read_leniently() -> None:
    assert suspects_of(judged("B-LOC O", "I-LOC O")) == []
    [suspect] = suspects_of(judged("O O", "O I-LOC"))
    assert suspect.alternative == Span("LOC", 1, 2)


def test_a_type_that_the_tagger_does_not_know_is_not_judged() -> None:
    few = ("O", "B-PER", "I-PER")
    assert suspects_of(judged("B-LOC O", "O O", labels=few)) == []
    [suspect] = suspects_of(judged("B-LOC B-PER", "O O", labels=few))
    assert suspect.given == Span("PER", 1, 2)
    # nor are its words beside one that is
    assert suspects_of(judged("B-PER B-LOC", "B-PER I-PER", labels=few)) == []
    [suspect] = suspects_of(judged("B-PER B-LOC O", "B-PER I-PER I-PER", labels=few))
    assert suspect.given_probability == pytest.approx(0.1)


def test_ranked_by_doubt_and_then_by_place() -> None:
    found = rank_suspects([judged("O", "B-LOC", sure, number) for number, sure in enumerate((0.5, 0.9, 0.5, 0.7), 1)])
    assert [each.number for each in found] == [2, 4, 1, 3]


def test_a_ratio_counts_and_not_a_difference() -> None:
    """One that is nearly ruled out comes before one that is merely less likely, however sure the tagger is of its own."""
    ruled_out, unlikely = judged("B-LOC", "B-PER", number=1), judged("B-LOC", "B-PER", number=2)
    ruled_out.probabilities[0] = [0.4, 0.001, 0.1, 0.499, 0.0]
    unlikely.probabilities[0] = [0.0, 0.05, 0.0, 0.95, 0.0]
    assert [each.number for each in rank_suspects([unlikely, ruled_out])] == [1, 2]
    unlikely.probabilities[0, 1] = 0.0  # a logarithm is finite
    assert rank_suspects([unlikely])[0].given_probability == pytest.approx(LEAST)


def test_what_is_usual_for_a_tag_is_taken_out() -> None:
    """PER is never sure even where it is right, so that little of it is no news; the same of LOC, which is always sure, is."""
    sure = [judged("B-LOC O O", "B-LOC O O", sure=0.96, number=1) for _ in range(50)]
    unsure = [judged("B-PER O O", "O O O", sure=0.96, number=2) for _ in range(50)]
    for each in unsure:
        each.probabilities[0] = [0.55, 0.0, 0.0, 0.45, 0.0]
    usual = usual_probabilities([*sure, *unsure])
    average = (50 * 0.96 * 3 + 50 * (0.45 + 2 * 0.96)) / 300
    assert usual["B-PER"] == pytest.approx((50 * 0.45 + SHRINKAGE * average) / (50 + SHRINKAGE))
    assert usual["I-PER"] == pytest.approx(average)  # never given
    one, other = judged("B-LOC", "O", number=3), judged("B-PER", "O", number=4)
    one.probabilities[0] = [0.9, 0.1, 0.0, 0.0, 0.0]
    other.probabilities[0] = [0.9, 0.0, 0.0, 0.1, 0.0]
    found = rank_suspects([*unsure, other, one, *sure])
    assert [each.number for each in found[:2]] == [3, 4]
    assert found[0].given_probability == pytest.approx(found[1].given_probability)
    [plain] = doubts.suspects_of(one, usual)
    assert plain.doubt == pytest.approx(np.log(0.9 / usual["O"]) - np.log(0.1 / usual["B-LOC"]))


def test_as_json() -> None:
    [suspect] = suspects_of(judged("O B-LOC I-LOC", "O B-LOC O", number=7))
    record = suspect.to_dict()
    assert (record["file"], record["line"], record["sentence"], record["id"]) == ("f.conll", 11, 7, 7)
    assert record["given"] == {"type": "LOC", "start": 1, "end": 3, "text": "w1 w2"}
    assert record["alternative"] == {"type": "LOC", "start": 1, "end": 2, "text": "w1"}
    assert (record["text"], record["kind"]) == ("w1 w2", "other edges")
    assert (record["words"], record["tags"]) == (["w0", "w1", "w2"], ["O", "B-LOC", "I-LOC"])
