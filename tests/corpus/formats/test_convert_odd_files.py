"""Files that are odd but possible are read as they are, or refused with their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sequst.corpus.formats.convert import convert
from sequst.corpus.formats.read import read, read_file
from sequst.corpus.formats.write import write_sentences
from sequst.corpus.sentence import Sentence


@pytest.mark.parametrize("format", ["conll", "text", "brat"])
@pytest.mark.parametrize("name", ["a", "a.ann"])
def test_a_mark_that_is_a_word_is_not_taken_for_a_byte_order_mark(tmp_path: Path, format: str, name: str) -> None:
    write_sentences(tmp_path / name, format, [Sentence(("\ufeff", "Hi"), None if format == "text" else ("B-X", "O"), 1)])
    path = tmp_path if (format, name) == ("brat", "a.ann") else tmp_path / name
    assert [s.words for s in read(path, format=format)] == [("\ufeff", "Hi")]


def test_brat_documents_with_digits_that_are_no_numbers(tmp_path: Path) -> None:
    for name in ("a10", "a2", "²", "2²"):
        (tmp_path / f"{name}.txt").write_text("Hi\n")
        (tmp_path / f"{name}.ann").write_text("")
    assert [sentence.id for sentence in read(tmp_path)] == ["2²", "a2", "a10", "²"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes")
@pytest.mark.parametrize("name", ["b.txt", "b.ann"])
def test_a_pipe_among_documents_is_reported_and_not_opened(tmp_path: Path, name: str) -> None:
    for other in ("a.txt", "a.ann", "b.txt", "b.ann"):
        if other == name:
            os.mkfifo(tmp_path / other)
        else:
            (tmp_path / other).write_text("" if other.endswith("ann") else "Hi\n")
    (tmp_path / "folder.txt").mkdir()
    [problem] = read_file(tmp_path, tag_use="optional").problems
    assert (problem.file, problem.found) == (str(tmp_path / name), "no regular file")


def test_entities_that_spacy_itself_refuses_are_malformed(tmp_path: Path) -> None:
    spacy, numpy = pytest.importorskip("spacy"), pytest.importorskip("numpy")
    docs = [spacy.tokens.Doc(spacy.vocab.Vocab(), words=["Anna", "sings"], ents=["B-PER", "O"]) for _ in range(2)]
    label = docs[0].vocab.strings.add("X")
    inside = numpy.array([[2, 0], [1, label]], dtype="uint64")  # O, I-X
    docs[0].from_array([spacy.attrs.ENT_IOB, spacy.attrs.ENT_TYPE], inside)
    spacy.tokens.DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    reading = read_file(tmp_path / "a.spacy")
    assert [(problem.line, "that spaCy cannot read" in problem.found) for problem in reading.problems] == [(1, True)]
    assert [sentence.tags for sentence in reading.sentences] == [("B-PER", "O")]


def test_a_group_of_spans_of_an_empty_doc_is_reported(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    doc = spacy.tokens.Doc(spacy.vocab.Vocab(), words=[])
    doc.spans["sc"] = [spacy.tokens.Span(doc, 0, 0, "X")]
    spacy.tokens.DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    assert "of the span group sc" in read_file(tmp_path / "a.spacy").problems[0].found


def test_tokens_that_begin_with_white_space(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    tokens = '[{"text": "x", "start": 0, "end": 1}, {"text": " a", "start": 1, "end": 3}]'
    span = '{"start": 1, "end": 3, "token_start": 1, "token_end": 1, "label": "PER"}'
    (tmp_path / "a.jsonl").write_text(f'{{"text": "x a", "tokens": {tokens}, "spans": [{span}], "answer": "accept"}}')
    convert(tmp_path / "a.jsonl", tmp_path / "a.spacy")
    assert [(s.words, s.tags) for s in read(tmp_path / "a.spacy")] == [(("x", " a"), ("O", "B-PER"))]
