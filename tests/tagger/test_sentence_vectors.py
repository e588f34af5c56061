from __future__ import annotations

import pytest
import torch

from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.tagger.batches import collate
from sequst.tagger.predict import sentence_vectors
from sequst.tagger.tagger import Tagger


@pytest.mark.parametrize("encoder", ["tiny", "bilstm"])
def test_each_is_the_mean_of_its_words_whatever_stands_beside_it(tiny_encoder: str, encoder: str) -> None:
    sentences = generate().test[:30]
    name, text = (tiny_encoder if encoder == "tiny" else encoder), [sentence.words for sentence in sentences]
    tagger = Tagger.from_encoder(name, ["O", "B-x", "I-x"], text=text, seed=2)
    vectors = sentence_vectors(tagger, sentences)
    assert vectors.shape == (30, tagger.encoder.width)
    for vector, sentence in zip(vectors, sentences, strict=True):
        [window] = tagger.splitter.windows([sentence.words])
        with torch.inference_mode():
            states = tagger.hidden(collate([window], [0], tagger.pad_id))[0]
        assert len(states) == len(sentence)
        assert vector == pytest.approx(states.mean(0).numpy(), abs=1e-4)


def test_every_word_of_a_long_sentence_counts_once(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], max_length=12, overlap=4, seed=2)
    long = Sentence(tuple(word for sentence in generate().test[:5] for word in sentence.words))
    windows = tagger.splitter.windows([long.words])
    assert len(windows) > 2
    states = []
    for window in windows:
        batch = collate([window], [0], tagger.pad_id)
        with torch.inference_mode():
            states.append(batch.owned_of(tagger.hidden(batch)))
    assert len(torch.cat(states)) == len(long)
    assert sentence_vectors(tagger, [long])[0] == pytest.approx(torch.cat(states).mean(0).numpy(), abs=1e-4)


def test_a_sentence_without_words_is_nothing(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O"], seed=2)
    vectors = sentence_vectors(tagger, [Sentence(()), Sentence(("Oslo",))])
    assert not vectors[0].any()
    assert vectors[1].any()
    assert sentence_vectors(tagger, []).shape == (0, tagger.encoder.width)
