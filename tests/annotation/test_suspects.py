from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.annotation import suspects
from sequst.annotation.suspects import find_suspects, judge
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Span
from sequst.errors import SequstError, UsageError
from sequst.tagger.tagger import Tagger
from sequst.training.configure import from_dict
from sequst.training.progress import Progress

PEOPLE = ("Anna", "Victoria", "Jordan", "Sofia", "Diego", "Carmen")
PLACES = ("Oslo", "Lisbon", "Paris", "Lima", "Kyoto", "Ghent")
PHRASINGS = ("{0} is flying to {1} .", "{0} lost a passport in {1} .", "The audience in {1} loved {0} .")
SHORT = {"min_steps": 1, "epochs": 0.01}


def sentence(phrasing: str, person: str, place: str) -> Sentence:
    words = phrasing.format(person, place).split()
    tags = ["B-person" if word == person else "B-place" if word == place else "O" for word in words]
    return Sentence(tuple(words), tuple(tags))


EASY = [sentence(phrasing, person, place) for phrasing in PHRASINGS for person in PEOPLE for place in PLACES]


def test_planted_wrong_labels_come_first(tiny_encoder: str) -> None:
    planted = {  # the right entity and the one that is given, in the same word
        20: (Span("place", 4, 5), Span("person", 4, 5)),
        40: (Span("place", 5, 6), None),
        75: (None, Span("person", 2, 3)),
    }
    labeled = list(EASY)
    for at, (right, given) in planted.items():
        tags = list(labeled[at].tags or ())
        word = next(span.start for span in (right, given) if span is not None)
        assert tags[word] == ("O" if right is None else f"B-{right.type}")
        tags[word] = "O" if given is None else f"B-{given.type}"
        labeled[at] = dataclasses.replace(labeled[at], tags=tuple(tags))
    phase = {"min_steps": 120, "learning_rate": 3e-3}
    found = find_suspects(labeled, folds=2, encoder=tiny_encoder, device="cpu", teacher=phase)
    first = {each.number - 1: (each.alternative, each.given) for each in found[:3]}
    assert first == planted
    assert all(each.doubt > 0.5 for each in found[:3])
    assert found == sorted(found, key=lambda each: -each.doubt)


def test_no_tagger_judges_what_it_has_learnt(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of a sentence included."""
    labeled = [*EASY[:20], *EASY[:5]]
    learnt: list[set[tuple[str, ...]]] = []
    train: Callable[..., Any] = suspects.train

    def watched(sentences: list[Sentence], *arguments: Any, **more: Any) -> Any:
        learnt.append({each.words for each in sentences})
        return train(sentences, *arguments, **more)

    judged: list[set[tuple[str, ...]]] = []
    form_beliefs: Callable[..., Any] = suspects.form_beliefs

    def asked(tagger: Tagger, sentences: list[Sentence], *arguments: Any, **more: Any) -> Any:
        judged.append({each.words for each in sentences})
        return form_beliefs(tagger, sentences, *arguments, **more)

    monkeypatch.setattr(suspects, "train", watched)
    monkeypatch.setattr(suspects, "form_beliefs", asked)
    settings = from_dict({"encoder": tiny_encoder, "device": "cpu", "teacher": SHORT})
    found = judge(labeled, 3, settings, Progress())
    assert [each.sentence for each in found] == labeled
    assert [each.number for each in found] == list(range(1, 26))
    assert len(learnt) == len(judged) == 3
    for one, other in zip(learnt, judged, strict=True):
        assert not one & other
        assert one | other == {each.words for each in labeled}


class Heard(Progress):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.phases: list[str] = []

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self.phases.append(phase)

    def note(self, message: str, detail: bool = False) -> None:
        if not detail:
            self.notes.append(message)


def test_a_type_of_one_fold_is_told_and_not_judged(tiny_encoder: str) -> None:
    once = Sentence(("We", "play", "Egmont"), ("O", "O", "B-work"))
    heard = Heard()
    found = find_suspects([*EASY[:9], once], folds=2, progress=heard, encoder=tiny_encoder, device="cpu", teacher=SHORT)
    assert heard.notes == ["type work is in one fold only, so its labels cannot be judged"]
    assert heard.phases == ["fold 1 of 2: teacher", "fold 2 of 2: teacher"]
    assert not any(each.given == Span("work", 2, 3) for each in found)


def test_sentences_marked_for_judging_are_judged_like_others(tiny_encoder: str) -> None:
    settings = from_dict({"encoder": tiny_encoder, "device": "cpu", "teacher": SHORT})
    marked = [dataclasses.replace(each, judging=True) for each in EASY[:6]]
    assert [each.sentence for each in judge(marked, 2, settings, Progress())] == marked


def test_nothing_stays_behind(tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    find_suspects(EASY[:6], folds=2, encoder=tiny_encoder, device="cpu", teacher=SHORT)
    assert not list(tmp_path.iterdir())


def test_a_fold_that_diverges_names_no_folder_that_is_gone(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    loss: Callable[..., Any] = Tagger.loss

    def blows_up(*arguments: Any) -> Any:
        taken.append(1)
        return loss(*arguments) * (float("nan") if len(taken) == 9 else 1)

    monkeypatch.setattr(Tagger, "loss", blows_up)
    phase = {"min_steps": 24, "epochs": 1}
    with pytest.raises(SequstError) as stop:
        find_suspects(EASY[:20], folds=2, encoder=tiny_encoder, device="cpu", teacher=phase)
    first, advice = str(stop.value).splitlines()
    assert first == "fold 1 of 2: phase teacher of round 0: the loss is not finite at step 9 of 24"
    assert advice.startswith("Begin a new run with a lower rate, e.g. --set teacher.learning_rate=")
    assert tempfile.gettempdir() not in str(stop.value)


def test_what_cannot_be_judged_is_an_error_before_any_training() -> None:
    with pytest.raises(SequstError, match="3 different sentences are too few for 5 folds"):
        find_suspects([*EASY[:3], *EASY[:3]])
    with pytest.raises(SequstError, match="fewer than two different sentences have an entity"):
        find_suspects([EASY[0], *(dataclasses.replace(each, tags=("O",) * len(each)) for each in EASY[1:9])])
    with pytest.raises(SequstError, match="fewer than two different sentences have an entity"):
        find_suspects([dataclasses.replace(each, tags=("O",) * len(each)) for each in EASY[1:9]])
    with pytest.raises(UsageError, match="give a file, or a list of Sentence with tags"):
        find_suspects([each.without_tags() for each in EASY])
    with pytest.raises(UsageError, match="method sst needs unlabelled text"):
        find_suspects(EASY, method="sst")
    with pytest.raises(UsageError, match=r"find_suspects\(\).*sed"):
        find_suspects(EASY, sed=4)
