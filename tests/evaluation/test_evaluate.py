from __future__ import annotations

import pytest

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError
from sequst.evaluation.evaluate import evaluate
from sequst.evaluation.spans import score_spans
from sequst.tagger.tagger import Tagger


def test_counts_follow_from_the_predictions_and_unknown_types_are_missed(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=3)
    tagger.head.linear.weight.data *= 100
    sentences = [Sentence(("We", "play", "it"), ("B-X", "O", "B-NEW")), Sentence(("a", "b"), ("O", "B-NEW"))]
    evaluation = evaluate(tagger, sentences)
    predicted = [p.tags for p in tagger.predict(sentences)]  # type: ignore[union-attr]
    assert evaluation.scores == score_spans([s.tags or () for s in sentences], predicted)
    assert evaluation.unknown_types == {"NEW": 2}
    record = evaluation.to_dict()
    assert set(record) >= {"precision", "recall", "f1", "types", "ece", "sentences"}
    assert record["sentences"] == 2
    assert record["types"]["NEW"]["recall"] == 0
    assert record["f1"] == pytest.approx(evaluation.total.f1)
    with pytest.raises(SequstError, match="without tags cannot be scored: 'a b'"):
        evaluate(tagger, [Sentence(("a", "b"))])
