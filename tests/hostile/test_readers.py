"""Files of sentences that somebody else made: sentences or an error that names the place, in time that grows with the file."""

from __future__ import annotations

import functools
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from sequst.cli.reading import open_stream
from sequst.corpus.formats.read import read_file, stream
from sequst.errors import SequstError
from sequst.inputs import LONGEST_LINE

pytestmark = pytest.mark.usefixtures("libraries")


def spans(count: int, word: str) -> tuple[str, list[tuple[int, int]]]:
    """A text of that many words, and the places of every second one."""
    text = " ".join([word] * count)
    step = len(word) + 1
    return text, [(start, start + len(word)) for start in range(0, count * step, 2 * step)]


def json_lines(folder: Path, count: int) -> Path:
    text, places = spans(count, "word")
    (folder / "a.jsonl").write_text(json.dumps({"text": text, "spans": [[*place, "X"] for place in places]}))
    return folder / "a.jsonl"


def doccano(folder: Path, count: int) -> Path:
    text, places = spans(count, "w\U0001f44d")
    (folder / "b.jsonl").write_text(json.dumps({"id": 1, "text": text, "label": [[*place, "X"] for place in places]}))
    return folder / "b.jsonl"


def brat(folder: Path, count: int) -> Path:
    text, places = spans(count, "word")
    (folder / "c.txt").write_text(text.replace(" ", "\n"))
    (folder / "c.ann").write_text("".join(f"T{i}\tX {start} {end}\tword\n" for i, (start, end) in enumerate(places)))
    return folder / "c.ann"


@pytest.mark.parametrize("make", [json_lines, doccano, brat])
def test_time_grows_with_the_file(make: Callable[[Path, int], Path], tmp_path: Path) -> None:
    """Eight times the marks in less than twenty times the time: it would be 64, were each looked for among all."""

    def seconds(count: int) -> float:
        path, times = make(tmp_path, count), []
        for _ in range(3):
            begun = time.process_time()
            assert sum(tag == "B-X" for s in read_file(path).require() for tag in s.tags or ()) == count // 2
            times.append(time.process_time() - begun)
        return min(times)

    assert seconds(16_000) < 20 * seconds(2_000)


@pytest.mark.parametrize("name", ["a.txt", "a.conll", "a.jsonl"])
def test_a_word_that_is_none(name: str, tmp_path: Path) -> None:
    """Megabytes without a space cost no gigabytes."""
    word = "a" * 3_000_000
    lines = {"a.txt": word, "a.conll": f"b O\n{word} O", "a.jsonl": json.dumps({"text": word, "spans": []})}
    (tmp_path / name).write_text(lines[name] + "\n")
    tracemalloc.start()
    with pytest.raises(SequstError, match=r"a word of .* characters.*words of at most 100,000"):
        read_file(tmp_path / name).require()
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()


def test_a_tag_that_is_none(tmp_path: Path) -> None:
    """A message stays short, whatever the tag."""
    (tmp_path / "a.conll").write_text(f"b B-{'x' * 50_000}\nc E-{'y' * 50_000}\nd S-z\ne E-q\n")
    with pytest.raises(SequstError, match=r"a\.conll:") as caught:
        read_file(tmp_path / "a.conll").require()
    assert len(str(caught.value)) < 2000


def test_a_line_without_an_end(tmp_path: Path) -> None:
    """A gzip of a few kilobytes that is one line of far more than memory should hold."""
    with gzip.open(tmp_path / "a.txt.gz", "wb", compresslevel=1) as file:
        for _ in range(8):
            file.write(b"a " * (LONGEST_LINE // 16))
            file.write(b"b " * (LONGEST_LINE // 16))
    tracemalloc.start()
    with pytest.raises(SequstError, match=r"a\.txt\.gz:1: found a line of more than 50 MB; expected a sentence"):
        list(stream(*open_stream(str(tmp_path / "a.txt.gz"), "text", None)))
    assert tracemalloc.get_traced_memory()[1] < 4 * LONGEST_LINE
    tracemalloc.stop()


WHOLE = 3_000_000


def bomb(record: str, path: Path) -> None:
    path.write_bytes(gzip.compress(record.encode() * (10 * WHOLE // len(record))))


def brat_bomb(path: Path) -> None:
    path.touch()
    bomb("word " * 200 + "\n", path.with_suffix(".txt"))


def docbin_bomb(path: Path) -> None:
    path.write_bytes(zlib.compress(bytes(10 * WHOLE)))


def parquet_bomb(path: Path) -> None:
    """One word, and that it comes again and again: its metadata tell of little more."""
    pyarrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(pyarrow.table({"tokens": [["x" * 1000] * 10] * (10 * WHOLE // 10_000)}), path, row_group_size=1000)


BOMBS: dict[str, Callable[[Path], None]] = {
    "a.json.gz": functools.partial(bomb, f'{{"a": "{"b" * 1000}"}},\n'),
    "a.jsonl.gz": functools.partial(bomb, json.dumps({"words": ["a" * 1000], "tags": ["O"]}) + "\n"),
    "a.conll.gz": functools.partial(bomb, "a" * 1000 + " O\n\n"),
    "a.txt.gz": functools.partial(bomb, "a" * 1000 + "\n"),
    "a.ann": brat_bomb,
    "a.spacy": docbin_bomb,
    "a.parquet": parquet_bomb,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_small_file_that_would_fill_memory(
    streamed: bool, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten times the limit in a few kilobytes. One that is read line by line may have any size."""

    def attempt() -> str:
        try:
            if streamed:
                for _ in stream(*open_stream(str(tmp_path / name), "auto", None)):
                    pass
            else:
                read_file(tmp_path / name, tag_use="optional")
        except SequstError as error:
            return str(error)
        return ""

    BOMBS[name](tmp_path / name)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < WHOLE // 5
    monkeypatch.setattr("sequst.inputs.LARGEST_WHOLE", WHOLE)
    attempt()  # what is imported for it is not counted
    tracemalloc.start()
    error = attempt()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * WHOLE
    if streamed and name in ("a.jsonl.gz", "a.conll.gz", "a.txt.gz"):
        assert error == ""
    else:
        assert "more than 3 MB, unzipped, the limit of a file that is read whole; cut it into several, or" in error
        assert f"{tmp_path}/a." in error
