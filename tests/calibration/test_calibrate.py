from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.test_api import Heard

from sequst.api import Result, train
from sequst.calibration.calibrate import FEWEST, SMALL, TOO_FEW, calibrate, faded, fit_temperature
from sequst.calibration.entities import abstention_threshold, describe_abstention, entity_outcomes, fit_entity_calibration
from sequst.calibration.reliability import expected_calibration_error, reliability
from sequst.corpus.sampling import Split
from sequst.errors import SequstError, UsageError
from sequst.evaluation.evaluate import evaluate
from sequst.tagger.entity_calibration import EntityCalibration, logit
from sequst.tagger.predict import annotate
from sequst.tagger.tagger import Tagger
from sequst.training.settings import Settings


def test_the_confidence_of_an_entity_by_hand() -> None:
    assert EntityCalibration().confidence([0.9, 0.5], "X") == pytest.approx(0.7)
    assert EntityCalibration(2.0, 0.0).confidence([0.8], "X") == pytest.approx(0.64 / (0.64 + 0.04))
    assert EntityCalibration(1.0, logit(0.5)).confidence([0.3], "X") == pytest.approx(0.3)
    assert 0.0 < EntityCalibration(3.0, 1.0).confidence([0.0], "X") < EntityCalibration(3.0, 1.0).confidence([1.0], "X") <= 1.0
    hard = EntityCalibration(1.0, 0.0, (("X", -logit(0.8)),))
    assert hard.confidence([0.8], "X") == pytest.approx(0.5)
    assert hard.confidence([0.8], "Y") == pytest.approx(0.8)


def test_it_is_written_and_read() -> None:
    for trust in (
        EntityCalibration(),
        EntityCalibration(1.5, -0.25, (("X", 0.5), ("Y", -1.0))),
        EntityCalibration(threshold=0.25),
    ):
        assert EntityCalibration.from_dict(json.loads(json.dumps(trust.to_dict()))) == trust
    assert EntityCalibration.from_dict({"slope": 2.0, "intercept": 1.0}) == EntityCalibration(
        2.0, 1.0
    )  # before there were types


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.5, -1.0), (2.0, 0.7)])
def test_what_was_stretched_and_shifted_is_found_again(slope: float, intercept: float) -> None:
    rng = np.random.default_rng(1)
    confidences = rng.uniform(0.02, 0.98, 30_000)
    types = rng.choice(["X", "Y"], len(confidences)).tolist()
    true = EntityCalibration(slope, intercept, (("X", 0.4), ("Y", -0.4)))
    correct = rng.random(len(confidences)) < [true.confidence([c], type_) for c, type_ in zip(confidences, types, strict=True)]
    found = fit_entity_calibration(types, confidences.tolist(), correct.tolist())
    assert found.slope == pytest.approx(slope, abs=0.06)
    shifts = dict(found.types)
    assert {type_: found.intercept + shifts[type_] for type_ in "XY"} == pytest.approx(
        {"X": intercept + 0.4, "Y": intercept - 0.4}, abs=0.06
    )


def test_little_evidence_moves_it_little() -> None:
    assert fit_entity_calibration([], [], []) == EntityCalibration()
    once = fit_entity_calibration(["X"], [0.9], [False])
    assert 0.0 < once.slope < 1.0
    assert -1.0 < once.intercept < 0.0
    assert fit_entity_calibration(["X"] * 400, [0.9, 0.1] * 200, [False, True] * 200).slope == 0.0  # never the other way round
    sure = fit_entity_calibration(["X"] * 500, [1.0] * 500, [True] * 500)
    assert np.isfinite([sure.slope, sure.intercept, dict(sure.types)["X"]]).all()
    rare = dict(fit_entity_calibration(["X"] * 200 + ["Y"], [0.7] * 201, [True] * 140 + [False] * 61).types)
    assert -1.0 < rare["Y"] < 0.0 < rare["X"] + 0.5


OPTIMISM = Settings().calibration_shift
SHORT = {"min_steps": 120, "epochs": 1, "learning_rate": 1e-3}


@pytest.fixture(scope="module", params=["softmax", "crf"])
def pair(request: pytest.FixtureRequest, split: Split, tiny_encoder: str, tmp_path_factory: Any) -> tuple[Result, Result]:
    folder = tmp_path_factory.mktemp(request.param)
    options = {
        "dev": split.dev,
        "encoder": tiny_encoder,
        "teacher": SHORT,
        "head": request.param,
        "abstain": False,
        "head_rate": 3.0,
        "evaluations": 2,
    }
    plain, calibrated = (train(split.labeled, folder / f"{each}", calibrate=each, **options) for each in (False, True))
    return plain, calibrated


