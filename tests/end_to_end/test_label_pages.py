"""The pages on what to label and on wrong labels: their commands and their Python run, with a tiny encoder and short phases."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sequst as package
from sequst.corpus.formats.columns import write_conll
from sequst.corpus.formats.convert import convert
from sequst.corpus.generated import generate
from sequst.tagger.tagger import Tagger, labels_of

HOW_TO = Path(__file__).parent.parent.parent / "docs/how-to"
SHORT: dict[str, Any] = {"min_steps": 2, "epochs": 0.01}
FLAGS = [*(f"--set=teacher.{name}={value}" for name, value in SHORT.items()), "--device=cpu"]


@pytest.fixture
def folder(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where what the pages name is there."""
    pool, test = generate().pool[:40], generate().test
    tagger = Tagger.from_encoder(tiny_encoder, labels_of(pool), seed=3)
    tagger.head.linear.weight.data *= 50
    tagger.save(tmp_path / "run" / "model")
    write_conll(tmp_path / "labeled.conll", pool)
    convert(tmp_path / "labeled.conll", tmp_path / "labeled.jsonl")
    (tmp_path / "raw.txt").write_text("\n".join(" ".join(sentence.words) for sentence in test))
    monkeypatch.chdir(tmp_path)
    short = functools.partial(package.find_suspects, encoder=tiny_encoder, device="cpu", teacher=SHORT)
    monkeypatch.setattr(package, "find_suspects", short, raising=False)
    return tmp_path


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (HOW_TO / page).read_text(encoding="utf-8"), re.DOTALL)


def printed(code: str) -> list[str]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    return out.getvalue().splitlines()


def test_what_to_label(folder: Path, sequst: Callable[..., Any], tiny_encoder: str) -> None:
    choose, learn, first = blocks("choose-what-to-label.md", "sh")
    done = sequst(*shlex.split(choose)[1:])
    assert done.returncode == 0, done.stderr
    given = [json.loads(line) for line in (folder / "next.jsonl").read_text().splitlines()]
    assert (len(given), sum(record.get("judging", False) for record in given)) == (50, 10)
    tagged = [record if "tags" in record else {**record, "tags": ["O"] * len(record["words"])} for record in given]
    (folder / "next.jsonl").write_text("".join(json.dumps(record) + "\n" for record in tagged))
    join, train = learn.strip().splitlines()
    assert join == "cat labeled.jsonl next.jsonl > more.jsonl"
    (folder / "more.jsonl").write_text("".join((folder / name).read_text() for name in ("labeled.jsonl", "next.jsonl")))
    done = sequst(*shlex.split(train)[1:], "--encoder", tiny_encoder, *FLAGS)
    assert done.returncode == 0, done.stderr
    assert "10 sentences marked for judging" in json.loads((folder / "run2" / "summary.json").read_text())["dev_set"]
    done = sequst(*(tiny_encoder if word == "minilm" else word for word in shlex.split(first)[1:]))
    assert done.returncode == 0, done.stderr
    assert len((folder / "first.jsonl").read_text().splitlines()) == 50
    [code] = blocks("choose-what-to-label.md", "py")
    lines = printed(code)
    assert (len(lines), sum(line.startswith("for judging ") for line in lines)) == (5, 1)


def test_wrong_labels(folder: Path, sequst: Callable[..., Any], tiny_encoder: str) -> None:
    [command] = blocks("find-wrong-labels.md", "sh")
    done = sequst(*shlex.split(command)[1:], "--encoder", tiny_encoder, *FLAGS)
    assert done.returncode == 0, done.stderr
    page = (HOW_TO / "find-wrong-labels.md").read_text(encoding="utf-8")
    for line in (folder / "suspects.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert f"`{record['kind']}`" in page
    [code] = blocks("find-wrong-labels.md", "py")
    assert len(printed(code)) == 10


def test_flags_of_the_pages_are_there(sequst: Callable[..., Any]) -> None:
    for page, verb in (("choose-what-to-label.md", "next"), ("find-wrong-labels.md", "suspects")):
        help_text = sequst(verb, "--help").stdout
        text = (HOW_TO / page).read_text(encoding="utf-8").replace("sequst train --labeled", "")
        for flag in re.findall(r"--[a-z][a-z0-9-]*", text):
            assert re.search(rf"{flag}\b(?!-)", help_text), (page, flag)
