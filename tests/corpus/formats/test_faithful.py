"""Whatever is converted is read back as it was, or the sentence is named, and what of it the format cannot hold."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sequst.corpus.formats.convert import Conversion, convert
from sequst.corpus.formats.read import read_file
from sequst.corpus.formats.registry import CUT, FORMATS, MARKS
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Span, spans, tags_of
from sequst.errors import SequstError

Records = list[dict[str, Any]]
TARGETS = {
    "conll": "a.conll", "jsonl": "a.jsonl", "labelstudio": "a.json", "doccano": "a.jsonl", "prodigy": "a.jsonl",
    "argilla": "a.json", "brat": "a", "brat, one document": "a.ann", "text": "a.txt", "spacy": "a.spacy",
    "datasets": "a.parquet",
}  # fmt: skip
LIBRARIES = {"spacy": "spacy", "datasets": "datasets"}
CHEAP = [target for target in TARGETS if target not in LIBRARIES]

ODD = [
    *"\u00a0\u2003\u2028\u2029\u0085\x0b\x0c\x1c\x1f\x1b\x7f\u200b\ufeff\u0301\u200d\u202e\ufffe\U0001f44d\U0001f3fd",
    *"東é²#\"\\<[{a.- ", "-DOCSTART-", "T1", "\\n", "&nbsp;", "10", "km", "B-X", "O", "'s", "U.S.",
]  # fmt: skip
pieces = st.lists(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), min_size=1, max_size=3).map(
    "".join
)
words = pieces.filter(lambda word: word.strip(" ") and not re.search("[\t\r\n\0]", word))
gaps = st.sampled_from(["", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "\x1c"])
types = st.one_of(st.sampled_from(["X", "O", "B-X", ";", "a|b", "1", "東", "\ufeff", "-"]), pieces).filter(
    re.compile(r"[^\s\0]+").fullmatch
)
ids = st.one_of(
    st.none(), st.integers(0, 4), st.sampled_from(["1", "2", "", "a", "a/b", "..", "A", "²", "x" * 300, "é" * 120, "a.txt"]),
    st.integers(), pieces.filter(lambda text: "\0" not in text),
)  # fmt: skip


@st.composite
def entities(draw: st.DrawFn, count: int) -> list[Span]:
    found, at = [], 0
    while at < count:
        size = draw(st.integers(0, 2))
        if size and at + size <= count:
            found.append(Span(draw(types), at, at + size))
        at += size or 1
    return found


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A line of ours: words, or text and spans on pieces of it; tagged or not; with an id or without."""
    given = draw(st.lists(words, min_size=1, max_size=4))
    tagged = draw(st.integers(0, 3)) > 0
    found = draw(entities(len(given))) if tagged else []
    id_ = draw(ids)
    record: dict[str, Any] = {} if id_ is None else {"id": id_}
    record |= draw(st.sampled_from([{}, {}, {"judging": True}, {"judging": False}, {"judging": None}]))
    if draw(st.booleans()):
        return {**record, "words": given, **({"tags": tags_of(found, len(given))} if tagged else {})}
    text, places = "", []
    for word in given:
        places.append((len(text), len(text) + len(word)))
        text += word + draw(gaps)
    marks = [{"start": places[span.start][0], "end": places[span.end - 1][1], "type": span.type} for span in found]
    return {**record, "text": text, **({"spans": marks} if tagged else {})}


def write(path: Path, given: Records) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in given), encoding="utf-8")
    return path


def natural(sentence: Sentence, ids: bool, marks: bool) -> tuple[object, ...]:
    return (sentence.words, sentence.tags, str(sentence.id) if ids else "", marks and sentence.judging)


def covered(sentence: Sentence) -> list[tuple[str, str]]:
    """The entities: type and text."""
    text, offsets = sentence.as_text()
    return [(s.type, text[offsets[s.start][0] : offsets[s.end - 1][1]].strip()) for s in spans(sentence.tags or ())]


