from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sequst.corpus.formats.detect import guess
from sequst.corpus.formats.read import read, read_file, stream
from sequst.errors import DataError, SequstError, UsageError
from sequst.inputs import Input

Write = Callable[..., Path]


def test_four_columns_with_documents_and_iob1(write: Write) -> None:
    path = write(
        "train.conll",
        "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n\n"
        "-DOCSTART- -X- O O\n\nPeter NNP I-NP I-PER\n",
    )
    reading = read_file(path)
    assert reading.notes[-1] == f"{path}: tags turned from IOB1 into IOB2"
    assert [s.words for s in reading.require()] == [("EU", "rejects", "German"), ("Peter",)]
    assert [s.tags for s in reading.sentences] == [("B-ORG", "O", "B-MISC"), ("B-PER",)]
    assert str(reading.sentences[1].source) == f"{path}:9"


def test_tag_first_is_noticed_and_can_be_told(write: Write) -> None:
    path = write("mit.bio", "O\tshow\nB-ACTOR\tsteve\nI-ACTOR\tmcqueen\n\nO\thi\n\n")
    noticed = read_file(path)
    told = read_file(path, tag_column=0, word_column=1)
    assert noticed.sentences == told.sentences
    assert noticed.sentences[0].words == ("show", "steve", "mcqueen")
    assert "begin with their tag" in str(noticed.guess)


def test_byte_order_mark_crlf_and_gzip(write: Write) -> None:
    text = "\ufeffAnna\tB-PER\r\nsings\tO\r\n\r\n"
    plain = read(write("a.conll", text))
    packed = read(write("a.conll.gz", gzip.compress(text.encode(), mtime=0)))
    assert plain[0].words == packed[0].words == ("Anna", "sings")
    assert plain[0].tags == ("B-PER", "O")


def test_words_may_hold_odd_white_space_and_separators(write: Write) -> None:
    sentence = read(write("a.conll", "New\u00a0York\tB-LOC\nX\u2028Y\tO\n"))[0]
    assert sentence.words == ("New\u00a0York", "X\u2028Y")


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.txt", "Anna B-PER\nsings O\n\nhi O\n", "conll"),
        ("a.txt", "Anna sings .\n", "text"),
        ("a.txt", "Anna B-PER\nsings\n", "text"),  # one row without a tag: not columns
        ("a.txt", '{"words": ["a"]}\n', "text"),  # .txt is columns or text
        ("a.TSV", "Anna\tB-PER\n", "conll"),
        ("a.jsonl", '{"words": ["a"], "tags": ["O"]}\n', "jsonl"),
        ("a", '{"words": ["a"], "tags": ["O"]}\n', "jsonl"),
        ("a.txt.gz", gzip.compress(b"Anna B-PER\n\n", mtime=0), "conll"),
        ("a.txt", "Anna\tB-PER", "conll"),
        ("a.txt", "He took the U-Bahn\n", "text"),  # a single sentence that ends in what could be a tag
    ],
)
def test_auto(write: Write, name: str, content: str | bytes, format: str) -> None:
    assert guess(Input(write(name, content))).format == format


def test_an_explicit_format_wins(write: Write) -> None:
    path = write("a.conll", "Anna B-PER\n")
    assert read(path, format="text")[0].words == ("Anna", "B", "-", "PER")


def test_json_lines_of_words_and_of_spans(write: Write) -> None:
    path = write(
        "a.jsonl",
        '{"id": "x", "words": ["Anna", "sings"], "tags": ["B-PER", "O"]}\n\n'
        '{"text": "Anna Lind flew to Oslo.", "spans": [{"start": 18, "end": 22, "type": "LOC"}, [0, 9, "PER"]]}\n',
    )
    first, second = read_file(path).require()
    assert (first.id, first.tags) == ("x", ("B-PER", "O"))
    assert second.tags == ("B-PER", "I-PER", "O", "O", "B-LOC", "O")


def test_spans_keep_text_and_offsets(write: Write) -> None:
    sentence = read(write("a.jsonl", '{"text": "In Oslo, Anna", "spans": [{"start": 3, "end": 7, "label": "LOC"}]}'))[0]
    assert sentence.tags == ("O", "B-LOC", "O", "O")
    assert sentence.excerpt(1, 3) == "Oslo,"


