"""Small files in the formats of the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.formats.originals import read_gold_conll, read_multiwoz, read_parallel
from sequst.errors import UsageError


def parallel(folder: Path, words: str, tags: str, intents: str = "") -> list[Path]:
    paths = [folder / name for name in ("seq.in", "seq.out", "label")]
    for path, text in zip(paths, (words, tags, intents), strict=True):
        path.write_text(text)
    return paths


def test_parallel_files(tmp_path: Path) -> None:
    words, tags, intents = parallel(
        tmp_path, "play westbam now\nbook a table\n", "O B-artist O\nO O O\n", "PlayMusic\nBookRestaurant\n"
    )
    first, second = read_parallel(words, tags).sentences
    assert first.words == ("play", "westbam", "now")
    assert first.tags == ("O", "B-artist", "O")
    assert (second.id, str(second.source)) == (2, f"{words}:2")
    typed, _ = read_parallel(words, tags, intents).sentences
    assert typed.tags == ("O", "B-PlayMusic.artist", "O")


@pytest.mark.parametrize(
    ("words", "tags", "place", "told"),
    [
        ("a b\n", "O\n", "seq.out:1", "2 words and 1 tags"),
        ("a b\nc\n", "O O\n", "seq.out:2", "the end of the file"),
        ("a b\n", "O X-y\n", "seq.out:1", "'X-y'"),
        ("a b\n", "O I-y\n", "seq.out:1", "I-y with no y before it at 'b'"),
    ],
)
def test_parallel_files_that_do_not_fit(words: str, tags: str, place: str, told: str, tmp_path: Path) -> None:
    first, second, _ = parallel(tmp_path, words, tags)
    [problem] = read_parallel(first, second).problems
    assert place in str(problem)
    assert told in str(problem)


def gold(names: list[tuple[str, str]]) -> str:
    rows = [f"bn/abc 0 {i} {word} NN * - - - speaker {mark} -" for i, (word, mark) in enumerate(names)]
    return "#begin document (bn/abc); part 000\n" + "\n".join(rows) + "\n\n#end document\n"


def test_gold_conll(tmp_path: Path) -> None:
    (tmp_path / "bn" / "abc").mkdir(parents=True)
    sentence = [("The", "(ORG*"), ("White", "*"), ("House", "*)"), ("and", "*"), ("Oslo", "(GPE)"), ("Norway", "(GPE)")]
    (tmp_path / "bn" / "abc" / "a.gold_conll").write_text(gold(sentence) + gold([("Yes", "*")]))
    found = read_gold_conll(tmp_path)
    assert not found.problems
    assert [s.words for s in found.sentences] == [tuple(word for word, _ in sentence), ("Yes",)]
    assert found.sentences[0].tags == ("B-ORG", "I-ORG", "I-ORG", "O", "B-GPE", "B-GPE")


@pytest.mark.parametrize(
    ("marks", "line", "told"),
    [
        (["(A*", "*"], 3, "the end of a sentence in A"),
        (["*)", "*"], 2, "'*)'"),
        (["(A*", "(B)"], 3, "'(B)'"),
        (["", "*"], 2, "bn/abc"),
    ],
)
def test_brackets_that_do_not_close(marks: list[str], line: int, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.gold_conll"
    path.write_text(gold([("w", mark) for mark in marks]))
    [problem] = read_gold_conll(tmp_path).problems
    assert f"{path}:{line}: " in str(problem)
    assert told in str(problem)


def multiwoz(folder: Path, spans: list[Any]) -> Path:
    turn = {"text": "a cheap hotel in the north please", "span_info": spans}
    reply = {"text": "there are four", "span_info": [["Hotel-Inform", "Choice", "four", 2, 2]]}
    dialogues = {name: {"log": [turn, reply]} for name in ("A.json", "B.json", "C.json")}
    (folder / "data.json").write_text(json.dumps(dialogues))
    (folder / "valListFile.txt").write_text("B.json\n")
    (folder / "testListFile.txt").write_text("C.json\n")
    return folder / "data.json"


def test_multiwoz(tmp_path: Path) -> None:
    data = multiwoz(
        tmp_path,
        [
            ["Hotel-Inform", "Price", "cheap", 1, 1],
            ["Hotel-Inform", "Area", "the north", 4, 5],
            ["Hotel-Inform", "Type", "x", 5, 5],
        ],
    )
    for part in ("train", "dev", "test"):
        [sentence] = read_multiwoz(data, part).sentences  # the user's turns alone
        assert sentence.tags == ("O", "B-Price", "O", "O", "B-Area", "I-Area", "O")


def test_multiwoz_that_is_damaged(tmp_path: Path) -> None:
    data = multiwoz(tmp_path, [["Hotel-Inform", "Area", "north", 5, 9]])
    [problem] = read_multiwoz(data, "train").problems
    assert "a span that does not fit its turn in 'A.json'" in str(problem)
    data.write_text("{")
    assert "no valid JSON" in str(read_multiwoz(data, "train").problems[0])
    (tmp_path / "testListFile.txt").unlink()
    with pytest.raises(UsageError, match=r"no testListFile\.txt"):
        read_multiwoz(data, "train")