def require_faithful(source: Path, from_: str, folder: Path, name: str, policy: str) -> Path | None:
    """Convert, and compare what is read back. Nothing where the conversion was refused, with a place for every reason."""
    target, format = folder / TARGETS[name], name.partition(",")[0]
    error = ""
    try:
        done = convert(source, target, from_=from_, to=format, on_conflict=policy)
    except SequstError as caught:
        error = str(caught)
    if error:
        first, *places = error.split("\n")
        named = re.compile(rf"{re.escape(str(source.with_suffix('')))}\S*(:|, record )\d+: ")
        assert first.startswith("nothing was written") if places else "no sentence to write" in first
        assert all(map(named.match, places)), error
        assert not target.exists()
        return None
    reading = read_file(target, format=format, tag_use="optional")
    assert reading.problems == [], reading.problems
    require_told(done)
    with_ids = "ids" not in done.left_out and format not in ("conll", "text") and name != "brat, one document"
    with_marks = MARKS not in FORMATS[format].lacks
    expected = [
        natural(replace(sentence, id=number if sentence.id is None else sentence.id), with_ids, with_marks)
        for number, sentence in enumerate(done.sentences, 1)
    ]
    found = [natural(sentence, with_ids, with_marks) for sentence in reading.sentences]
    assert with_marks or not any(sentence.judging for sentence in reading.sentences)
    if name == "brat":  # a folder is read in the order of its names
        expected, found = sorted(expected, key=repr), sorted(found, key=repr)
    assert found == expected
    return target


def require_told(done: Conversion) -> None:
    """Every sentence that is written otherwise than it was read is named."""
    misfits = {str(misfit.source) for misfit in done.misfits}
    told = {what: {str(sentence.source) for sentence in sentences} for what, sentences in done.left_out.items()}
    written = {str(sentence.source): sentence for sentence in done.sentences}
    numbers = {str(sentence.source): number for number, sentence in enumerate(done.sentences, 1)}
    for sentence in done.reading.sentences:
        place = str(sentence.source)
        if place in misfits:
            continue
        now = written[place]
        if now.words != sentence.words:
            assert place in told[CUT]
        elif now.tags != sentence.tags:
            assert place in told["tags"]
        if sentence.judging and MARKS in FORMATS[done.written.format].lacks:
            assert place in told[MARKS]
        if "tags" not in told:
            assert covered(now) == covered(sentence)
        assert sentence.id == (numbers[place] if now.id is None else now.id)


FEW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
HARD: list[Records] = [
    [{"id": 2, "words": ["a"], "tags": ["O"]}, {"words": ["b"], "tags": ["O"]}],
    [{"words": ["a"]}, {"id": 1, "words": ["b"]}],
    [{"words": ["\u00a0", "a"], "tags": ["B-X", "O"]}],
    [{"words": ["\u00a0"], "tags": ["O"]}],
    [{"words": ["10\u00a0", "km"], "tags": ["B-X", "O"]}],
    [{"words": ["\ufeff", "a"], "tags": ["O", "O"]}],
    [{"words": ["New York"]}],
    [{"words": ["\U0001f44d", "\u00a0a", "b"], "tags": ["O", "B-X", "O"]}],
    [{"id": "x" * 300, "words": ["a"]}, {"id": "b", "words": ["a"]}],
    [{"id": "a", "words": ["a"]}, {"id": "A", "words": ["a"]}],
    [{"words": ["a"], "tags": ["B-X"], "judging": True}, {"words": ["b"], "tags": ["O"]}],
    [{"text": "a b", "spans": [], "judging": True}],
]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("policy", ["error", "drop", "trim"])
@pytest.mark.parametrize("given_", HARD, ids=lambda given_: json.dumps(given_)[:40])
def test_what_was_hard(given_: Records, policy: str, name: str, tmp_path: Path) -> None:
    pytest.importorskip(LIBRARIES.get(name, "json"))
    require_faithful(write(tmp_path / "source.jsonl", given_), "jsonl", tmp_path, name, policy)


@pytest.mark.parametrize("name", TARGETS)
@FEW
@given(given_=st.lists(records(), min_size=1, max_size=4), policy=st.sampled_from(["error", "drop", "trim"]))
def test_what_is_written_is_read_back(name: str, given_: Records, policy: str) -> None:
    pytest.importorskip(LIBRARIES.get(name, "json"))
    with tempfile.TemporaryDirectory() as folder:
        require_faithful(write(Path(folder) / "source.jsonl", given_), "jsonl", Path(folder), name, policy)


@pytest.mark.parametrize("first", CHEAP)
@FEW
@given(given_=st.lists(records(), min_size=1, max_size=3), second=st.sampled_from(CHEAP))
def test_what_is_written_is_converted_again(first: str, second: str, given_: Records) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "1").mkdir()
        (Path(folder) / "2").mkdir()
        source = write(Path(folder) / "source.jsonl", given_)
        between = require_faithful(source, "jsonl", Path(folder) / "1", first, "trim")
        if between is not None:
            require_faithful(between, first.partition(",")[0], Path(folder) / "2", second, "error")
