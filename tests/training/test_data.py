from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sequst.corpus.counts import count_types
from sequst.corpus.formats.jsonl import write_jsonl
from sequst.corpus.generated import generate
from sequst.corpus.sampling import sample
from sequst.errors import SequstError, UsageError
from sequst.training.data import DataFile, Files, load_data
from sequst.training.settings import Settings

Write = Callable[..., Path]
LABELED = "".join(f"w{i} B-X\n\n" for i in range(10))


def test_training_never_sees_the_tags_of_unlabelled_text(write: Write) -> None:
    labeled, unlabeled = DataFile(str(write("l.conll", LABELED))), DataFile(str(write("u.conll", "a B-X\nb O\n\nc O\n")))
    data = load_data(Files(labeled=labeled, unlabeled=unlabeled), Settings())
    assert [s.tags for s in data.unlabeled] == [None, None]
    assert data.hidden_tags == [("B-X", "O"), ("O",)]


def test_dev_policies_in_words(write: Write) -> None:
    labeled = DataFile(str(write("l.conll", LABELED)))
    dev = DataFile(str(write("d.conll", "a B-X\n")))
    assert load_data(Files(labeled=labeled), Settings()).dev_policy.startswith("none;")
    assert load_data(Files(labeled=labeled, dev=dev), Settings()).dev_policy.startswith("1 sentences of d.conll")
    aside = load_data(Files(labeled=labeled), Settings(dev_fraction=0.3))
    assert (len(aside.labeled), len(aside.dev)) == (7, 3)
    assert aside.dev_policy.startswith("30% of the labelled sentences, 3 of 10, drawn with seed 12")
    assert not {s.words for s in aside.labeled} & {s.words for s in aside.dev}
    assert aside.dev == load_data(Files(labeled=labeled), Settings(dev_fraction=0.3)).dev
    with pytest.raises(UsageError, match="exclude each other"):
        load_data(Files(labeled=labeled, dev=dev), Settings(dev_fraction=0.3))
    with pytest.raises(UsageError, match="--dev-fraction and --dev-shots exclude"):
        load_data(Files(labeled=labeled), Settings(dev_fraction=0.3, dev_shots=2))


def test_a_dev_set_of_k_sentences_of_every_type(write: Write) -> None:
    rows = [f"{type_}{i} B-{type_}\nend O\n\n" for type_ in "XY" for i in range(4)]
    rows += ["z B-RARE\n\n", "nothing O\n\n", rows[0], rows[1], rows[2], rows[3]]  # X has copies
    data = load_data(Files(labeled=DataFile(str(write("l.conll", "".join(rows))))), Settings(dev_shots=2))
    drawn = [next(tag for tag in s.tags or () if tag != "O") for s in data.dev]
    assert sorted(drawn) == ["B-X", "B-X", "B-Y", "B-Y"]
    words = {s.words for s in data.dev}
    assert not words & {s.words for s in data.labeled}
    assert len(data.labeled) == 14 - 4 - 2  # without the dev set, and without the copies of two of its sentences
    assert data.dev_policy.startswith(
        "4 of the 14 labelled sentences, 2 of every type (fewer of RARE), 2 more with the same words left out"
    )
    with pytest.raises(SequstError, match="no type has a second labelled sentence"):
        load_data(Files(labeled=DataFile(str(write("o.conll", "a B-X\n\nb B-Y\n")))), Settings(dev_shots=2))


def test_a_dev_set_leaves_half_of_every_type(write: Write) -> None:
    labeled = [s for seed in range(3) for s in sample(generate(seed).pool, 5, seed=seed).labeled]
    path = write("l.jsonl", "")
    write_jsonl(path, labeled)
    for seed in range(20):
        data = load_data(Files(labeled=DataFile(str(path))), Settings(dev_shots=4, seed=seed))
        left, dev = (count_types(part).sentences for part in (data.labeled, data.dev))
        assert set(dev) == set(left)
        assert all(4 <= dev[type_] <= left[type_] for type_ in left)
    two = "a B-A\ny B-Y\n\nc B-A\n\nb B-B\nx B-Y\n\nd B-B\n"
    for seed in range(10):  # Y stands beside A and beside B: both of its sentences must never go
        data = load_data(Files(labeled=DataFile(str(write("two.conll", two)))), Settings(dev_shots=1, seed=seed))
        assert count_types(data.labeled).sentences["Y"] >= 1


def test_contradictory_copies_do_not_lose_a_type(write: Write) -> None:
    rows = "Paris B-PER\nsings O\n\nParis B-LOC\nsings O\n\nBob B-PER\nsings O\n\nAda B-PER\nsings O\n"
    for seed in range(12):
        data = load_data(Files(labeled=DataFile(str(write("c.conll", rows)))), Settings(dev_shots=1, seed=seed))
        assert set(count_types(data.labeled).sentences) == {"PER", "LOC"}


