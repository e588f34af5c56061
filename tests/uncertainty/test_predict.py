from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.tagger.prediction import Prediction
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs
from sequst.uncertainty.predict import annotate_with_uncertainty


@pytest.fixture
def tagger(tiny_encoder: str) -> Tagger:
    return Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 20])
def test_every_sentence_comes_out_with_the_beliefs_of_its_chunk(tagger: Tagger, count: int) -> None:
    sentences = generate().test[:count]
    found = list(annotate_with_uncertainty(tagger, iter(sentences), passes=2, seed=3, chunk=8))
    assert [prediction.sentence for prediction in found] == sentences
    for number in range(0, count, 8):
        beliefs = form_beliefs(tagger, sentences[number : number + 8], 2, 3 + (number // 8 << 20))
        mine = found[number : number + 8]
        assert [x for prediction in mine for x in prediction.information_gains] == beliefs.information_gain.tolist()
        assert [x for prediction in mine for x in prediction.mc_confidences] == beliefs.confidence.tolist()
        assert [x for prediction in mine for x in prediction.confidences] == beliefs.plain_confidence.tolist()
        assert [tag for prediction in mine for tag in prediction.tags] == [tagger.labels[i] for i in beliefs.labels]


@pytest.mark.parametrize("count", [0, 3, 12, 14])
@pytest.mark.parametrize("lean", [True, False])
def test_what_was_read_before_a_malformed_place_comes_out(
    tagger: Tagger, count: int, lean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sentences() -> Iterator[Sentence]:
        yield from generate().test[:count]
        raise ValueError("the next line")

    found: list[Prediction] = []
    if not lean:
        monkeypatch.setattr("sequst.tagger.accel.layers.Layers.of", lambda encoder: None)
    with pytest.raises(ValueError, match="the next line"):
        found.extend(annotate_with_uncertainty(tagger, sentences(), passes=1, chunk=4))
    assert len(found) == count


def test_who_looks_on_may_use_the_tagger(tiny_encoder: str) -> None:
    """Whatever way it takes: the passes of the next sentences are not seen in between."""
    sentences = generate().test[:60]
    for encoder in (tiny_encoder, "bilstm"):
        tagger = Tagger.from_encoder(encoder, ["O", "B-x", "I-x"], text=[s.words for s in sentences], seed=2)
        expected = tagger.predict(sentences[0])
        for _ in annotate_with_uncertainty(tagger, iter(sentences), passes=3, chunk=10):
            assert tagger.predict(sentences[0]).confidences == expected.confidences


def test_who_stops_looking_does_not_wait(tagger: Tagger) -> None:
    few = annotate_with_uncertainty(tagger, itertools.cycle(generate().test), passes=1, chunk=50)
    next(few)
    before = threading.active_count()
    begun = time.monotonic()
    few.close()
    assert time.monotonic() - begun < 20
    assert threading.active_count() < before
