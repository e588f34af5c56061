"""A model folder of version 0.1 tags as it did; what was saved then is written here as that version named it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.tagger.test_tagger import LABELS, SENTENCES, random_tagger

from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.tagger import Tagger

CALIBRATION = EntityCalibration(1.1, 0.2, (("X", -0.3), ("Y", 0.4)), 0.8)
TRANSITIONS = {"O O": 0.4, "O B": -0.3, "B O": 0.2, "B I": -0.6, "I I": 0.1}


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_names_of_version_0_1_are_read(tiny_encoder: str, tmp_path: Path, head: str) -> None:
    tagger = random_tagger(tiny_encoder, head=head, valid=True, transitions=TRANSITIONS if head == "softmax" else {})
    assert tagger.labels == LABELS
    tagger.entity_calibration = CALIBRATION
    tagger.save(tmp_path)
    before = Tagger.load(tmp_path).predict(SENTENCES)
    assert any(prediction.left_out for prediction in before)
    path = tmp_path / "sequst.json"
    facts = json.loads(path.read_text())
    trust = facts.pop("entity_calibration")
    facts["trust"] = {**trust, "least": trust.pop("threshold")}
    if head == "softmax":
        facts["successions"] = facts.pop("transitions")
    path.write_text(json.dumps({**facts, "sequst": "0.1.0"}))
    assert Tagger.load(tmp_path).predict(SENTENCES) == before