@pytest.mark.parametrize(
    ("name", "content", "line", "found", "expected"),
    [
        ("a.conll", "Anna B-PER\nsings\n", 2, "1 column", "at least 2"),
        ("a.conll", "Anna B-PER\nNew York B-LOC\n", 2, "3 columns", "2"),
        ("a.conll", "Anna PER\n", 1, "'PER'", "B-TYPE"),
        ("a.conll", "Anna\tB-PER\n\tO\n", 2, "an empty word", "a word"),
        ("a.conll", "Anna B-PER\nx O\n\ny O\nz I-PER\n", 5, "I-PER", "B-PER"),
        ("a.conll", "Anna B-PER\nx E-LOC\n", 2, "E-LOC", "PER"),
        ("a.conll", b"Anna B-PER\n\xff O\n", 2, "0xff", "UTF-8"),
        ("a.conll", b"Anna B-PER\na\0b O\n", 2, "NUL", "text"),
        ("a.conll", "Anna B-PER\n".encode("utf-16"), 1, "UTF-16", "iconv"),
        ("a.jsonl", '{"words": ["a", "b"], "tags": ["O"]}', 1, "2 words and 1 tags", "every word"),
        ("a.jsonl", '{"words": ["a"], "tags": ["O"]}\n{"words": ["a"]}', 2, "no tags", "tags"),
        ("a.jsonl", '{"words": ["a"], "tags": ["O"]}\n{oops', 2, "invalid JSON", "object"),
        ("a.jsonl", '{"words": "a", "tags": ["O"]}', 1, "words 'a'", "list"),
        ("a.jsonl", '{"words": ["a\\tb"], "tags": ["O"]}', 1, "'a\\tb'", "tabs"),
        ("a.jsonl", '{"tokens": ["a"]}', 1, "'tokens'", "words"),
        ("a.jsonl", '{"text": "Anna", "spans": [[0, 3, "PER"]]}', 1, "'Ann'", "words"),
        ("a.jsonl", '{"text": "Anna", "spans": [[0, 9, "PER"]]}', 1, "0 to 9", "4"),
        ("a.jsonl", '{"text": "Anna Lind", "spans": [[0, 9, "PER"], [5, 9, "X"]]}', 1, "overlaps PER 'Anna Lind'", "overlaps"),
        ("a.jsonl", '{"text": "Anna", "spans": [[0, 4, "a b"]]}', 1, "a b", "without spaces"),
        ("a.jsonl", '{"words": ["\\ud800"], "tags": ["O"]}', 1, "half a character", "pairs"),
        ("a.jsonl", '{"id": "\\ud800", "words": ["a"], "tags": ["O"]}', 1, "half a character", "pairs"),
        ("a.jsonl", '{"words": [' + "9" * 5000 + "]}", 1, "invalid JSON", "object"),
        ("a.bio", "O\tshow\nB-X\tme\nX\tit\nO\tnow\n", 3, "'X' as the tag", "B-TYPE"),  # the tag comes first here
        ("a.txt.gz", gzip.compress(b"Anna\tB-PER\n\n", mtime=0)[:-9], 1, "unreadable", "whole"),
    ],
)
def test_malformed_rows_are_named(write: Write, name: str, content: str | bytes, line: int, found: str, expected: str) -> None:
    path = write(name, content)
    reading = read_file(path)
    problem = reading.problems[0]
    assert (problem.file, problem.line) == (str(path), line)
    assert found in problem.found
    assert expected in problem.expected
    with pytest.raises(DataError, match=f"{path.name}:{line}: found"):
        reading.require()


def test_all_malformed_rows_are_listed(write: Write) -> None:
    reading = read_file(write("a.conll", "a O\nb\n\nc X\n\nd O\n\ne f O\n"))
    assert [problem.line for problem in reading.problems] == [2, 4, 8]
    assert [s.words for s in reading.sentences] == [("d",)]
    with pytest.raises(DataError, match="2 more such places"):
        reading.require()


def test_a_labelled_file_without_tags_says_why_it_was_read_as_text(write: Write) -> None:
    with pytest.raises(SequstError, match=r"no tags: it was read as text, by its content: line 2, 'Berlin'"):
        read_file(write("a.txt", "Anna B-PER\nBerlin\n"))


