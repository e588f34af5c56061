"""Forecasts: what is planned is what happens, and a run does not notice that it was rehearsed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sequst.api import resume, train
from sequst.corpus.sampling import Split
from sequst.corpus.sentence import Sentence
from sequst.methods import pseudo_labels
from sequst.methods.forecast import Costs, _Cost, foretell
from sequst.methods.registry import METHODS
from sequst.training.configure import load_settings
from sequst.training.progress import Counted, Planned, Progress
from sequst.training.settings import Settings

BRIEF: dict[str, Any] = {
    "teacher": {"min_steps": 60, "epochs": 1},
    "student": {"min_steps": 30, "epochs": 1},
    "retune": {"min_steps": 20, "epochs": 1},
    "uncertainty": {"passes": 3},
    "adaptation": {"epochs": 1},
    "max_rounds": 2,
}


class Heard(Counted):
    """Keeps what was planned, what happened, and the notes."""

    def __init__(self) -> None:
        self.planned: Sequence[Planned] = []
        self.happened: list[str] = []
        self.notes: list[str] = []
        self.seconds = 0.0

    def expect(self, planned: Sequence[Planned]) -> None:
        super().expect(planned)
        self.planned, self.seconds = planned, time.monotonic()

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        super().begin(phase, total, done, unit)
        self.happened.append(phase)

    def end(self) -> None:
        self.ended = time.monotonic()

    def note(self, message: str, detail: bool = False) -> None:
        self.notes.append(message)


def learn(split: Split, encoder: str, output: Path, **options: Any) -> tuple[Heard, Any]:
    heard = Heard()
    sources = {"unlabeled": split.unlabeled[:200], "dev": split.dev}
    result = train(split.labeled, output, **{**sources, **BRIEF, "encoder": encoder, "progress": heard, **options})
    return heard, result


@pytest.mark.parametrize("method", METHODS)
def test_what_is_planned_is_what_happens(method: str, split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    heard, _ = learn(split, tiny_encoder, tmp_path / "run", method=method)
    assert not [note for note in heard.notes if "no forecast" in note]
    assert [each.phase for each in heard.planned] == heard.happened
    assert all(each.seconds > 0 for each in heard.planned)


def test_a_teacher_that_finds_nothing_yet_is_no_hindrance(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is rehearsed with a teacher of some steps is planned all the same."""
    monkeypatch.setattr("sequst.methods.forecast.STEPS", 60)
    labeled = [*split.labeled, *(Sentence(each.words, ("O",) * len(each.words)) for each in split.unlabeled[200:])]
    heard = Heard()
    monkeypatch.setattr("sequst.api._learn", lambda run, method: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train(labeled, tmp_path / "run", unlabeled=split.unlabeled[:200], encoder=tiny_encoder, method="sst", progress=heard)
    assert "round 1: retune" in [each.phase for each in heard.planned]


def test_with_several_teachers_that_read_the_text_first(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    options = {"adapt": True, "ensemble": {"teachers": 2, "students": 2}}
    heard, _ = learn(split, tiny_encoder, tmp_path / "run", method="sequst", **options)
    assert [each.phase for each in heard.planned] == heard.happened
    assert heard.happened[:4] == ["adaptation", "teacher", "teacher-2", "round 1: beliefs"]
    assert heard.happened[-2:] == ["round 2: student-2", "round 2: retune-2"]


@pytest.mark.parametrize(
    ("encoder", "options"),
    [
        ("tiny", {"method": "sequst"}),
        ("tiny", {"method": "cvt"}),
        ("tiny", {"method": "sst", "adapt": True}),
        ("bilstm", {"method": "cvt"}),
    ],
)
def test_a_run_does_not_notice_its_rehearsal(
    encoder: str, options: dict[str, Any], split: Split, tiny_encoder: str, tmp_path: Path
) -> None:
    encoder = tiny_encoder if encoder == "tiny" else encoder
    _, with_one = learn(split, encoder, tmp_path / "a", **options)
    _, without = learn(split, encoder, tmp_path / "b", progress=None, **options)
    first, second = (result.tagger.state_dict() for result in (with_one, without))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("overrides", "text", "seconds"),
    [
        ([], 4000, 60 + 4 * (40 + 104 + 20)),
        ([], 40_000, 60 + 4 * (40 + 104 + 20)),  # text beyond a round's takes nothing
        (["max_rounds=1"], 4000, 60 + 40 + 104 + 20),
        (["student.min_steps=1000"], 4000, 60 + 4 * (40 + 204 + 20)),
        (["teacher.max_steps=100"], 4000, 10 + 4 * (40 + 104 + 20)),
        (["ensemble.teachers=3", "ensemble.students=2"], 4000, 180 + 120 + 3 * 80 + 8 * (104 + 20)),
        (["round_size=0"], 40_000, 60 + 4 * (400 + 1040 + 20)),
    ],
)
def test_steps_text_and_rounds_are_counted(overrides: list[str], text: int, seconds: float) -> None:
    """With a tenth of a second for a labelled step, a fifth for a student's, a hundredth for beliefs about a sentence."""
    own = Settings()
    phases = {
        "teacher": _Cost(own.teacher, windows=1.0, step=0.1, score=0.0, sentence=0.0, once=0.0),
        "student": _Cost(own.student, windows=1.0, step=0.2, score=0.0, sentence=0.001, once=0.0),
        "retune": _Cost(own.retune, windows=1.0, step=0.1, score=0.0, sentence=0.0, once=0.0),
    }
    planned = Costs(own, 40, text, phases, belief=0.01).plan(load_settings(None, overrides))
    assert sum(each.seconds for each in planned) == pytest.approx(seconds)


def test_a_run_takes_about_as_long_as_was_said(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    """Within a factor of five: other tests run beside it. benchmarks/efforts.py measures it on an idle machine."""
    heard, _ = learn(split, tiny_encoder, tmp_path / "run", teacher={"min_steps": 300}, student={"min_steps": 200})
    took, said = heard.ended - heard.seconds, sum(each.seconds for each in heard.planned)
    assert said / 5 < took < said * 5


def test_a_resumed_run_is_told_of_what_is_left(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def stopped(*arguments: Any, **options: Any) -> Any:
        begun.append("")
        if len(begun) == 2:
            raise KeyboardInterrupt
        return form(*arguments, **options)

    form = pseudo_labels.form_beliefs
    monkeypatch.setattr(pseudo_labels, "form_beliefs", stopped)
    with pytest.raises(KeyboardInterrupt):
        learn(split, tiny_encoder, tmp_path / "run", method="sst", progress=None)
    heard = Heard()
    resume(tmp_path / "run", heard)
    assert [each.phase for each in heard.planned] == heard.happened
    assert heard.happened == ["round 2: beliefs", "round 2: student", "round 2: retune"]


def test_shorter_efforts_are_named(split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(**options: Any) -> str:
        heard = Heard()
        monkeypatch.setattr("sequst.api._learn", lambda run, method: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(
                split.labeled,
                tmp_path / str(options),
                unlabeled=split.unlabeled,
                encoder=tiny_encoder,
                progress=heard,
                **options,
            )
        (note,) = (note for note in heard.notes if note.startswith("training takes about"))
        return note

    assert "--effort quick: " in told()
    assert "--effort default" not in told(method="sst")
    assert "(" not in told(effort="quick")


def test_a_forecast_is_not_worth_a_run(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr("sequst.methods.forecast.rehearse", broken)
    heard, result = learn(split, tiny_encoder, tmp_path / "run", method="finetune")
    assert "no forecast could be made (ValueError: no)" in heard.notes
    assert result.summary["dev_f1"] is not None


def test_whoever_shows_nothing_is_asked_for_nothing() -> None:
    foretell(SimpleNamespace(progress=Progress()), METHODS["finetune"])  # type: ignore[arg-type]