def rows(count: int, marked: int, first: int = 0) -> str:
    """JSON lines of so many sentences of one word; the first of them are marked for judging."""
    lines = []
    for i in range(count):
        mark = {"judging": True} if i < marked else {}
        lines.append(json.dumps({"words": [f"w{first + i}"], "tags": ["B-X"], **mark}))
    return "\n".join(lines) + "\n"


def test_sentences_marked_for_judging_are_the_dev_set(write: Write) -> None:
    labeled = DataFile(str(write("l.jsonl", rows(10, 3))))
    data = load_data(Files(labeled=labeled), Settings())
    assert data.dev_policy == "3 sentences marked for judging; the best weights on them are kept"
    assert [s.words for s in data.dev] == [("w0",), ("w1",), ("w2",)]
    assert [s.words for s in data.labeled] == [(f"w{i}",) for i in range(3, 10)]
    learnt = load_data(Files(labeled=labeled), Settings(learn_judging=True))
    assert (len(learnt.labeled), learnt.dev) == (10, [])
    assert learnt.dev_policy.startswith("none;")


@pytest.mark.parametrize("settings", [Settings(dev_fraction=0.3), Settings(dev_shots=2), Settings()])
def test_marked_sentences_join_the_dev_set_that_was_asked_for(write: Write, settings: Settings) -> None:
    files = Files(labeled=DataFile(str(write("l.jsonl", rows(13, 3)))))
    if settings == Settings():
        files["dev"] = DataFile(str(write("d.conll", "a B-X\n\nw0 B-X\n")))  # which has one of them already
    data = load_data(files, settings)
    assert data.dev_policy.startswith("3 sentences marked for judging, and ")
    assert not {s.words for s in data.labeled} & {s.words for s in data.dev}
    assert not any(s.judging for s in data.labeled)
    assert {("w0",), ("w1",), ("w2",)} < {s.words for s in data.dev}
    assert len({s.words for s in data.dev}) == len(data.dev)
    assert len(data.labeled) + len(data.dev) == (10 + 4 if "dev" in files else 13)


def test_a_copy_of_a_marked_sentence_is_not_learnt(write: Write) -> None:
    labeled = DataFile(str(write("l.jsonl", rows(4, 1) + rows(2, 0))))
    data = load_data(Files(labeled=labeled), Settings())
    assert data.dev_policy.startswith("1 sentence marked for judging, 1 more with the same words left out;")
    assert [s.words[0] for s in data.labeled] == ["w1", "w2", "w3", "w1"]
    assert not any(note.startswith("warning") for note in data.notes)


def test_all_marked_leaves_nothing_to_learn(write: Write) -> None:
    files = Files(labeled=DataFile(str(write("l.jsonl", rows(3, 3)))))
    with pytest.raises(SequstError, match=r"l\.jsonl: every labelled sentence is marked for judging.*learn_judging=true"):
        load_data(files, Settings())
    assert len(load_data(files, Settings(learn_judging=True)).labeled) == 3


def test_a_type_that_only_dev_has_is_told(write: Write) -> None:
    files = Files(labeled=DataFile(str(write("l.conll", LABELED))), dev=DataFile(str(write("d.conll", "a B-NEW\n"))))
    assert any("type NEW is in the dev set but never labelled" in note for note in load_data(files, Settings()).notes)


def test_the_test_file_is_not_read(write: Write) -> None:
    malformed = DataFile(str(write("t.conll", "not a row\n")))
    load_data(Files(labeled=DataFile(str(write("l.conll", LABELED))), test=malformed), Settings())
    with pytest.raises(UsageError, match="no such file"):
        load_data(Files(labeled=DataFile(str(write("l.conll", LABELED))), test=DataFile("nowhere.conll")), Settings())


def test_no_entity_and_too_little(write: Write) -> None:
    with pytest.raises(SequstError, match="no entity at all"):
        load_data(Files(labeled=DataFile(str(write("o.conll", "a O\n")))), Settings())
    with pytest.raises(SequstError, match="at least two"):
        load_data(Files(labeled=DataFile(str(write("one.conll", "a B-X\n")))), Settings(dev_fraction=0.5))


def test_labelled_sentences_of_the_dev_set_are_told(write: Write) -> None:
    labeled, dev = DataFile(str(write("l.conll", LABELED))), DataFile(str(write("d.conll", "w3 B-X\n\nw4 O\n\nnew B-X\n")))
    [told] = (note for note in load_data(Files(labeled=labeled, dev=dev), Settings()).notes if note.startswith("warning"))
    assert told.startswith("warning: 2 of the 10 labelled sentences are in the dev set too")
    assert "--drop-overlap" in told
    others = {"unlabeled": DataFile(str(write("u.txt", "w1\nw2\n"))), "dev": DataFile(str(write("n.conll", "new B-X\n")))}
    assert not any("warning" in note for note in load_data(Files(labeled=labeled, **others), Settings()).notes)
    copies = DataFile(str(write("c.conll", "a B-X\n\n" * 8)))
    [told] = (
        note for note in load_data(Files(labeled=copies), Settings(dev_fraction=0.25)).notes if note.startswith("warning")
    )
    assert told.startswith("warning: 6 of the 6 labelled sentences are in the dev set too")