@pytest.mark.parametrize("content", ["", "\n \n\t\n", "-DOCSTART- O\n"])
def test_empty_files(write: Write, content: str) -> None:
    for name in ("a.conll", "a.txt"):
        with pytest.raises(SequstError, match="is empty"):
            read_file(write(name, content)).require()


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read(tmp_path / "nothing.conll")
    with pytest.raises(UsageError, match="is a directory"):
        read(tmp_path)


def test_unlabelled_columns_may_have_words_alone(write: Write) -> None:
    sentences = read(write("a.conll", "Anna\nsings\n\nhi\n"))
    assert [(s.words, s.tags) for s in sentences] == [(("Anna", "sings"), None), (("hi",), None)]


def test_tags_of_unlabelled_text_never_stop_it(write: Write) -> None:
    reading = read_file(write("pos.conll", "Anna NNP\nsings VBZ\n"), tag_use="hidden")
    assert [(s.words, s.tags) for s in reading.require()] == [(("Anna", "sings"), None)]
    assert "read without its tags" in reading.notes[-1]
    broken = read_file(write("broken.conll", "Anna NNP\nsings\n"), tag_use="hidden")
    assert broken.problems[0].line == 2
    stray = read_file(write("stray.conll", "Anna B-X\n\nsings I-X\n"), tag_use="hidden")
    assert [s.tags for s in stray.require()] == [None, None]


def test_reading_in_python_never_drops_tags_silently(write: Write) -> None:
    with pytest.raises(DataError, match=":2: found 'VBZ' as the tag"):
        read(write("bad.conll", "Anna B-PER\nsings VBZ\n"))


def test_a_damaged_gzip_is_an_error(write: Write) -> None:
    whole = gzip.compress(b"Anna\tB-PER\n\n" * 5000, mtime=0)
    with pytest.raises(DataError, match="unreadable"):
        read(write("a.conll.gz", whole[: len(whole) // 2]))


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_guessed_and_streamed(monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    content = b"Anna lives in Oslo.\nShe sings.\n"
    raw = io.BytesIO(gzip.compress(content, mtime=0) if packed else content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    source = Input("-")
    how = guess(source)
    assert how.format == "text"
    assert [s.words for s in stream(source, how)] == [("Anna", "lives", "in", "Oslo", "."), ("She", "sings", ".")]


def test_the_beginning_of_a_stream_is_looked_at_and_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"words": 70 * ["x" * 1000]})
    for content in (line, line + "\n" + line):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        source = Input("-")
        assert guess(source).format == "jsonl"
        assert {sum(map(len, s.words)) for s in stream(source, guess(source))} == {70_000}


def test_a_pipe_by_name(tmp_path: Path) -> None:
    import os
    import threading

    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("Anna\tB-PER\n\n",))
    writer.start()
    assert read(tmp_path / "pipe")[0].words == ("Anna",)
    writer.join()


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        Input("-")


def test_predicting_reads_tag_first_files_as_training_does(write: Write) -> None:
    source = Input(write("mit.bio", "O\tshow\nB-ACTOR\tsteve\n"))
    assert [s.words for s in stream(source, guess(source))] == [("show", "steve")]


def test_streaming_stops_at_the_first_malformed_line(write: Write) -> None:
    source = Input(write("a.jsonl", '{"words": ["a"]}\n{"words": 3}\n'))
    sentences = stream(source, guess(source))
    assert next(sentences).words == ("a",)
    with pytest.raises(DataError, match=":2:"):
        next(sentences)


def test_modules_of_other_formats_are_not_imported(write: Write) -> None:
    path, text = write("a.conll", "Anna\tB-PER\n"), write("a.txt", "Anna sings\n")
    code = (
        "import sys; from sequst.corpus.formats.read import read; read(sys.argv[1]); read(sys.argv[2]); "
        "print(*sorted(name for name in sys.modules if name.startswith('sequst.corpus.formats.')))"
    )
    done = subprocess.run([sys.executable, "-c", code, path, text], capture_output=True, text=True, check=True)
    assert [name.rpartition(".")[2] for name in done.stdout.split()] == ["columns", "detect", "plain", "read", "registry"]
