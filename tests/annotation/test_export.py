from __future__ import annotations

import json
from pathlib import Path

import pytest

from sequst.annotation.export import WRITERS, find_writer
from sequst.annotation.next import Chosen
from sequst.corpus.formats.read import read
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


def test_an_unknown_format_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match="--format xml: use one of jsonl, conll, labelstudio, doccano, prodigy, argilla"):
        find_writer("xml")