def test_training_ends_with_it_and_changes_no_tag(pair: tuple[Result, Result], split: Split) -> None:
    plain, calibrated = pair
    assert plain.summary["calibration"] is None
    found = calibrated.summary["calibration"]
    assert found["temperature"] > 0
    assert plain.summary["dev_f1"] == calibrated.summary["dev_f1"]
    sentences = split.unlabeled[:200]
    tags = [[p.tags for p in each.tagger.predict(sentences)] for each in pair]  # type: ignore[union-attr]
    assert tags[0] == tags[1]
    before, after = (evaluate(each.tagger, sentences).ece for each in pair)
    assert before is not None
    assert after is not None
    if before > 15.0:  # what is not far off cannot be put right with so few
        assert after < before


def test_it_is_saved_and_found_again(pair: tuple[Result, Result], split: Split, tmp_path: Path) -> None:
    _, calibrated = pair
    facts = json.loads((calibrated.path / "model" / "sequst.json").read_text())
    assert facts["entity_calibration"] == {
        name: calibrated.summary["calibration"][name] for name in ("slope", "intercept", "types", "threshold")
    }
    tagger = calibrated.tagger
    tagger.save(tmp_path / "again")
    first, again = (
        entity_outcomes(annotate(each, split.dev)).confidences for each in (tagger, Tagger.load(tmp_path / "again"))
    )
    assert first == pytest.approx(again, abs=1e-4)
    for trust in (
        {"slope": "steep"},
        {"slope": -1.0},
        {"intercept": float("nan")},
        {"types": {"X": "much"}},
        {"types": 3},
        {"threshold": 1.5},
        {"threshold": "most"},
        [1, 2],
    ):
        (tmp_path / "again" / "sequst.json").write_text(json.dumps({**facts, "entity_calibration": trust}))
        with pytest.raises(SequstError, match="damaged or not written by sequst"):
            Tagger.load(tmp_path / "again")


def test_the_dev_set_itself_is_met_but_for_its_optimism(pair: tuple[Result, Result], split: Split) -> None:
    _, calibrated = pair
    tagger = calibrated.tagger
    _, confidences, correct = entity_outcomes(annotate(tagger, split.dev))
    assert FEWEST <= len(correct) <= SMALL
    assert calibrated.summary["calibration"]["calibration_shift"] == OPTIMISM > 0
    assert np.mean(confidences) < np.mean(correct)
    as_fitted = [EntityCalibration(1.0, OPTIMISM).confidence([each], "") for each in confidences]
    assert np.mean(as_fitted) == pytest.approx(np.mean(correct), abs=0.05)
    assert expected_calibration_error(reliability(as_fitted, correct, 3)) < 12.0  # type: ignore[operator]
    tagger.entity_calibration, kept = EntityCalibration(), tagger.entity_calibration
    fitted = fit_entity_calibration(*entity_outcomes(annotate(tagger, split.dev)))
    tagger.entity_calibration = kept
    assert kept.intercept == pytest.approx(fitted.intercept - OPTIMISM, abs=1e-3)
    assert kept.slope == pytest.approx(fitted.slope, abs=1e-3)
    assert dict(kept.types) == pytest.approx(dict(fitted.types), abs=1e-3)


def test_a_large_dev_set_has_the_last_word() -> None:
    assert faded(0.3, 1) == faded(0.3, SMALL) == 0.3
    assert faded(0.3, 10 * SMALL) == pytest.approx(0.03)


def test_the_shift_can_be_left_out(pair: tuple[Result, Result], split: Split) -> None:
    with pytest.raises(UsageError, match=r"calibration_shift=-0\.1: must be at least 0"):
        Settings(calibration_shift=-0.1)
    _, calibrated = pair
    tagger = Tagger.load(calibrated.path / "model")
    flattered = calibrate(tagger, split.dev)
    assert flattered is not None
    assert flattered["calibration_shift"] == 0.0
    assert tagger.entity_calibration.intercept == pytest.approx(
        calibrated.tagger.entity_calibration.intercept + OPTIMISM, abs=1e-2
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=12, unique=True), st.integers(12, 20))
def test_what_is_left_out_is_what_expected_f1_is_best_without(confidences: list[float], there: int) -> None:
    def expected(kept: list[float]) -> float:
        return 2 * sum(kept) / (len(kept) + there)

    least = abstention_threshold(confidences, there)
    assert least <= 0.5  # never what is more likely right than wrong
    kept = [each for each in confidences if each >= least]
    best = max(expected(sorted(confidences)[number:]) for number in range(len(confidences) + 1))
    assert expected(kept) == pytest.approx(best)


