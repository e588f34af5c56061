from __future__ import annotations

from pathlib import Path

import pytest

from sequst.corpus.sentence import sentence_from_text
from sequst.studio import desk as desks
from sequst.studio.desk import WHY_JUDGING, WHY_SECOND, Desk
from sequst.studio.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.add_text([sentence_from_text(f"sentence number {number}") for number in range(200)], "texts")
    made.change_types({"op": "add", "name": "number"}, "")
    return made


def answer(project: Project, desk: Desk, who: str, tab: str = "") -> desks.Given:
    given = desk.next(who, tab)
    assert given is not None
    project.label(given.sentence, who, [("number", 2, 3)])
    desk.done(given.sentence)
    return given


def test_a_fifth_is_for_judging_whatever_the_queue_says(project: Project) -> None:
    desk = Desk(project)
    raw = [row["id"] for row in project.database.reading.execute("SELECT id FROM sentences ORDER BY id")]
    project.put_in_queue([(id_, f"why {id_}", [["number", 2, 3, 0.7]]) for id_ in raw], 0)
    given = [answer(project, desk, "ann") for _ in range(50)]
    judging = [each for each in given if project.row(each.sentence)["judging"]]
    assert len(judging) == 10
    assert all(each.why == WHY_JUDGING and not each.suggestions for each in judging)
    others = [each for each in given if each not in judging]
    drawn = {each.sentence for each in judging}
    assert [each.sentence for each in others] == [id_ for id_ in raw if id_ not in drawn][:40]
    assert others[0].suggestions == [{"type": "number", "start": 2, "end": 3, "confidence": 0.7}]


def test_judging_sentences_are_a_random_draw_of_all(project: Project) -> None:
    """They come in the order of a hash of their words, and nothing that is chosen is taken from before them."""
    desk = Desk(project)
    given = [answer(project, desk, "ann").sentence for _ in range(50)]
    judging = [id_ for id_ in given if project.row(id_)["judging"]]
    by_draw = [row["id"] for row in project.database.reading.execute("SELECT id FROM sentences ORDER BY draw")]
    assert judging == by_draw[:10]
    assert not {sentence.id for sentence in project.raw(200)} & set(by_draw[:20])


def test_what_was_kept_for_judging_is_learnt_when_nothing_else_is_left(project: Project) -> None:
    desk = Desk(project)
    given = [answer(project, desk, "ann") for _ in range(200)]
    assert len({each.sentence for each in given}) == 200
    assert project.counts()["judging"] == 40


def test_a_tab_keeps_its_sentence_and_two_never_share_one(project: Project) -> None:
    desk = Desk(project)
    first, second, bob = (desk.next(who, tab) for who, tab in (("ann", "1"), ("ann", "2"), ("bob", "1")))
    assert first is not None
    assert second is not None
    assert bob is not None
    assert len({first.sentence, second.sentence, bob.sentence}) == 3
    assert desk.next("ann", "1") == first
    assert desk.next("ann", "2") == second
    assert desk.people == {"ann", "bob"}


def test_who_gives_a_name_keeps_the_sentence(project: Project) -> None:
    desk = Desk(project)
    shown = desk.next(desks.ANYBODY, "1")
    assert desk.next("ann", "1") == shown
    assert desk.people == {"ann"}
    assert desk.next("ann", "2") != shown


def test_a_sentence_that_nobody_answers_is_free_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(project)
    now = [0.0]
    monkeypatch.setattr(desks.time, "monotonic", lambda: now[0])
    first = desk.next("ann", "1")
    now[0] = desks.LEASE - 1
    assert desk.next("bob", "1") != first
    now[0] = desks.LEASE + 1
    assert desk.next("eve", "1") == first
    assert desk.next("ann", "1") != first


def test_what_another_tab_answered_is_not_given_again(project: Project) -> None:
    desk = Desk(project)
    first = desk.next("ann", "1")
    assert first is not None
    project.label(first.sentence, "ann", [])
    assert desk.next("ann", "1") != first


def test_two_people_get_the_same_judging_sentences_now_and_then(project: Project) -> None:
    desk = Desk(project)
    project.change_settings({"agreement_share": 0.9}, "")
    for _ in range(50):
        answer(project, desk, "ann")
    given = [answer(project, desk, "bob") for _ in range(30)]
    second = [each for each in given if each.second]
    assert 5 <= len(second) <= 10  # at most one of three, of the nine or so that are shared
    assert all(project.row(each.sentence)["judging"] and each.why == WHY_SECOND and not each.suggestions for each in second)
    assert all(len(project.answers(each.sentence)) == 2 for each in second)
    assert not any(given[place].second and given[place + 1].second for place in range(29))


def test_one_person_alone_is_asked_nothing_twice(project: Project) -> None:
    desk = Desk(project)
    project.change_settings({"agreement_share": 0.9}, "")
    given = [answer(project, desk, "ann").sentence for _ in range(200)]
    assert len(set(given)) == 200
    assert desk.next("ann", "") is None


def test_suggestions_have_the_names_that_types_have_now(project: Project) -> None:
    project.change_settings({"judging_share": 0}, "")
    project.change_types({"op": "add", "name": "word"}, "")
    event = project.last_event()
    project.put_in_queue([(1, "why", [["number", 2, 3, 0.7], ["word", 0, 1, 0.6]])], event)
    project.change_types({"op": "rename", "name": "number", "to": "count"}, "ann")
    project.change_types({"op": "delete", "name": "word"}, "ann")
    given = Desk(project).next("ann", "")
    assert given is not None
    assert given.suggestions == [{"type": "count", "start": 2, "end": 3, "confidence": 0.7}]
