from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sequst.corpus.sentence import Sentence, sentence_from_text
from sequst.corpus.tags import Span
from sequst.errors import SequstError, UsageError
from sequst.studio.database import MIGRATIONS, Database
from sequst.studio.exports import add_file
from sequst.studio.project import FILE, Missing, Project
from sequst.studio.types import Type, after, changed

from .conftest import TEXTS, ids


def labels(project: Project, text: str) -> list[tuple[str, str]]:
    """(type, text) of each entity."""
    [sentence] = [each for each in project.labeled() if each.text == text]
    from sequst.corpus.tags import spans

    return [(span.type, sentence.excerpt(span.start, span.end)) for span in spans(sentence.tags or ())]


def test_what_is_labelled_is_there_after_opening_again(project: Project) -> None:
    first = ids(project)[TEXTS[0]]
    project.label(first, "ann", [("person", 0, 1), ("place", 3, 4)])
    again = Project(project.folder)
    assert labels(again, TEXTS[0]) == [("person", "Ada"), ("place", "Oslo")]
    assert again.counts() == {"sentences": 6, "raw": 5, "labeled": 1, "skipped": 0, "judging": 0, "differences": 0}
    assert again.types() == [Type("person", "1", 0), Type("place", "2", 1)]


def test_the_same_labels_twice_are_one_event(project: Project) -> None:
    first = ids(project)[TEXTS[0]]
    for _ in range(3):
        project.label(first, "ann", [("person", 0, 1)])
    assert len(project.history(first)) == 1
    project.label(first, "ann", [])
    project.label(first, "ann", [("person", 0, 1)])
    assert [each["entities"] for each in project.history(first)] == [
        [{"type": "person", "start": 0, "end": 1}], [], [{"type": "person", "start": 0, "end": 1}],
    ]  # fmt: skip