def test_nothing_found_leaves_nothing_out() -> None:
    assert abstention_threshold([], 5) == 0.0
    assert abstention_threshold([0.9] * 20, 5) == 0.5  # of which there cannot be so many


def test_training_ends_with_what_to_leave_out(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"dev": split.dev, "encoder": tiny_encoder, "teacher": SHORT, "head_rate": 3.0, "evaluations": 2}
    progress = Heard()
    all_ = train(split.labeled, tmp_path / "all", abstain=False, **options)
    abstaining = train(split.labeled, tmp_path / "abstaining", progress=progress, **options)
    found = abstaining.summary["calibration"]
    left_out = sum(len(prediction.left_out) for prediction in annotate(abstaining.tagger, split.dev))
    assert f"are left out ({left_out} of {found['entities']} on the dev set" in "".join(progress.heard)
    assert 0.0 < found["threshold"] < 0.5
    assert all_.summary["calibration"] == {**found, "threshold": 0.0}
    everything, settled = (each.tagger.predict(split.unlabeled[:300]) for each in (all_, abstaining))
    assert isinstance(everything, list)
    assert isinstance(settled, list)
    assert any(each.left_out for each in settled)
    for before, after in zip(everything, settled, strict=True):
        kept = [entity for entity in before.entities if entity.confidence >= found["threshold"]]
        assert [entity[:4] for entity in after.entities] == [entity[:4] for entity in kept]
        assert sorted([*after.entities, *after.left_out], key=lambda each: each.start) == before.entities
    shown = Tagger.load(abstaining.path / "model", min_confidence=0.0).predict(split.unlabeled[:300])
    assert [each.tags for each in shown] == [each.tags for each in everything]  # type: ignore[union-attr]
    without_dev = train(split.labeled, tmp_path / "no dev", encoder=tiny_encoder, teacher=SHORT, head_rate=3.0)
    assert without_dev.tagger.entity_calibration == EntityCalibration()


def test_what_is_left_out_is_told() -> None:
    types, confidences = ["X", "Y", "X", "Y"], [0.1, 0.2, 0.2, 0.9]
    told = describe_abstention(types, confidences, 0.3)
    assert told is not None
    assert "entities below 0.30 are left out (3 of 4 on the dev set, among them every X)" in told
    assert describe_abstention(types, confidences, 0.1) is None


def test_too_few_entities_say_nothing(split: Split, tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X"], seed=1)
    weights = {name: value.clone() for name, value in tagger.state_dict().items()}
    heard: list[str] = []
    assert calibrate(tagger, split.dev[:1], note=heard.append) is None
    assert heard == [TOO_FEW]
    assert all(torch.equal(value, weights[name]) for name, value in tagger.state_dict().items())
    assert tagger.entity_calibration == EntityCalibration()


def test_a_dev_set_that_is_too_small_is_told(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    progress, brief = Heard(), {**SHORT, "min_steps": 20}
    result = train(split.labeled, tmp_path / "run", dev=split.dev[:3], encoder=tiny_encoder, teacher=brief, progress=progress)
    assert result.summary["calibration"] is None
    assert TOO_FEW in progress.heard
    assert result.tagger.entity_calibration == EntityCalibration()
    assert "not calibrated" in (result.path / "model" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_scores_that_are_off_by_a_factor_are_put_right(temperature: float) -> None:
    generator = torch.Generator().manual_seed(1)
    scores = 2.0 * torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(scores, -1), 1, generator=generator)[:, 0].tolist()
    names = ["O", "B-X", "I-X", "B-Y"]
    tags = [names[label] if place % 5 else "B-NEW" for place, label in enumerate(labels)]  # a type that it does not know
    assert fit_temperature(torch.softmax(scores, -1).float().numpy(), ["B-new"] * len(tags), names) == 1.0
    found = fit_temperature(torch.softmax(scores * temperature, -1).float().numpy(), tags, names)
    assert found == pytest.approx(temperature, rel=0.05)
