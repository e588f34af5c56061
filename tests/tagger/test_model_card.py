from __future__ import annotations

import json
from pathlib import Path

from tests.methods.test_self_training import run

from sequst.corpus.sampling import Split
from sequst.tagger.model_card import model_card
from sequst.tagger.tagger import Tagger

FACTS = {"sequst": "1.0", "architecture": "transformer", "head": "softmax", "labels": ["O", "B-x", "I-x"], "max_length": 64}


def test_what_is_not_known_is_left_out() -> None:
    card = model_card(["x"], FACTS)
    assert card.startswith("---\nlibrary_name: transformers\n")
    assert "Entity types: x." in card
    assert "| max length | 64 |" in card
    for absent in ("## On the test set", "## Rounds", "## Confidences", "## Command", "IOB2 allows", "capital", "None"):
        assert absent not in card


def test_what_is_known_is_told() -> None:
    scores = {"precision": 50.0, "recall": 100.0, "f1": 66.667}
    test = {**scores, "types": {"x": scores}, "ece": 2.5, "sentences": 9, "f1_interval": [60.04, 71.0]}
    history = [{"round": 0, "teacher_f1": 60.0}, {"round": 1, "student_f1": 61.0, "teacher_f1": 62.55, "selected": 50.0}]
    calibration = {"temperature": 1.5, "slope": 0.8, "intercept": -0.25, "entities": 77}
    more = {"test": test, "history": history, "calibration": calibration, "valid": True, "command": "sequst train --seed 1"}
    card = model_card(["x"], {**FACTS, **more, "capitals": {"O": [0.5]}})
    assert "F1 66.67 (95 % bootstrap interval 60.0 to 71.0), of 9 sentences." in card
    assert "calibration error of entities is 2.5 %" in card
    assert "| x | 50.0 | 100.0 | 66.7 |\n| all | 50.0 | 100.0 | 66.7 |" in card
    assert "| 0 |  | 60.0 |  |\n| 1 | 61.0 | 62.5 | 50.0 |" in card
    assert "scores are divided by 1.50" in card
    assert "77 entities were found" in card
    assert "the best path that IOB2 allows" in card
    assert "sequst adds a capitalisation prior" in card
    assert "| capitals |" not in card
    assert "```sh\nsequst train --seed 1\n```" in card
    assert "from Python" not in model_card(["x"], {**FACTS, "command": "from Python"})


def test_a_run_puts_its_test_scores_into_the_card(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", "sst", max_rounds=1, test=split.unlabeled[60:100])
    card = (result.path / "model" / "README.md").read_text()
    assert f"F1 {result.summary['test']['f1']:.2f} (95 %" in card
    assert "## Rounds of self-training" in card
    facts = json.loads((result.path / "model" / "sequst.json").read_text())
    assert facts["test"]["f1"] == result.summary["test"]["f1"]
    low, high = facts["test"]["f1_interval"]
    assert low <= facts["test"]["f1"] <= high
    assert Tagger.load(result.path / "model").labels == facts["labels"]
