"""Text of any size: what rounds learn of it is drawn once, as it is read."""

from __future__ import annotations

import dataclasses
import gzip
import tracemalloc
from pathlib import Path

import pytest

from sequst.corpus.formats.read import read
from sequst.errors import DataError
from sequst.training.data import Data, DataFile
from sequst.training.settings import Settings
from sequst.training.sources import DRAWN, drawn

TWO_ROUNDS = Settings(round_size=10, max_rounds=2)


def texts(path: str | Path) -> list[str]:
    return [" ".join(sentence.words) for sentence in read(path)]


def numbered(path: Path, count: int) -> DataFile:
    path.write_text("".join(f"sentence {i}\n" for i in range(count)), encoding="utf-8")
    return DataFile(str(path))


def test_a_text_that_one_round_learns_is_left_as_it_is(tmp_path: Path) -> None:
    file = numbered(tmp_path / "raw.txt", 10)
    assert drawn(file, TWO_ROUNDS, tmp_path) == (file, 10)
    assert drawn(file, dataclasses.replace(TWO_ROUNDS, round_size=0), tmp_path)[0] == file
    assert not (tmp_path / DRAWN).exists()


def test_a_larger_text_is_drawn_from_at_random(tmp_path: Path) -> None:
    file = numbered(tmp_path / "raw.txt", 1000)
    copy, count = drawn(file, TWO_ROUNDS, tmp_path)
    found = texts(copy.path)
    assert (count, copy.shown) == (1000, file.path)
    assert len(found) == len(set(found)) == 20
    assert set(found) <= set(texts(file.path))
    places = [int(text.split()[1]) for text in found]
    assert places != sorted(places)
    assert max(places) > 500
    other, _ = drawn(file, dataclasses.replace(TWO_ROUNDS, seed=21), tmp_path)
    assert texts(other.path) != found
    again, _ = drawn(file, TWO_ROUNDS, tmp_path)
    assert texts(again.path) == found


def test_every_sentence_is_as_likely_as_another(tmp_path: Path) -> None:
    """A chi-squared test by hand: 40 draws of 20 of 100 sentences, each drawn 8 times on average."""
    file, times = numbered(tmp_path / "raw.txt", 100), [0] * 100
    for seed in range(40):
        copy, _ = drawn(file, dataclasses.replace(TWO_ROUNDS, seed=seed), tmp_path)
        for text in texts(copy.path):
            times[int(text.split()[1])] += 1
    assert sum((n - 8) ** 2 / 8 for n in times) * 100 / 80 < 149  # the 99.9th percentile of 99 degrees of freedom


def test_rounds_learn_other_sentences_while_there_are_any(tmp_path: Path) -> None:
    def pools(count: int, size: int) -> list[list[str]]:
        sentences = read(numbered(tmp_path / "raw.txt", count).path)
        data = Data([], [], sentences, [None] * count, "", [], [])
        return [[" ".join(each.words) for each in data.pool(round_, size).sentences] for round_ in (1, 2, 3)]

    assert pools(7, 10) == pools(7, 0) == [[f"sentence {i}" for i in range(7)]] * 3
    first, second, third = pools(25, 10)
    assert len({*first, *second}) == 20
    assert third == [*(f"sentence {i}" for i in range(20, 25)), *first[:5]]


@pytest.mark.parametrize("name", ["raw.txt", "raw.txt.gz", "raw.jsonl", "raw.conll"])
def test_memory_does_not_grow_with_the_text(name: str, tmp_path: Path) -> None:
    word = "sentence" * 25
    lines = {"raw.jsonl": f'{{{{"words": ["{word}", "{{}}"]}}}}\n', "raw.conll": f"{word} O\n{{}} O\n\n"}
    line = lines.get(name, f"{word} {{}}\n")
    opened = gzip.open if name.endswith("gz") else open
    path = tmp_path / name

    def peak(count: int) -> int:
        with opened(path, "wt", encoding="utf-8") as file:
            file.writelines(line.format(i) for i in range(count))
        tracemalloc.start()
        try:
            assert drawn(DataFile(str(path)), TWO_ROUNDS, tmp_path)[1] == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)  # imports, caches
    assert peak(30_000) < peak(10_000) + 300_000  # 20,000 more sentences would take 10 MB


def test_tags_are_kept_for_diagnosis_and_broken_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "raw.conll"
    path.write_text("".join(f"Oslo{i} B-LOC\n\n" for i in range(30)), encoding="utf-8")
    copy, _ = drawn(DataFile(str(path)), TWO_ROUNDS, tmp_path)
    assert {sentence.tags for sentence in read(copy.path)} == {("B-LOC",)}
    path.write_text("".join(f"Oslo{i} {'B-LOC' if i else 'B'}\n\n" for i in range(30)), encoding="utf-8")
    copy, _ = drawn(DataFile(str(path)), TWO_ROUNDS, tmp_path)
    assert {sentence.tags for sentence in read(copy.path)} == {None}


def test_a_malformed_text_is_told_with_its_places(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    good = '{"words": ["a"]}\n' * 30
    path.write_text(good + '{"words": 3}\n' + good + "{\n", encoding="utf-8")
    with pytest.raises(DataError) as stop:
        drawn(DataFile(str(path)), TWO_ROUNDS, tmp_path)
    assert [str(problem).split(": ")[0] for problem in stop.value.problems] == [f"{path}:31", f"{path}:62"]
    path.write_text("{\n" * 5000, encoding="utf-8")
    with pytest.raises(DataError) as stop:
        drawn(DataFile(str(path)), TWO_ROUNDS, tmp_path)
    assert len(stop.value.problems) == 1000