def test_events_can_be_neither_changed_nor_deleted(project: Project) -> None:
    project.skip(ids(project)[TEXTS[0]], "ann")
    for statement in ("UPDATE events SET who = 'eve'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="only appended"), project.database.writing() as connection:
            connection.execute(statement)


def test_a_sentence_comes_once(project: Project) -> None:
    assert project.add_text([sentence_from_text(TEXTS[0]), Sentence(("Ada", "flew", "to", "Oslo", "."))], "again") == (0, 2)
    assert project.add_text([Sentence(("Ada", "flew", "to", "Oslo."))], "other words") == (1, 0)


def test_words_that_our_rule_would_cut_otherwise_are_kept(project: Project) -> None:
    words = ("O'Hara's", "e-mail", "U.S.A", "!")
    project.add_labeled([Sentence(words, ("B-person", "O", "B-place", "O"), 7)], "given")
    [sentence] = project.labeled(as_given=True)
    assert (sentence.words, sentence.tags, sentence.id) == (words, ("B-person", "O", "B-place", "O"), 7)


def test_labels_of_a_file_do_not_replace_those_of_people(project: Project) -> None:
    first = ids(project)[TEXTS[0]]
    project.label(first, "ann", [("person", 0, 1)])
    tagged = sentence_from_text(TEXTS[0])
    other = Sentence(tagged.words, ("B-god", "O", "O", "O", "O"), None, None, tagged.text, tagged.offsets)
    assert project.add_labeled([other], "file.jsonl") == (0, 1)
    assert labels(project, TEXTS[0]) == [("person", "Ada")]
    assert [each.name for each in project.types()] == ["person", "place", "god"]


def test_the_mark_of_a_file_is_kept(project: Project) -> None:
    project.add_labeled([Sentence(("Lima",), ("B-place",), judging=True)], "marked.jsonl")
    assert [each.judging for each in project.labeled(judging=True)] == [True]
    assert list(project.labeled(judging=False)) == []


@pytest.mark.parametrize(
    ("entities", "message"),
    [
        ([("persom", 0, 1)], "unknown type 'persom'.*person"),
        ([("person", 0, 6)], "from word 0 to 6: the sentence has the words 0 to 5"),
        ([("person", 2, 2)], "from word 2 to 2"),
        ([("person", 0, 2), ("place", 1, 3)], "from word 1 to 3: it overlaps another"),
    ],
)
def test_labels_that_cannot_be(project: Project, entities: list[Any], message: str) -> None:
    first = ids(project)[TEXTS[0]]
    with pytest.raises(UsageError, match=message):
        project.label(first, "ann", entities)
    assert project.counts()["labeled"] == 0
    with pytest.raises(Missing, match="no sentence 99"):
        project.label(99, "ann", [])


def test_undo_goes_back_through_everything_a_person_did(project: Project) -> None:
    one, two, three = (ids(project)[text] for text in TEXTS[:3])
    project.label(one, "ann", [("person", 0, 1)])
    project.label(one, "ann", [])
    project.skip(two, "ann")
    project.label(three, "bob", [])
    assert project.undo("ann") == ("skip", two, [])
    assert project.row(two)["status"] == "raw"
    assert project.undo("ann") == ("labels", one, [])
    assert labels(project, TEXTS[0]) == [("person", "Ada")]
    assert project.undo("ann") == ("labels", one, [Span("person", 0, 1)])
    assert project.undo("ann") is None
    assert project.counts()["labeled"] == 1  # bob's
    project.label(one, "ann", [("person", 0, 1)])
    assert project.undo("ann") == ("labels", one, [Span("person", 0, 1)])


def test_what_is_undone_has_the_names_of_today(project: Project) -> None:
    one = ids(project)[TEXTS[0]]
    project.label(one, "ann", [("person", 0, 1)])
    project.label(one, "ann", [("place", 3, 4)])
    project.change_types({"op": "rename", "name": "person", "to": "human"}, "ann")
    project.change_types({"op": "delete", "name": "place"}, "ann")
    assert project.undo("ann") == ("labels", one, [])
    assert labels(project, TEXTS[0]) == [("human", "Ada")]


def test_types_change_labels_and_tell_before(project: Project) -> None:
    one, two = (ids(project)[text] for text in TEXTS[:2])
    project.label(one, "ann", [("person", 0, 1), ("place", 3, 4)])
    project.label(two, "ann", [("place", 0, 1)])
    op = {"op": "merge", "name": "place", "into": "person"}
    assert project.change_types(op, "ann", dry_run=True) == (2, 2)
    assert labels(project, TEXTS[1]) == [("place", "Oslo")]
    assert project.change_types(op, "ann") == (2, 2)
    assert labels(project, TEXTS[0]) == [("person", "Ada"), ("person", "Oslo")]
    assert [each.name for each in project.types()] == ["person"]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ({"op": "add", "name": "person"}, "there is one of this name"),
        ({"op": "add", "name": "two words"}, "without spaces"),
        ({"op": "rename", "name": "persn", "to": "x"}, "unknown type 'persn'.*person"),
        ({"op": "rename", "name": "person", "to": "place"}, "merge them"),
        ({"op": "merge", "name": "person", "into": "person"}, "into itself"),
        ({"op": "key", "name": "person", "key": "a"}, "do something else"),
        ({"op": "key", "name": "person", "key": "xy"}, "one character"),
        ({"op": "paint", "name": "person"}, "one of add, rename"),
    ],
)
def test_types_that_cannot_be(project: Project, op: dict[str, Any], message: str) -> None:
    before = project.types()
    with pytest.raises(UsageError, match=message):
        project.change_types(op, "ann")
    assert project.types() == before


def test_a_key_that_another_type_has_is_swapped() -> None:
    types = [Type("person", "1", 0), Type("place", "2", 1)]
    assert changed(types, {"op": "key", "name": "place", "key": "1"}) == [Type("person", "2", 0), Type("place", "1", 1)]


def test_people_who_differ(project: Project) -> None:
    one = ids(project)[TEXTS[0]]
    project.label(one, "ann", [("person", 0, 1)])
    project.label(one, "bob", [("place", 0, 1)])
    assert project.counts()["differences"] == 1
    assert labels(project, TEXTS[0]) == [("place", "Ada")]  # the last counts
    project.label(one, "ann", [("person", 0, 1)], decides=True)
    assert project.counts()["differences"] == 0
    assert labels(project, TEXTS[0]) == [("person", "Ada")]


