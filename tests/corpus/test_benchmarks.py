"""The real benchmarks, where SEQUST_DATA names a folder that has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sequst.corpus.formats.read import read_file
from sequst.corpus.sampling import sample

DATA = os.environ.get("SEQUST_DATA")
pytestmark = [pytest.mark.benchmark_data, pytest.mark.skipif(not DATA, reason="SEQUST_DATA is not set")]

# sentences of the training set, entity types, sentences of a 10-shot draw
EXPECTED = {
    "conll03": (14_041, 4, 40),
    "snips": (13_084, 39, 390),
    "mit_movie": (7_816, 12, 120),
    "mit_restaurant": (7_660, 8, 80),
    "multiwoz": (20_300, 14, 140),
    "ontonotes": (59_923, 18, 180),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_sizes_and_ten_shot_draws(name: str) -> None:
    path = Path(DATA or "") / name / "train.txt.gz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    reading = read_file(path)
    sentences, types, labelled = EXPECTED[name]
    assert reading.guess.format == "conll"
    assert len(reading.require()) == sentences
    split = sample(reading.sentences, 10)
    assert len(split.summary()["unlabeled"]["types"]) == types
    assert len(split.labeled) == labelled
    assert not split.short
