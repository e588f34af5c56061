from __future__ import annotations

import json
from pathlib import Path

import pytest

from sequst.annotation.export import WRITERS, find_writer, share_for
from sequst.annotation.next import Chosen
from sequst.corpus.formats.read import read, read_file
from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.tagger.prediction import Prediction

CHOSEN = [
    Chosen(Prediction(Sentence(("Anna", "sings"), id=4), ("B-PER", "O"), (0.75, 0.5)), 0.125),
    Chosen(Prediction(Sentence(("in", "New York")), ("O", "I-LOC"), (1.0, 1.0)), None),
]
"""One from a random choice of words that have no id, with a tag that IOB2 does not allow where it stands."""


@pytest.mark.parametrize("format", ["jsonl", "conll"])
def test_it_is_read_again_as_labelled_sentences(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"next.{format}"
    path.write_text("".join(find_writer(format)(CHOSEN)))
    found = read(path)
    assert [sentence.words for sentence in found] == [("Anna", "sings"), ("in", "New York")]
    assert [sentence.tags for sentence in found] == [("B-PER", "O"), ("O", "B-LOC")]


def test_scores_are_there() -> None:
    first, second = map(json.loads, WRITERS["jsonl"](CHOSEN))
    assert (first["id"], first["score"], first["entities"][0]["confidence"]) == (4, 0.125, 0.75)
    assert second["score"] is None
    assert "".join(WRITERS["conll"](CHOSEN[:1])) == "Anna\t0.7500\tB-PER\nsings\t0.5000\tO\n\n"


def test_annotation_tools_get_tasks_with_scores() -> None:
    first, second = json.loads("".join(WRITERS["labelstudio"](CHOSEN)))
    [prediction] = first["predictions"]
    assert [(region["value"]["labels"], region["score"]) for region in prediction["result"]] == [(["PER"], 0.75)]
    assert "annotations" not in second
    lines = [json.loads(line) for line in "".join(WRITERS["prodigy"](CHOSEN)).splitlines()]
    assert [line["text"] for line in lines] == ["Anna sings", "in New York"]
    assert all("answer" not in line for line in lines)


MARKED = Chosen(Prediction(Sentence(("Anna", "sings"), id=7, judging=True), (), ()), None)


@pytest.mark.parametrize("format", [name for name in WRITERS if name != "conll"])
def test_a_sentence_for_judging_has_its_mark_and_no_opinion(format: str, tmp_path: Path) -> None:
    path = tmp_path / "next"
    path.write_text("".join(find_writer(format)([MARKED, *CHOSEN[:1]])))
    reading = read_file(path, format=format, tag_use="optional", on_conflict="drop")
    first, second = reading.require()
    assert (first.words, first.tags, first.judging, second.judging) == (("Anna", "sings"), None, True, False)
    assert first.id == 7
    assert not any(str(misfit.source).endswith("1") for misfit in reading.misfits)  # nothing that somebody would have to accept


def test_columns_have_no_place_for_marks() -> None:
    assert (share_for("jsonl", None), share_for("doccano", 0.3), share_for("jsonl", 0.0)) == (0.2, 0.3, 0.0)
    assert share_for("conll", None) == share_for("conll", 0.0) == 0.0
    expected = "--format conll has no place for marks for judging; use --judging 0, or one of jsonl, labelstudio, doccano, "
    with pytest.raises(UsageError, match=expected):
        share_for("conll", 0.1)
    with pytest.raises(UsageError, match=expected):
        "".join(find_writer("conll")([MARKED]))


def test_an_unknown_format_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match="--format xml: use one of jsonl, conll, labelstudio, doccano, prodigy, argilla"):
        find_writer("xml")
