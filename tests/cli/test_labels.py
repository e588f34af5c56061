"""What to label next, and which labels look wrong, from the outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.formats.columns import write_conll
from sequst.corpus.formats.read import read
from sequst.corpus.formats.write import write_sentences
from sequst.corpus.generated import generate
from sequst.tagger.tagger import Tagger, labels_of

Cli = Callable[..., Any]
Write = Callable[..., Path]
SHORT = ["--set=teacher.min_steps=2", "--set=teacher.epochs=0.01", "--set=evaluations=1", "--device=cpu"]


@pytest.fixture(scope="module")
def model(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger with opinions, if with no good ones."""
    tagger = Tagger.from_encoder(tiny_encoder, labels_of(generate().pool), seed=3)
    tagger.head.linear.weight.data *= 50
    folder = tmp_path_factory.mktemp("model") / "model"
    tagger.save(folder)
    return folder


def text_of(count: int) -> str:
    return "\n".join(" ".join(sentence.words) for sentence in generate().test[:count]) + "\n"


def test_next(model: Path, write: Write, tmp_path: Path, sequst: Cli) -> None:
    arguments = ["next", model, write("raw.txt", text_of(40)), "--count", 6, "--passes", 3]
    done = sequst(*arguments, "--output", tmp_path / "one.jsonl")
    assert done.returncode == 0, done.stderr
    assert "6 sentences to label are in" in done.stdout
    assert "best first; 1 of them is random, for judging, and without tags" in done.stdout
    given = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    assert len({tuple(record["words"]) for record in given}) == 6
    assert [record.keys() for record in given if "judging" in record] == [{"id", "text", "words", "judging"}]
    done = sequst(*arguments, "--judging", 0, "--output", tmp_path / "none.jsonl")
    assert "judging" not in done.stdout
    records = [json.loads(line) for line in (tmp_path / "none.jsonl").read_text().splitlines()]
    assert all(record["score"] > 0 and len(record["information_gain"]) == len(record["words"]) for record in records)
    assert records[0]["score"] == max(record["score"] for record in records)
    sequst(*arguments, "--output", tmp_path / "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    done = sequst(*arguments, "--output", tmp_path / "three.conll", "--format", "conll")
    assert "conll has no place for marks for judging" in done.stderr
    assert [s.words for s in read(tmp_path / "three.conll")] == [tuple(record["words"]) for record in records]


def test_next_takes_all_where_there_are_fewer_and_says_so(model: Path, tmp_path: Path, sequst: Cli) -> None:
    arguments = ["next", model, "-", "--strategy", "confidence", "--no-diverse", "--output", tmp_path / "all.jsonl"]
    done = sequst(*arguments, stdin="We play in Oslo .\nAll tickets are gone .\nWe play in Oslo .\n")
    assert done.returncode == 0, done.stderr
    assert "only 2 different sentences: all are chosen" in done.stderr
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 2


def test_next_chooses_nothing_that_is_labelled(model: Path, write: Write, tmp_path: Path, sequst: Cli) -> None:
    raw = write("raw.txt", "We play in Oslo .\nAll tickets are gone .\nNobody sings here .\n")
    one = write("one.conll", "We O\nplay O\nin O\nOslo B-place\n. O\n")
    other = write("other.jsonl", '{"words": ["All", "tickets", "are", "gone", "."], "tags": ["O", "O", "O", "O", "O"]}\n')
    arguments = ["next", model, raw, "--strategy=confidence", "--labeled", one, "--output", tmp_path / "next.jsonl"]
    done = sequst(*arguments, "--labeled", other)
    assert done.returncode == 0, done.stderr
    assert "only 1 different sentences that are not labelled" in done.stderr
    assert [s.words for s in read(tmp_path / "next.jsonl")] == [("Nobody", "sings", "here", ".")]
    numbered = write("numbered.conll", "0 Nobody O\n1 sings O\n2 here O\n3 . O\n\n0 We O\n1 sleep O\n")
    column = ["next", model, numbered, "--word-column", 1, "--strategy=confidence", "--output", tmp_path / "columns.jsonl"]
    some = write("some.txt", "0\tNobody\tO\n1\tsings\tO\n2\there\tO\n3\t.\tO\n\n")
    done = sequst(*column, "--labeled", some, "--labeled-format", "conll")
    assert done.returncode == 0, done.stderr
    assert [s.words for s in read(tmp_path / "columns.jsonl")] == [("We", "sleep")]
    rest = write("rest.conll", "Nobody O\nsings O\nhere O\n. O\n")
    done = sequst(*arguments, "--labeled", other, "--labeled", rest)
    assert done.returncode == 1
    assert "raw.txt has no sentence to choose from that is not labelled" in done.stderr
    done = sequst(*arguments[:-1], one)  # what is read is not written over
    assert done.returncode == 2, done.stderr


def test_the_first_batch_by_an_encoder(tiny_encoder: str, write: Write, tmp_path: Path, sequst: Cli) -> None:
    raw = write("raw.txt", text_of(60))
    done = sequst("next", tiny_encoder, raw, "--count", 10, "--output", tmp_path / "first.jsonl")
    assert done.returncode == 0, done.stderr
    assert "10 sentences to label are in" in done.stdout
    assert "typical ones first, without tags; 2 of them are random, for judging\n" in done.stdout
    records = [json.loads(line) for line in (tmp_path / "first.jsonl").read_text().splitlines()]
    assert [record.get("judging", False) for record in records] == [False, False, True, False, False] * 2
    assert all(record.keys() - {"judging"} == {"id", "text", "words"} for record in records)
    columns = ["next", tiny_encoder, raw, "--count", 10, "--format", "conll", "--output", tmp_path / "first.conll"]
    assert sequst(*columns).returncode == 0
    assert (tmp_path / "first.conll").read_text().count("\n\n") == 10
    assert "\t" not in (tmp_path / "first.conll").read_text()
    done = sequst("next", tiny_encoder, raw, "--strategy=random", "--output", tmp_path / "none")
    assert (done.returncode, "has learnt no labels; --strategy and --diverse need" in done.stderr) == (2, True)


def test_next_chooses_from_a_folder_of_an_annotation_tool(model: Path, tmp_path: Path, sequst: Cli) -> None:
    write_sentences(tmp_path / "documents", "brat", generate().test[:5])
    done = sequst("next", model, tmp_path / "documents", "--strategy=random", "--count=3", "--output", tmp_path / "next.jsonl")
    assert done.returncode == 0, done.stderr
    assert {s.words for s in read(tmp_path / "next.jsonl")} < {s.words for s in read(tmp_path / "documents")}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["next", "MODEL", "empty.txt", "--output", "o"], 1, "empty.txt is empty: no sentence in it to choose from"),
        (["next", "MODEL", "bad.jsonl", "--output", "o"], 1, "bad.jsonl:2: found words 1"),
        (["next", "nowhere", "raw.txt", "--output", "o"], 2, "no model in 'nowhere'"),
        (["next", "MODEL", "none.txt", "--output", "o"], 2, "none.txt: no such file"),
        (["next", "MODEL", "raw.txt", "--output", "o", "--count", "0"], 2, "count 0"),
        (["next", "MODEL", "-", "--output", "o", "--labeled", "-"], 2, "only one of the files can be standard input"),
        (["next", "MODEL", "raw.txt", "--output", "o", "--labeled", "bad.jsonl"], 1, "bad.jsonl:1: found no tags"),
        (["next", "MODEL", "raw.txt", "--output", "o", "--format", "xml"], 2, "--format xml: use one of jsonl, conll"),
        (["next", "MODEL", "raw.txt", "--output", "o", "--judging", "2"], 2, "judging 2.0: a share from 0 to 1"),
        (["next", "MODEL", "raw.txt", "--output", "o", "--format=conll", "--judging=0.1"], 2, "one of jsonl, labelstudio"),
        (["next", "MODEL", "raw.txt", "--output", "o", "--strategy", "gain"], 2, "unknown strategy 'gain'"),
        (["next", "MODEL", "raw.txt", "--output", "no/o"], 2, "there is no folder"),
        (["suspects", "few.conll", "--output", "o"], 1, "2 different sentences are too few for 5 folds"),
        (["suspects", "few.conll", "--output", "o", "--folds", "1"], 2, "1 folds: at least 2"),
        (["suspects", "empty.txt", "--output", "o"], 1, "empty.txt is empty"),
        (["suspects", "raw.txt", "--output", "o"], 1, "raw.txt has no tags"),
        (["suspects", "few.conll", "--output", "o", "--set", "method=sst"], 2, "method sst needs unlabelled text"),
        (["suspects", "few.conll", "--output", "o", "--set", "teacher.epoch=1"], 2, "epochs"),
        (["suspects", "few.conll", "--output", "no/o"], 2, "there is no folder"),
    ],
)
def test_misuse_writes_nothing(
    arguments: list[str], code: int, message: str, model: Path, write: Write, tmp_path: Path, sequst: Cli
) -> None:
    write("raw.txt", "We play in Oslo .\n")
    write("empty.txt", "")
    write("bad.jsonl", '{"words": ["a"]}\n{"words": 1}\n')
    write("few.conll", "Anna B-PER\n\nOslo B-LOC\n")
    before = sorted(tmp_path.iterdir())
    done = sequst(*(model if word == "MODEL" else word for word in arguments), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_suspects(tiny_encoder: str, tmp_path: Path, sequst: Cli) -> None:
    write_conll(tmp_path / "labeled.conll", generate().pool[:30])
    arguments = ["suspects", "labeled.conll", "--encoder", tiny_encoder, "--folds", 2, "--show", 3, *SHORT]
    done = sequst(*arguments, "--output", "suspects.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fold 2 of 2: teacher" in done.stderr
    records = [json.loads(line) for line in (tmp_path / "suspects.jsonl").read_text().splitlines()]
    assert [record["rank"] for record in records] == list(range(1, len(records) + 1))
    assert len(records) > 3
    assert "the table shows the first 3" in done.stderr
    rows = done.stdout.splitlines()
    assert rows[0].split() == ["place", "words", "labelled", "rather"]
    assert f"{len(records)} labels to look at are in suspects.jsonl" in rows[-1]
    lines = (tmp_path / "labeled.conll").read_text().splitlines()
    for record in records:
        assert record["file"] == "labeled.conll"
        assert lines[record["line"] - 1].split("\t")[0] == record["words"][record["start"]]
    ranked = [record["doubt"] for record in records]
    assert ranked == sorted(ranked, reverse=True)
    write_sentences(tmp_path / "tasks.json", "labelstudio", generate().pool[:30])
    done = sequst("suspects", "tasks.json", *arguments[2:], "--output", "tasks.jsonl", cwd=tmp_path)
    first = json.loads((tmp_path / "tasks.jsonl").read_text().splitlines()[0])
    assert first["line"] is None
    assert f"tasks.json, record {first['record']} " in done.stdout
    again = sequst(*arguments, "--output", "again.jsonl", cwd=tmp_path)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "suspects.jsonl").read_bytes(), again.stderr