def test_renaming_settles_no_difference_wrongly(project: Project) -> None:
    one = ids(project)[TEXTS[0]]
    project.label(one, "ann", [("person", 0, 1)])
    project.label(one, "bob", [("place", 0, 1)])
    project.change_types({"op": "merge", "name": "place", "into": "person"}, "ann")
    assert project.counts()["differences"] == 0


def test_only_independent_judgements_are_compared(project: Project) -> None:
    one, two = (ids(project)[text] for text in TEXTS[:2])
    project.label(one, "carl", [("person", 0, 1)])
    project.label(one, "bob", [("place", 0, 1)])
    project.label(one, "anna", [("person", 0, 1)], decides=True)  # has seen both
    project.label(one, "bob", [("person", 0, 1)])  # has changed his mind
    tagged = sentence_from_text(TEXTS[1])
    read = Sentence(tagged.words, ("B-place", "O", "O", "O", "O", "O", "O"), None, None, tagged.text, tagged.offsets)
    project.add_labeled([read], "given.jsonl")
    project.label(two, "anna", [])
    assert project.first_answers() == [(one, [[Span("person", 0, 1)], [Span("place", 0, 1)]])]


def test_a_type_is_as_old_as_it_was_before_it_was_renamed(project: Project) -> None:
    project.label(ids(project)[TEXTS[0]], "ann", [])
    project.change_types({"op": "add", "name": "work"}, "ann")
    project.change_types({"op": "rename", "name": "work", "to": "piece"}, "ann")
    assert project.labeled_before_types() == {"person": 0, "place": 0, "piece": 1}
    assert project.listed("labeled", "", "", "piece", 0, 10)[0] == 1


def test_a_label_of_a_type_that_is_renamed_meanwhile(project: Project) -> None:
    """The types are looked at within the transaction that writes."""
    project.change_types({"op": "rename", "name": "person", "to": "human"}, "ann")
    with pytest.raises(UsageError, match="unknown type 'person'"):
        project.label(ids(project)[TEXTS[0]], "ann", [("person", 0, 1)])
    assert project.history(ids(project)[TEXTS[0]]) == []


def rebuilt(project: Project) -> dict[str, Any]:
    """What the events come to when they are all played again: to be compared with what the tables say."""
    events = project.database.reading.execute("SELECT * FROM events ORDER BY id").fetchall()
    undone = {json.loads(each["data"])["event"] for each in events if each["kind"] == "undo"}
    answers: dict[tuple[int, str], list[Any]] = {}
    types: list[Type] = []
    for each in events:
        data = json.loads(each["data"])
        if each["kind"] == "types":
            types = changed(types, data)
            for answer in answers.values():
                answer[1] = after(answer[1], [data])
        elif each["kind"] in ("labels", "skip") and each["id"] not in undone:
            found = [Span(*entity) for entity in data.get("entities", ())]
            answers[each["sentence"], each["who"]] = [each["kind"], found]
    return {"types": types, "answers": {place: tuple(answer) for place, answer in answers.items()}}


NAMES = st.sampled_from(["person", "place", "work"])
PEOPLE = st.sampled_from(["ann", "bob"])
ENTITIES = st.lists(NAMES, max_size=2).map(lambda names: [(name, place, place + 1) for place, name in enumerate(names)])
OPS = st.one_of(
    st.tuples(st.just("label"), st.integers(0, 2), PEOPLE, ENTITIES, st.booleans()),
    st.tuples(st.just("skip"), st.integers(0, 2), PEOPLE),
    st.tuples(st.just("undo"), PEOPLE),
    st.tuples(st.just("types"), st.sampled_from(["add", "rename", "merge", "delete"]), NAMES, NAMES),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(OPS, max_size=25))
