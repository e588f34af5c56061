"""Every format from and to sentences: round trips, units of offsets, what does not fit, what is malformed."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequst.corpus.formats.columns import write_conll
from sequst.corpus.formats.convert import Conversion, convert
from sequst.corpus.formats.detect import guess, open_input
from sequst.corpus.formats.read import read, read_file, stream
from sequst.corpus.formats.registry import MARKS
from sequst.corpus.formats.write import tasks, write_sentences
from sequst.corpus.sentence import Sentence, sentence_from_text
from sequst.corpus.tags import Span, tags_of
from sequst.errors import DataError, SequstError, UsageError

Write = Callable[..., Path]
NAMES = {
    "labelstudio": "a.json", "argilla": "a.json", "doccano": "a.jsonl", "prodigy": "a.jsonl", "jsonl": "a.jsonl",
    "brat": "a", "spacy": "a.spacy",
}  # fmt: skip
WITHOUT_LIBRARIES = [name for name in NAMES if name != "spacy"]

PIECES = ["Anna", "Oslo", "don't", "3.5", "👍🏽", "é", "नमस्ते", "שלום", "東京", "𝒜b", "B-52", "(", "U.S."]
GAPS = [" ", "  ", "", "\t", "\u00a0", "\u200f "]


@st.composite
def tagged(draw: st.DrawFn, gaps: tuple[str, ...] = (*GAPS, "\r\n", "\n")) -> Sentence:
    """A sentence cut from text of many scripts, with entities anywhere on its words, or not tagged at all."""
    pieces = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6))
    text = draw(st.sampled_from(["", " "])) + "".join(piece + draw(st.sampled_from(gaps)) for piece in pieces)
    sentence = sentence_from_text(text)
    if draw(st.integers(0, 4)) == 0:
        return sentence
    found, at = [], 0
    while at < len(sentence):
        size = draw(st.integers(0, 2))
        if size and at + size <= len(sentence):
            found.append(Span(draw(st.sampled_from(["PER", "LOC-x", "Ort"])), at, at + size))
        at += size or 1
    return replace(sentence, tags=tags_of(found, len(sentence)))


def the_same(left: list[Sentence], right: list[Sentence]) -> None:
    for ours, theirs in zip(left, right, strict=True):
        assert replace(ours, source=None) == replace(theirs, source=None)


def round_trip(format: str, sentences: list[Sentence]) -> None:
    sentences = [replace(sentence, id=number) for number, sentence in enumerate(sentences, 1)]
    folder = Path(tempfile.mkdtemp())
    try:
        write_sentences(folder / NAMES[format], format, sentences)  # type: ignore[arg-type]
        the_same(read(folder / NAMES[format], format=format), sentences)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("format", [name for name in WITHOUT_LIBRARIES if name != "brat"])
@settings(max_examples=60, deadline=None)
@given(sentences=st.lists(tagged(), min_size=1, max_size=3))
def test_a_round_trip_loses_nothing(format: str, sentences: list[Sentence]) -> None:
    round_trip(format, sentences)


@settings(max_examples=40, deadline=None)
@given(sentences=st.lists(tagged(tuple(GAPS)), min_size=1, max_size=3))
def test_a_round_trip_through_brat_loses_nothing_but_line_breaks(sentences: list[Sentence]) -> None:
    round_trip("brat", sentences)


@settings(max_examples=40, deadline=None)
@given(sentences=st.lists(tagged(), min_size=1, max_size=3))
def test_a_round_trip_through_spacy_loses_nothing(sentences: list[Sentence]) -> None:
    pytest.importorskip("spacy")
    round_trip("spacy", sentences)


def words_and_tags(sentences: list[Sentence]) -> list[tuple[object, ...]]:
    return [(sentence.words, sentence.tags) for sentence in sentences]


@settings(max_examples=60, deadline=None)
@given(sentences=st.lists(tagged(), min_size=1, max_size=3))
def test_columns_keep_every_word_and_tag(sentences: list[Sentence]) -> None:
    """All of them tagged, or none: in columns there is no other way."""
    for some in ([s for s in sentences if s.tags is not None], [s.without_tags() for s in sentences]):
        if some:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "a.conll"
                write_sentences(path, "conll", some)
                back = read(path, format="conll") if some[0].tags is not None else untagged(path)
            assert words_and_tags(back) == words_and_tags(some)


def untagged(path: Path) -> list[Sentence]:
    return read_file(path, format="conll", tag_use="ignored").require()


@settings(max_examples=20, deadline=None)
@given(sentences=st.lists(tagged(), min_size=1, max_size=3), named=st.booleans())
def test_a_dataset_keeps_every_word_tag_and_id(sentences: list[Sentence], named: bool) -> None:
    pytest.importorskip("datasets")
    given = [replace(s, id=f"s{number}" if named else number) for number, s in enumerate(sentences, 1)]
    with tempfile.TemporaryDirectory() as folder:
        write_sentences(Path(folder) / "a.parquet", "datasets", given)
        back = read(Path(folder) / "a.parquet")
    assert [(s.id, s.words, s.tags) for s in back] == [(s.id, s.words, s.tags) for s in given]


@pytest.mark.parametrize("format", WITHOUT_LIBRARIES)
def test_words_without_text_are_joined_by_spaces(tmp_path: Path, format: str) -> None:
    sentence = Sentence(("Anna", "Lind", "sings"), ("B-PER", "I-PER", "O"), 1)
    write_sentences(tmp_path / NAMES[format], format, [sentence])  # type: ignore[arg-type]
    [back] = read(tmp_path / NAMES[format], format=format)
    assert (back.words, back.tags) == (sentence.words, sentence.tags)
    assert back.text == (None if format == "jsonl" else "Anna Lind sings")


# what the tools themselves write, by hand

EMOJI = "💩This is an annotation."  # "annotation" begins at code point 12, at UTF-16 unit 13


def labelstudio(start: int, end: int, covered: str | None, text: str = EMOJI, **more: Any) -> str:
    value = {"start": start, "end": end, "labels": ["X"], **({} if covered is None else {"text": covered})}
    task = {"id": 7, "data": {"text": text}, "annotations": [{"result": [{"type": "labels", "value": value}]}], **more}
    return json.dumps([task])


@pytest.mark.parametrize("covered", ["annotation", None])
@pytest.mark.parametrize(("start", "counted"), [(12, ""), (13, "UTF-16 code units")])
def test_label_studio_counts_in_either_unit(write: Write, start: int, counted: str, covered: str | None) -> None:
    reading = read_file(write("a.json", labelstudio(start, start + 10, covered)))
    [sentence] = reading.require()
    assert sentence.id == 7
    assert sentence.tags == ("O", "O", "O", "O", "B-X", "O")
    assert sentence.words[4] == "annotation"
    assert reading.guess.format == "labelstudio"
    assert [counted in note for note in reading.notes] == ([True] if counted else [])


@pytest.mark.parametrize("start", [18, 21])
def test_doccano_counts_in_either_unit(write: Write, start: int) -> None:
    text = "👨🏻🚒 firemen drive firetrucks"  # three code points, six units, before the first space
    [sentence] = read(write("a.jsonl", json.dumps({"text": text, "label": [[start, start + 10, "X"]]})))
    assert sentence.tags is not None
    assert [word for word, tag in zip(sentence.words, sentence.tags, strict=True) if tag != "O"] == ["firetrucks"]


def test_offsets_that_cut_a_character(write: Write) -> None:
    lines = [{"text": "👍 Anna", "label": [[3, 7, "PER"]]}] * 2 + [{"text": "👍👍 Oslo", "label": [[1, 2, "X"]]}]
    problems = read_file(write("a.jsonl", "\n".join(map(json.dumps, lines)))).problems
    assert [(p.line, p.found) for p in problems] == [(3, "span 1 to 2, which cuts a character")]


@pytest.mark.parametrize("key", ["label", "labels", "entities"])
def test_doccano_in_its_forms(write: Write, key: str) -> None:
    entity = {"id": 3, "label": "LOC", "start_offset": 3, "end_offset": 7}
    item: Any = entity if key == "entities" else [3, 7, "LOC"]
    reading = read_file(write("a.jsonl", json.dumps({"id": 5, "text": "In Oslo", key: [item]})))
    assert reading.guess.format == "doccano"
    assert f"line 1 has {key}" in reading.guess.reason
    assert [(s.id, s.tags) for s in reading.require()] == [(5, ("O", "B-LOC"))]


SPAN = {"start": 4, "end": 8, "token_start": 2, "token_end": 2, "label": "PER"}
PRODIGY = {
    "text": "Hi  Anna",
    "_input_hash": 1,
    "tokens": [
        {"text": "Hi", "start": 0, "end": 2, "id": 0, "ws": True},
        {"text": " ", "start": 3, "end": 4, "id": 1, "ws": False},
        {"text": "Anna", "start": 4, "end": 8, "id": 2, "ws": False},
    ],
    "spans": [SPAN],
    "answer": "accept",
}


def test_prodigy(write: Write) -> None:
    reading = read_file(write("a.jsonl", json.dumps(PRODIGY)))
    assert reading.guess.format == "prodigy"
    [sentence] = reading.require()
    assert (sentence.words, sentence.tags, sentence.offsets) == (("Hi", "Anna"), ("O", "B-PER"), ((0, 2), (4, 8)))


def test_prodigy_keeps_its_own_words(write: Write) -> None:
    tokens = [{"text": "100", "start": 0, "end": 3}, {"text": "km", "start": 3, "end": 5}]  # our rule has one word here
    record = {"text": "100km", "tokens": tokens, "spans": [{"start": 0, "end": 3, "label": "NUM"}]}
    [sentence] = read(write("a.jsonl", json.dumps(record)))
    assert (sentence.words, sentence.tags) == (("100", "km"), ("B-NUM", "O"))


def test_predictions_for_prodigy_are_no_annotations_until_somebody_answers(tmp_path: Path, write: Write) -> None:
    sentence = Sentence(("Anna", "sings"), ("B-PER", "O"), 3)
    [line] = tasks("prodigy", [(sentence, [0.9])])
    done = convert(write("a.jsonl", line), tmp_path / "o.jsonl", on_conflict="drop")
    assert [s.tags for s in done.sentences] == [None]
    assert ["predictions that nobody has looked at" in str(misfit) for misfit in done.misfits] == [True]
    [answered] = read(write("b.jsonl", json.dumps({**json.loads(line), "answer": "accept"})))
    assert (answered.id, answered.tags) == (3, ("B-PER", "O"))


def argilla(**more: Any) -> dict[str, Any]:
    spans = [{"start": 3, "end": 7, "label": "LOC"}]
    responses = {"spans": [{"value": spans, "user_id": "u"}]}
    return {"id": "r1", "fields": {"text": "In Oslo"}, "suggestions": {}, "responses": responses, **more}


def test_argilla(write: Write) -> None:
    reading = read_file(write("a.json", json.dumps([argilla()])))
    assert reading.guess.format == "argilla"
    assert [(s.id, s.tags) for s in reading.require()] == [("r1", ("O", "B-LOC"))]


def test_one_brat_document_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.conll").write_text("Anna B-PER\n")
    kept = Path.open

    def refuse(path: Path, *more: Any, **options: Any) -> Any:
        if path.name.startswith(".out.ann."):
            raise OSError(5, "Input/output error")
        return kept(path, *more, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        with pytest.raises(SequstError, match="Input/output error"):
            convert(tmp_path / "in.conll", tmp_path / "out.ann")
    assert [path.name for path in tmp_path.iterdir()] == ["in.conll"]
    convert(tmp_path / "in.conll", tmp_path / "out.ann")
    assert (tmp_path / "out.txt").read_text() == "Anna\n"


def test_brat_counts_both_characters_of_a_line_end(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_bytes("👍 Hi\r\n\r\nIn Oslo\r\n".encode())
    (tmp_path / "d.ann").write_text("T1\tLOC 11 15\tOslo\n", encoding="utf-8")
    reading = read_file(tmp_path / "d.ann")
    assert [(s.id, s.text, s.tags) for s in reading.require()] == [
        ("d-1", "👍 Hi", ("O", "O")),
        ("d-3", "In Oslo", ("O", "B-LOC")),
    ]
    assert read_file(tmp_path).sentences == reading.sentences
    assert "there is d.ann" in read_file(tmp_path).guess.reason


# what does not fit


def spans_of(sentence: Sentence) -> list[str]:
    return [f"{word}/{tag}" for word, tag in zip(sentence.words, sentence.tags or (), strict=True) if tag != "O"]


@pytest.mark.parametrize(
    ("labels", "dropped", "trimmed", "said"),
    [
        ([[1, 9, "PER"]], [], ["Anna/B-PER", "Lind/I-PER"], "PER 'nna Lind' cuts 'Anna Lind'"),
        ([[0, 7, "PER"]], [], ["Anna/B-PER", "Lind/I-PER"], "PER 'Anna Li' cuts 'Anna Lind'"),  # half of a word is enough
        ([[0, 6, "PER"]], [], ["Anna/B-PER"], "trimmed to 'Anna'"),
        ([[1, 2, "PER"]], [], ["Anna/B-PER"], "trimmed to 'Anna'"),  # of a word that is all there is
        ([[0, 4, "A"], [0, 9, "B"]], ["Anna/B-A"], ["Anna/B-B", "Lind/I-B"], "overlaps"),
        ([[0, 9, "B"], [5, 9, "A"]], ["Anna/B-B", "Lind/I-B"], ["Anna/B-B", "Lind/I-B"], "A 'Lind' overlaps B 'Anna Lind'"),
        ([[0, 4, "Job Title"]], [], ["Anna/B-Job_Title"], "white space"),
        ([[4, 5, "X"]], [], [], "covers no word"),
    ],
)
def test_what_tags_cannot_hold(
    tmp_path: Path, write: Write, labels: list[Any], dropped: list[str], trimmed: list[str], said: str
) -> None:
    path = write("a.jsonl", json.dumps({"text": "Anna Lind sings", "label": labels}))
    with pytest.raises(SequstError, match=r"a.jsonl:1: found .* in 'Anna Lind sings'") as caught:
        convert(path, tmp_path / "out.conll")
    assert "nothing was written" in str(caught.value)
    assert not (tmp_path / "out.conll").exists()
    with pytest.raises(DataError, match="on-conflict"):
        read(path)
    for policy, expected in (("drop", dropped), ("trim", trimmed)):
        done = convert(path, tmp_path / "out.conll", on_conflict=policy)  # type: ignore[arg-type]
        assert [spans_of(sentence) for sentence in done.sentences] == [expected]
        assert len(done.misfits) == 1
        assert str(done.misfits[0]).startswith(f"{path}:1: 'Anna Lind sings': ")
    assert said in str(done.misfits[0])


def test_white_space_at_the_ends_of_a_span_is_no_conflict(write: Write) -> None:
    [sentence] = read(write("a.jsonl", '{"text": "Hi Anna !", "label": [[2, 8, "PER"]]}'))
    assert spans_of(sentence) == ["Anna/B-PER"]


@pytest.mark.parametrize("policy", ["drop", "trim"])
def test_a_rejected_answer_is_left_out_with_its_text(tmp_path: Path, write: Write, policy: str) -> None:
    records = [{**PRODIGY, "answer": answer} for answer in ("accept", "reject", "ignore")]
    path = write("a.jsonl", "\n".join(map(json.dumps, records)))
    assert [problem.line for problem in read_file(path).problems] == [2, 3]
    done = convert(path, tmp_path / "o.conll", on_conflict=policy)
    assert len(done.sentences) == 1
    assert [str(m).partition(": ")[2] for m in done.misfits] == [
        "'Hi  Anna': a rejected answer; the text is left out",
        "'Hi  Anna': an answer that was skipped; the text is left out",
    ]
    source = open_input(path)
    assert len(list(stream(source, guess(source)))) == 3  # to be tagged, it is text like any other


def test_brat_in_pieces_over_lines_and_with_relations(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("left and right hand\nNew\nYork City\n", encoding="utf-8")
    rows = ["T1\tX 0 4;15 19\tleft hand", "T2\tY 20 33\tNew York City", "R1\tof Arg1:T1 Arg2:T2", "#1\tNote T1\thm"]
    (tmp_path / "d.ann").write_text("\n".join(rows) + "\n", encoding="utf-8")
    reading = read_file(tmp_path / "d.ann")
    assert [(Path(p.file).name, p.line) for p in reading.problems] == [("d.ann", 1), ("d.ann", 2), ("d.ann", 3), ("d.ann", 4)]
    dropped = convert(tmp_path / "d.ann", tmp_path / "o.jsonl", on_conflict="drop")
    assert [spans_of(s) for s in dropped.sentences] == [[], [], []]
    trimmed = convert(tmp_path / "d.ann", tmp_path / "o.jsonl", on_conflict="trim")
    assert [spans_of(s) for s in trimmed.sentences] == [["left/B-X"], [], ["York/B-Y", "City/I-Y"]]
    assert any("a relation" in str(m) and "left out" in str(m) for m in trimmed.misfits)


def test_brat_on_a_line_of_white_space(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("Hi\n   \n", encoding="utf-8")
    (tmp_path / "d.ann").write_text("T1\tX 4 5\t \n", encoding="utf-8")
    done = convert(tmp_path / "d.ann", tmp_path / "o.jsonl", on_conflict="drop")
    assert ["X on a line of white space" in str(misfit) for misfit in done.misfits] == [True]


def test_tasks_that_nobody_or_several_have_done(tmp_path: Path, write: Write) -> None:
    region = {"type": "labels", "value": {"start": 0, "end": 4, "labels": ["PER"]}}
    answered = {"result": [region, {"type": "relation", "from_id": "a", "to_id": "b"}]}
    tasks_ = [
        {"data": {"text": "Anna"}, "annotations": [answered, {"result": []}]},
        {"data": {"text": "Anna"}, "annotations": [{"result": [region], "was_cancelled": True}]},
        {"data": {"text": "Anna"}, "predictions": [{"result": [region]}]},
        {"data": {"text": "Anna"}, "annotations": []},
    ]
    path = write("a.json", json.dumps(tasks_))
    done = convert(path, tmp_path / "o.jsonl", on_conflict="drop")
    assert [s.tags for s in done.sentences] == [("B-PER",), None, None, None]
    assert [str(m).partition(", ")[2] for m in done.misfits] == [
        "record 1: 'Anna': a relation; left out",
        "record 1: 'Anna': 2 annotations that differ; the first is kept",
        "record 2: 'Anna': an annotation that was skipped; left out",
        "record 3: 'Anna': predictions that nobody has looked at; left out",
    ]
    assert read_file(path, tag_use="hidden").problems == []
    assert "record 1" in read_file(path, tag_use="hidden").notes[-1]


def test_what_the_other_format_cannot_hold(tmp_path: Path, write: Write) -> None:
    lines = ['{"text": "Anna\\nsings", "label": [[0, 4, "PER"]]}', '{"text": "Hi there"}']
    path = write("a.jsonl", "\n".join(lines))
    with pytest.raises(SequstError) as caught:
        convert(path, tmp_path / "o.txt")
    assert f"{path}:1: 'Anna\\nsings': 1 entity, which plain text cannot hold; not written" in str(caught.value)
    assert f"{path}:1: 'Anna\\nsings': a line break in the text; not written" in str(caught.value)
    convert(path, tmp_path / "o.txt", on_conflict="drop")
    assert (tmp_path / "o.txt").read_text() == "Anna sings\nHi there\n"
    done = convert(path, tmp_path / "o.conll", on_conflict="drop")
    assert [m.what for m in done.misfits] == ["no tags, where other sentences have some"]
    assert (tmp_path / "o.conll").read_text() == "Anna\tB-PER\nsings\tO\n\n"


def test_a_word_that_columns_keep_for_themselves(tmp_path: Path, write: Write) -> None:
    path = write("a.jsonl", '{"words": ["-DOCSTART-"], "tags": ["O"]}\n{"words": ["Hi"], "tags": ["O"]}')
    with pytest.raises(SequstError, match=r"a.jsonl:1: '-DOCSTART-': the word -DOCSTART-, which columns set between"):
        convert(path, tmp_path / "o.conll")
    convert(path, tmp_path / "o.conll", on_conflict="drop")
    assert (tmp_path / "o.conll").read_text() == "Hi\tO\n\n"
    with pytest.raises(SequstError, match="sentence 1: a column file cannot hold the word -DOCSTART-"):
        write_conll(tmp_path / "p.conll", read(path))
    assert not (tmp_path / "p.conll").exists()


def told(done: Conversion) -> dict[str, list[int]]:
    """What the format has no place for, and in which lines it is."""
    return {what: [s.source.line for s in sentences if s.source] for what, sentences in done.left_out.items()}


def test_what_has_no_place_is_told_once(tmp_path: Path, write: Write) -> None:
    path = write("a.jsonl", '{"id": "x", "text": "Hi  Anna", "spans": []}\n{"text": "So", "spans": []}')
    assert told(convert(path, tmp_path / "o.conll")) == {"ids": [1], "texts": [1, 2]}
    assert told(convert(path, tmp_path / "o.txt")) == {"ids": [1], "tags": [1, 2]}
    assert told(convert(path, tmp_path / "p.jsonl")) == {}
    assert told(convert(tmp_path / "o.conll", tmp_path / "p.conll")) == {}
    tokens = [{"text": "100", "start": 0, "end": 3}, {"text": "km", "start": 3, "end": 5}]
    cut = write("b.jsonl", json.dumps({"text": "100km", "tokens": tokens, "spans": []}))
    assert told(convert(cut, tmp_path / "q.jsonl")) == {"texts of words that we would cut in another way": [1]}
    assert told(convert(cut, tmp_path / "q.json")) == {"words as they were cut": [1]}
    assert told(convert(cut, tmp_path / "r.jsonl", to="prodigy")) == {}


MARKED = Sentence(("Anna", "sings"), ("B-PER", "O"), 3, judging=True)


@pytest.mark.parametrize("format", [*NAMES, "datasets"])
def test_the_mark_for_judging_is_kept_or_said_to_be_lost(tmp_path: Path, format: str) -> None:
    pytest.importorskip({"spacy": "spacy", "datasets": "datasets"}.get(format, "json"))
    plain, name = replace(MARKED, id=4, words=("Bo", "sings"), judging=False), NAMES.get(format, "a.parquet")
    write_sentences(tmp_path / "in.jsonl", "jsonl", [MARKED, plain])
    done = convert(tmp_path / "in.jsonl", tmp_path / name, to=format)
    assert [sentence.judging for sentence in read(tmp_path / name, format=format)] == [format != "brat", False]
    assert told(done).get(MARKS, []) == ([1] if format == "brat" else [])
    assert told(convert(tmp_path / "in.jsonl", tmp_path / "b.conll"))[MARKS] == [1]
    assert told(convert(tmp_path / "in.jsonl", tmp_path / "b.txt", on_conflict="drop"))[MARKS] == [1]


@pytest.mark.parametrize("format", ["jsonl", "labelstudio", "doccano", "prodigy", "argilla"])
def test_only_marked_sentences_tell_of_marks(tmp_path: Path, format: str) -> None:
    write_sentences(tmp_path / "a", format, [replace(MARKED, judging=False)])
    assert "judging" not in (tmp_path / "a").read_text()
    write_sentences(tmp_path / "a", format, [MARKED])
    text = (tmp_path / "a").read_text()
    assert '"judging": true' in text
    for wrong in ("1", '"yes"', "[]"):
        (tmp_path / "a").write_text(text.replace('"judging": true', f'"judging": {wrong}'))
        [problem] = read_file(tmp_path / "a", format=format).problems
        assert (problem.file, problem.line) == (str(tmp_path / "a"), 1)
        assert problem.found.startswith("judging ")
        assert problem.expected == "true or false as judging"
    (tmp_path / "a").write_text(text.replace('"judging": true', '"judging": null'))
    assert not read(tmp_path / "a", format=format)[0].judging


def test_doccano_gives_unknown_columns_back_where_its_version_has_them(write: Write) -> None:
    lines = [{"text": "a", "label": [], key: {"judging": True}} for key in ("meta", "metadata")]
    lines += [{"text": "a", "label": [], "judging": None}, {"text": "a", "label": [], "meta": "judging"}]
    sentences = read(write("a.jsonl", "\n".join(map(json.dumps, lines))))
    assert [sentence.judging for sentence in sentences] == [True, True, False, False]


def test_a_mark_that_is_no_boolean_is_named_in_docs_and_rows(tmp_path: Path) -> None:
    spacy, datasets = pytest.importorskip("spacy"), pytest.importorskip("datasets")
    docs = [spacy.tokens.Doc(spacy.vocab.Vocab(), words=["Anna"], ents=["B-PER"]) for _ in range(2)]
    docs[1].user_data["judging"] = "yes"
    spacy.tokens.DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    rows = {"tokens": [["a"], ["b"]], "ner_tags": [["O"], ["O"]], "judging": [0, 1]}
    datasets.Dataset.from_dict(rows).to_parquet(tmp_path / "a.parquet")
    assert [(p.line, p.found) for p in read_file(tmp_path / "a.spacy").problems] == [(2, "judging 'yes'")]
    assert [(p.line, p.found) for p in read_file(tmp_path / "a.parquet").problems] == [(1, "judging 0"), (2, "judging 1")]


def test_the_input_is_not_written_over(tmp_path: Path, write: Write) -> None:
    path = write("a.jsonl", '{"words": ["Hi"], "tags": ["O"]}')
    (tmp_path / "b.jsonl").symlink_to(path)
    for target in (path, tmp_path / "b.jsonl"):
        with pytest.raises(UsageError, match="is also an input"):
            convert(path, target)
    assert path.read_text() == '{"words": ["Hi"], "tags": ["O"]}'


def test_no_part_of_the_input_is_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "brat"
    folder.mkdir()
    (folder / "d.txt").write_text("In Oslo\n")
    (folder / "d.ann").write_text("T1\tLOC 3 7\tOslo\n")
    for source, target in ((folder / "d.ann", folder / "d.txt"), (folder, folder / "d.txt"), (folder, folder / "d.ann")):
        with pytest.raises(UsageError, match="is also an input"):
            convert(source, target, to="conll", on_conflict="drop")
    convert(folder, folder / "new.conll")  # beside it there is room
    assert (folder / "d.txt").read_text() == "In Oslo\n"


@pytest.mark.parametrize("name", ["a.spacy.gz", "a.parquet.gz", "a.ann.gz"])
def test_what_is_not_written_compressed(tmp_path: Path, write: Write, name: str) -> None:
    path = write("a.jsonl", '{"words": ["Hi"], "tags": ["O"]}')
    with pytest.raises(UsageError, match=rf"name it .*{name.removesuffix('.gz')}"):
        convert(path, tmp_path / name)


def test_files_of_our_own_can_be_put_together(tmp_path: Path, write: Write) -> None:
    """Their ids are numbers where nobody gave any, and come twice then."""
    convert(write("a.conll", "Hi\tO\n\nAnna\tB-PER\n"), tmp_path / "a.jsonl")
    (tmp_path / "both.jsonl").write_text(2 * (tmp_path / "a.jsonl").read_text())
    assert [sentence.id for sentence in read(tmp_path / "both.jsonl")] == [1, 2, 1, 2]


@pytest.mark.parametrize("format", ["labelstudio", "doccano", "prodigy", "argilla", "jsonl"])
def test_numbers_in_place_of_ids_are_nobodys_ids(tmp_path: Path, format: str) -> None:
    """The second of them has no id, and the number that the first has."""
    path = tmp_path / NAMES[format]
    write_sentences(path, format, [Sentence(("a",), ("O",), 2), Sentence(("b",), ("O",))])  # type: ignore[arg-type]
    assert [(s.id, s.words) for s in read(path, format=format)] == [(2, ("a",)), (2, ("b",))]


@pytest.mark.parametrize("name", ["a.parquet", "a.spacy"])
def test_numbers_of_any_size_are_ids(tmp_path: Path, name: str) -> None:
    pytest.importorskip("datasets" if name == "a.parquet" else "spacy")
    write_sentences(tmp_path / name, "datasets" if name == "a.parquet" else "spacy", [Sentence(("a",), ("O",), 10**20)])
    assert read(tmp_path / name)[0].id == str(10**20)


def test_tasks_of_one_document_have_ids_of_their_own(write: Write) -> None:
    tasks_ = [{"id": n, "data": {"text": f"line {n}", "id": "document 7"}, "annotations": [{"result": []}]} for n in (4, 5)]
    assert [sentence.id for sentence in read(write("a.json", json.dumps(tasks_)))] == [4, 5]


@pytest.mark.parametrize("content", ['[{"data": {"text": "Hi"}}]', '[\n {\n  "data": {"text": "Hi"}}]'])
def test_a_list_of_tasks_is_known_without_its_extension(write: Write, content: str) -> None:
    reading = read_file(write("export", content), tag_use="optional")
    assert reading.guess.format == "labelstudio"
    assert [sentence.words for sentence in reading.require()] == [("Hi",)]
    argilla_ = read_file(write("other", json.dumps([argilla()])))
    assert argilla_.guess.format == "argilla"
    assert read_file(write("text", "[1] Hi\n"), tag_use="optional").guess.format == "text"


def test_line_breaks_that_label_studio_writes_out(write: Write) -> None:
    value = {"start": 0, "end": 12, "text": "Ada\\nLovelace", "labels": ["PER"]}
    task = {"data": {"text": "Ada\nLovelace ok"}, "annotations": [{"result": [{"type": "labels", "value": value}]}]}
    assert read(write("a.json", json.dumps([task])))[0].tags == ("B-PER", "I-PER", "O")


def test_groups_of_spans_are_reported_without_entities_too(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    doc = spacy.blank("en")("Anna in Oslo")
    doc.spans["sc"] = [spacy.tokens.Span(doc, 2, 3, "LOC")]
    spacy.tokens.DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "a.spacy")
    done = convert(tmp_path / "a.spacy", tmp_path / "o.jsonl", on_conflict="drop")
    assert ["of the span group sc" in str(misfit) for misfit in done.misfits] == [True]


# what is malformed


@pytest.mark.parametrize(
    ("format", "content", "where", "found", "expected"),
    [
        ("labelstudio", '[{"data": {"text": "a"}}', ":1", "invalid JSON", "a whole file"),
        ("labelstudio", '{"data": 1}', ":1", "{'data': 1}", "a list of tasks"),
        ("labelstudio", '[{"text": "a", "label": []}]', ", record 1", "'text'", "not JSON-MIN"),
        ("labelstudio", '[{"data": {"a": "x", "b": "y"}}]', ", record 1", "'a', 'b'", "under the key text"),
        ("labelstudio", labelstudio(0, 99, None), ", record 1", "span 0 to 99", "23"),
        ("labelstudio", labelstudio(5, 2, None), ", record 1", "span 5 to 2", "start < end"),
        ("labelstudio", labelstudio(5, 5, None), ", record 1", "span 5 to 5", "start < end"),
        ("labelstudio", '[{"data": {"text": "a"}, "annotations": 1}]', ", record 1", "annotations 1", "a list"),
        ("labelstudio", '[{"id": 1, "data": {"text": "a"}}, {"id": 1, "data": {"text": "b"}}]', ", record 2", "1 again", "own"),
        ("labelstudio", b'[{"data": {"text": "\xff"}}]', ":1", "0xff", "UTF-8"),
        ("doccano", '{"text": "a", "label": ["pos"]}', ":1", "'pos'", "sequence labeling"),
        ("doccano", '{"text": 3, "label": []}', ":1", "text 3", "a string"),
        ("doccano", '{"text": "a", "label": [[0, "1", "X"]]}', ":1", "span 0 to '1'", "whole numbers"),
        ("doccano", '{"text": "a", "label": [[0, 1, ""]]}', ":1", "'' as the type", "a string"),
        ("doccano", '{"text": "a", "label": [[0, 1, "X"]', ":1", "invalid JSON", "one object a line"),
        ("prodigy", '{"text": "a", "answer": "yes"}', ":1", "answer 'yes'", "accept"),
        ("prodigy", '{"text": "ab", "tokens": [{"text": "b", "start": 0, "end": 1}]}', ":1", "token", "as they stand"),
        ("prodigy", json.dumps({**PRODIGY, "spans": [{**SPAN, "token_start": 0}]}), ":1", "tokens 0 to 2", "same"),
        ("argilla", '[{"fields": {"text": "a"}, "responses": [{"values": {}}]}]', ", record 1", "responses", "Argilla 2"),
        ("prodigy", '{"text": "a b", "tokens": [{"text": "a", "start": 0, "end": 1}]}', ":1", "'b' in no token", "all of"),
        ("conll", "a\tO\rb\tB-X\r\rc\tO\r", ":1", "a carriage return in", "a line feed"),
        ("argilla", '[{"text": "a"}]', ", record 1", "'text'", "fields"),
        ("argilla", '[{"id": [], "fields": {"text": "a"}}]', ", record 1", "id []", "a number"),
    ],
)  # fmt: skip
def test_malformed_records_are_named(
    tmp_path: Path, write: Write, format: str, content: str | bytes, where: str, found: str, expected: str
) -> None:
    path = write("in", content)
    problem = read_file(path, format=format, tag_use="optional").problems[0]
    assert str(problem).startswith(f"{path}{where}: found ")
    assert found in problem.found
    assert expected in problem.expected
    with pytest.raises(SequstError, match="nothing was written"):
        convert(path, tmp_path / "out.conll", from_=format, on_conflict="trim")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("row", "found", "expected"),
    [
        ("T1\tX 0 99\tAnna", "span 0 to 99", "the length of the text"),
        ("T1\tX 0 4\tLind", "'Lind' at 0 4, where the text has 'Anna'", "that was annotated"),
        ("T1\tX 4 0\tAnna", "span 4 to 0", "start < end"),
        ("T1\tX 0 4", "T1\\tX 0 4", "a tab and the text"),
        ("T1 X 0 4 Anna", "T1 X 0 4", "a tab"),
        ("T1\tX 0 4\tAnna\nT1\tX 5 9\tLind", "'T1' again", "of its own"),
    ],
)
def test_malformed_annotations_of_brat_are_named(tmp_path: Path, row: str, found: str, expected: str) -> None:
    (tmp_path / "d.txt").write_text("Anna Lind\n")
    (tmp_path / "d.ann").write_text(row + "\n")
    problem = read_file(tmp_path / "d.ann").problems[0]
    assert problem.file == str(tmp_path / "d.ann")
    assert problem.line == row.count("\n") + 1
    assert found in problem.found
    assert expected in problem.expected


def test_a_text_that_is_missing_or_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "d.ann").write_text("")
    with pytest.raises(UsageError, match=r"no d\.txt beside it"):
        read(tmp_path / "d.ann")
    (tmp_path / "d.txt").write_bytes(b"a\n\xff\n")
    assert [(p.line, "0xff" in p.found) for p in read_file(tmp_path).problems] == [(2, True)]


def test_all_malformed_records_are_listed_at_once(tmp_path: Path, write: Write) -> None:
    path = write("a.jsonl", '{"text": 1, "label": []}\n{"text": "a", "label": []}\n{"text": "b", "label": [[0, 9, "X"]]}\n')
    with pytest.raises(SequstError, match=r"(?s)because of 2 places:.*a\.jsonl:1: .*a\.jsonl:3: "):
        convert(path, tmp_path / "o.conll")


@pytest.mark.parametrize("format", ["jsonl", "labelstudio", "doccano", "prodigy", "argilla", "brat"])
def test_a_nul_is_no_text(tmp_path: Path, format: str) -> None:
    """A column file could hold it, and nobody could read that."""
    sentences = [sentence_from_text(text, id) for id, text in enumerate(("Hi Anna", "a \0 b"), 1)]
    path = tmp_path / NAMES[format]
    write_sentences(path, format, [replace(s, tags=("O",) * len(s)) for s in sentences])  # type: ignore[arg-type]
    with pytest.raises(SequstError, match="NUL") as caught:
        convert(path, tmp_path / "o.conll", from_=format)
    assert re.search(r"a\.jsonl:2: |a\.json, record 2: |2\.txt:1: ", str(caught.value))
    assert not (tmp_path / "o.conll").exists()


@pytest.mark.parametrize("word", ["a\0", "a\tb", "a\n"])
def test_what_cannot_stand_in_a_column_file_is_not_written(tmp_path: Path, word: str) -> None:
    with pytest.raises(SequstError, match=r"o\.conll: sentence 2: a column file cannot hold the word 'a"):
        write_conll(tmp_path / "o.conll", [Sentence(("Hi",), ("O",)), Sentence(("Hi", word), ("O", "O"))])
    assert list(tmp_path.iterdir()) == []


# where things go


def test_the_output_goes_by_its_extension_or_as_told(tmp_path: Path, write: Write) -> None:
    path = write("a.conll", "Anna\tB-PER\n\n")
    assert convert(path, tmp_path / "o.json").written.format == "labelstudio"
    assert convert(path, tmp_path / "p.jsonl", to="prodigy").written.reason == "as told"
    assert read_file(tmp_path / "p.jsonl").guess.format == "prodigy"
    with pytest.raises(UsageError, match="--to brat"):
        convert(path, tmp_path / "folder")
    assert spans_of(convert(path, tmp_path / "folder", to="brat").sentences[0]) == ["Anna/B-PER"]
    assert sorted(p.name for p in (tmp_path / "folder").iterdir()) == ["1.ann", "1.txt"]
    with pytest.raises(UsageError, match="not empty"):
        convert(path, tmp_path / "folder", to="brat")
    write("b.txt", "mine")
    with pytest.raises(UsageError, match="there already"):
        convert(path, tmp_path / "b.ann")


def test_predictions_are_something_to_look_at_and_not_an_answer(write: Write) -> None:
    sentence = Sentence(("Anna", "in", "Oslo"), ("B-PER", "O", "B-LOC"), 1)
    [task] = json.loads("".join(tasks("labelstudio", [(sentence, [0.9, 0.5])])))
    assert "annotations" not in task
    assert task["predictions"][0]["score"] == 0.5
    assert [region["score"] for region in task["predictions"][0]["result"]] == [0.9, 0.5]
    [record] = json.loads("".join(tasks("argilla", [(sentence, [0.9, 0.5])])))
    assert record["responses"] == {}
    assert record["suggestions"]["spans"]["score"] == [0.9, 0.5]
    record = json.loads("".join(tasks("prodigy", [(sentence, [0.9, 0.5])])))
    assert "answer" not in record
    assert [span["score"] for span in record["spans"]] == [0.9, 0.5]
    assert "".join(tasks("argilla", [])) == "[]\n"


# with the libraries themselves


def test_spacy_reads_what_we_write(tmp_path: Path, write: Write) -> None:
    pytest.importorskip("spacy")
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    path = write("a.jsonl", '{"text": " 👍  Anna Lind\\nsings", "label": [[4, 13, "PER"]]}')
    convert(path, tmp_path / "o.spacy")
    [doc] = DocBin().from_disk(tmp_path / "o.spacy").get_docs(Vocab())
    assert doc.text == " 👍  Anna Lind\nsings"
    assert [(e.text, e.label_, e.start_char) for e in doc.ents] == [("Anna Lind", "PER", 4)]


def test_spacy_with_groups_of_spans_and_damaged(tmp_path: Path, write: Write) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin, Span

    doc = Doc(spacy.vocab.Vocab(), words=["Anna", "sings"], ents=["B-PER", "O"])
    doc.spans["sc"] = [Span(doc, 0, 2, "CLAUSE")]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    assert "CLAUSE 'Anna sings' of the span group sc" in read_file(tmp_path / "a.spacy").problems[0].found
    done = convert(tmp_path / "a.spacy", tmp_path / "o.conll", on_conflict="drop")
    assert done.sentences[0].tags == ("B-PER", "O")
    damaged = write("b.spacy", (tmp_path / "a.spacy").read_bytes()[:40])
    assert "no DocBin" in str(read_file(damaged).problems[0])


def test_datasets_as_folder_and_parquet(tmp_path: Path, write: Write) -> None:
    datasets = pytest.importorskip("datasets")
    path = write("a.conll", "Anna\tB-PER\nsings\tO\n\nOslo\tB-LOC\n\n")
    for target in ("saved", "a.parquet"):
        convert(path, tmp_path / target, to="datasets")
        reading = read_file(tmp_path / target)
        assert reading.guess.format == "datasets"
        assert [(s.words, s.tags, s.id) for s in reading.require()] == [
            (("Anna", "sings"), ("B-PER", "O"), 1),
            (("Oslo",), ("B-LOC",), 2),
        ]
    saved = datasets.load_from_disk(str(tmp_path / "saved"))
    assert saved.features["ner_tags"].feature.names == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    datasets.DatasetDict({"train": saved, "test": saved.select([1])}).save_to_disk(str(tmp_path / "splits"))
    with pytest.raises(UsageError, match=r"which split.*train, test"):
        read(tmp_path / "splits")
    assert [s.words for s in read(f"{tmp_path}/splits#test")] == [("Oslo",)]


def test_datasets_that_are_none(tmp_path: Path, write: Write) -> None:
    pytest.importorskip("datasets")
    assert "no dataset" in str(read_file(write("a.parquet", b"PAR1")).problems[0])


def test_datasets_as_they_lie_on_the_hub(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of parquet files, by split; a configuration by its name."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    convert(write("a.conll", "Anna\tB-PER\nsings\tO\n"), tmp_path / "a.parquet")
    for split in ("train", "test"):
        (tmp_path / "cloned" / "data").mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / "a.parquet", tmp_path / "cloned" / "data" / f"{split}-00000-of-00001.parquet")
    assert [s.tags for s in read(f"{tmp_path}/cloned#test")] == [("B-PER", "O")]
    asked = []

    def load_dataset(name: str, configuration: str | None) -> Any:
        asked.append((name, configuration))
        return datasets.Dataset.from_dict({"tokens": [["Hi"]], "ner_tags": [["O"]]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert [s.words for s in read("somebody/theirs:english#train", format="datasets")] == [("Hi",)]
    assert asked == [("somebody/theirs", "english")]
    with pytest.raises(UsageError, match="no such file; for a dataset of that name on the hub"):
        read("somebody/theirs")
