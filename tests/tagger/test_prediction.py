from __future__ import annotations

import pytest

from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.prediction import Prediction
from sequst.uncertainty.predict import UncertainPrediction

SENTENCE = Sentence(("Anna", "Bell", "saw", "Rome"))
TAGS, SURE = ("B-PER", "I-PER", "O", "B-LOC"), (0.9, 0.7, 0.95, 0.3)


def test_entities_below_the_least_are_left_out() -> None:
    found = Prediction(SENTENCE, TAGS, SURE, EntityCalibration(threshold=0.4)).cut()
    assert found.tags == ("B-PER", "I-PER", "O", "O")
    assert found.confidences == pytest.approx((0.9, 0.7, 0.95, 0.7))  # as sure of O as of not being the tag
    assert [entity.text for entity in found.entities] == ["Anna Bell"]
    [rome] = found.left_out
    assert (rome.type, rome.start, rome.end, rome.text) == ("LOC", 3, 4, "Rome")
    assert rome.confidence == pytest.approx(0.3)
    record = found.to_dict()
    assert record["tags"] == ["B-PER", "I-PER", "O", "O"]
    assert [entity["text"] for entity in record["left_out"]] == ["Rome"]
    assert record["entities"][0].keys() == record["left_out"][0].keys()


def test_all_are_told_where_nothing_is_asked_for() -> None:
    found = Prediction(SENTENCE, TAGS, SURE, EntityCalibration()).cut()
    assert (found.tags, found.left_out) == (TAGS, ())
    assert "left_out" not in found.to_dict()
    at_the_edge = Prediction(SENTENCE, TAGS, SURE, EntityCalibration(threshold=0.3)).cut()
    assert (at_the_edge.tags, at_the_edge.to_dict()["left_out"]) == (TAGS, [])


def test_whole_entities_by_their_own_confidence() -> None:
    trust = EntityCalibration(1.0, 0.0, (("PER", -3.0),), threshold=0.25)  # of which type it is counts too
    found = Prediction(SENTENCE, TAGS, SURE, trust).cut()
    assert found.tags == ("O", "O", "O", "B-LOC")
    assert found.left_out[0].text == "Anna Bell"


def test_with_what_mc_dropout_says() -> None:
    more = {"mc_confidences": (0.8, 0.6, 0.9, 0.2), "information_gains": (0.1, 0.2, 0.0, 0.5)}
    found = UncertainPrediction(SENTENCE, TAGS, SURE, EntityCalibration(threshold=0.4), **more).cut()
    assert isinstance(found, UncertainPrediction)
    assert found.mc_confidences == pytest.approx((0.8, 0.6, 0.9, 0.8))
    record = found.to_dict()
    [rome], [anna] = record["left_out"], record["entities"]
    assert (rome["mc_confidence"], rome["information_gain"]) == (0.2, 0.5)
    assert anna["mc_confidence"] == pytest.approx(0.7)
    assert record["confidence"] == pytest.approx([0.8, 0.6, 0.9, 0.8])


def test_what_is_asked_for_goes_before_what_training_found() -> None:
    learnt = EntityCalibration(2.0, 0.5, (("X", 1.0),), 0.35)
    assert learnt.asked_for(raw_tags=False, min_confidence=None) == learnt
    assert learnt.asked_for(raw_tags=True, min_confidence=None) == learnt._replace(threshold=0.0)
    assert learnt.asked_for(raw_tags=True, min_confidence=0.7) == learnt._replace(threshold=0.7)
    assert learnt.asked_for(raw_tags=False, min_confidence=0.0).threshold == 0.0
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match=r"min_confidence .*: must be at least 0 and at most 1"):
            learnt.asked_for(raw_tags=False, min_confidence=bad)