def test_the_events_alone_tell_everything(steps: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever people do, playing the events again gives what the tables say."""
    project = Project(tmp_path_factory.mktemp("played") / "project")
    project.add_text([sentence_from_text(text) for text in TEXTS[:3]], "texts")
    numbers = list(ids(project).values())
    for kind, *rest in [("types", "add", "person", ""), ("types", "add", "place", ""), *steps]:
        try:
            if kind == "label":
                project.label(numbers[rest[0]], rest[1], rest[2], rest[3])
            elif kind == "skip":
                project.skip(numbers[rest[0]], rest[1])
            elif kind == "undo":
                project.undo(rest[0])
            else:
                op, name, other = rest
                project.change_types({"op": op, "name": name, "to": other, "into": other}, "ann")
        except UsageError:
            continue
    rows = project.database.reading.execute("SELECT sentence, who, kind, entities FROM answers").fetchall()
    tables = {(row[0], row[1]): (row[2], [Span(*each) for each in json.loads(row[3])]) for row in rows}
    assert rebuilt(project) == {"types": project.types(), "answers": tables}
    for number in numbers:  # and each sentence says what its answers come to
        theirs = {who: found for (sentence, who), found in tables.items() if sentence == number}
        kinds = {kind for kind, _ in theirs.values()}
        assert project.row(number)["status"] == ("labels" if "labels" in kinds else "skip" if kinds else "raw")


@given(st.lists(st.tuples(NAMES, st.sampled_from(["rename", "merge", "delete"]), NAMES), max_size=6))
def test_entities_follow_their_types(steps: list[tuple[str, str, str]]) -> None:
    """One operation after the other is the same as all of them at once."""
    entities = [Span("person", 0, 1), Span("place", 2, 4)]
    ops = [{"op": kind, "name": name, "to": other} if kind == "rename" else {"op": kind, "name": name, "into": other}
           for name, kind, other in steps]  # fmt: skip
    one_by_one = entities
    for op in ops:
        one_by_one = after(one_by_one, [op])
    assert after(entities, ops) == one_by_one


# The file


def test_a_newer_project_is_refused(project: Project) -> None:
    with sqlite3.connect(project.folder / FILE) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(SequstError, match="install a newer sequst"):
        Project(project.folder)


def test_an_older_project_is_brought_up_and_a_copy_kept(project: Project) -> None:
    project.skip(ids(project)[TEXTS[0]], "ann")
    path = project.folder / FILE
    newer = [*MIGRATIONS, "ALTER TABLE sentences ADD COLUMN note TEXT;\nCREATE TABLE extra (x);"]
    database = Database(path, newer)
    assert database.reading.execute("SELECT count(note), count(*) FROM sentences").fetchone()[:] == (0, 6)
    copy = sqlite3.connect(path.with_name(f"{FILE}.version-{len(MIGRATIONS)}"))
    assert copy.execute("SELECT count(*) FROM events WHERE kind = 'skip'").fetchone() == (1,)


def test_a_migration_that_fails_leaves_the_file_as_it_was(project: Project) -> None:
    path = project.folder / FILE
    with pytest.raises(SequstError, match=r"studio\.db"):
        Database(path, [*MIGRATIONS, "CREATE TABLE extra (x);\nINSERT INTO nowhere VALUES (1);"])
    database = Database(path)
    assert database.reading.execute("SELECT name FROM sqlite_master WHERE name = 'extra'").fetchall() == []


def test_folders_that_are_no_project(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="neither a project"):
        Project(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE).write_bytes(b"no database at all, but a text" * 100)
    with pytest.raises(SequstError, match=r"studio\.db: file is not a database"):
        Project(tmp_path / "other")


def test_a_project_has_one_server(project: Project) -> None:
    with project.lock(), pytest.raises(SequstError, match="open in another studio"):
        Project(project.folder).lock()


def test_nothing_is_added_of_a_file_with_a_sentence_that_nobody_can_label(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("one more line\n" * 2 + "another line\n" + "word " * 2001)
    with pytest.raises(UsageError, match=r"long\.txt:4: a sentence of 2,001 words; at most 2,000"):
        add_file(project, path, "long.txt", with_labels=False)
    assert project.counts()["sentences"] == len(TEXTS)


def test_settings(project: Project) -> None:
    project.change_settings({"judging_share": 0, "learn_judging": True}, "ann")
    assert Project(project.folder).settings[:3] == (0, 0.5, True)
    for given_, message in (
        ({"judging": 0.1}, "unknown setting"), ({"judging_share": 2}, "from 0 to 0.9"), ({"train": "no"}, "e.g. true"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            project.change_settings(given_, "ann")
