from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from sequst.corpus.sampling import Split
from sequst.errors import UsageError
from sequst.tagger.accel.forward import Forward
from sequst.tagger.batches import collate
from sequst.tagger.predict import label_words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import Beliefs, form_beliefs
from sequst.uncertainty.passes import mc_passes


@pytest.fixture
def tagger(tiny_encoder: str) -> Tagger:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], max_length=12, overlap=4, seed=1)
    tagger.head.linear.weight.data *= 50
    return tagger


def test_labels_are_those_without_dropout_and_the_same_every_time(tagger: Tagger, split: Split) -> None:
    beliefs = form_beliefs(tagger, split.dev, passes=3, seed=4)
    plain = label_words(tagger, split.dev)
    assert np.array_equal(beliefs.labels, plain.labels)
    assert np.array_equal(beliefs.plain_confidence, plain.confidences)
    assert np.array_equal(beliefs.starts, plain.starts)
    again = form_beliefs(tagger, split.dev, passes=3, seed=4)
    assert np.array_equal(beliefs.information_gain, again.information_gain)
    assert not np.array_equal(beliefs.information_gain, form_beliefs(tagger, split.dev, passes=3, seed=5).information_gain)
    assert not tagger.training


def test_equals_passes_kept_whole(tagger: Tagger, split: Split) -> None:
    """The streamed sums against all passes of one batch held at once."""
    sentence = [next(s for s in split.dev if len(s) < 8)]
    beliefs = form_beliefs(tagger, sentence, passes=6, seed=9)
    windows = tagger.splitter.windows([sentence[0].words])
    assert len(windows) == 1
    batch = collate(windows, [0], tagger.pad_id)
    with torch.no_grad():
        passes = mc_passes(tagger, Forward(tagger), batch, 6, 9)
        kept = torch.cat([log_probs[:, 0].exp().double() for log_probs in passes])  # (T, W, C)
    mean = kept.mean(0)
    gain = -(mean * mean.log()).sum(-1) + (kept * kept.log()).sum(-1).mean(0)
    confidence = mean.gather(-1, torch.tensor(beliefs.labels).unsqueeze(-1)).squeeze(-1)
    assert beliefs.information_gain == pytest.approx(gain.numpy(), abs=1e-6)
    assert beliefs.confidence == pytest.approx(confidence.numpy(), abs=1e-6)


def test_without_dropout_there_is_nothing_to_gain(tagger: Tagger, split: Split) -> None:
    for module in tagger.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    beliefs = form_beliefs(tagger, split.dev, passes=3, seed=4)
    assert float(beliefs.information_gain.max()) < 1e-6
    assert beliefs.confidence == pytest.approx(beliefs.plain_confidence, abs=1e-5)


def test_certainty_is_cut_at_zero() -> None:
    gains = np.array([0.0, 0.25, 1.5], dtype=np.float32)
    one = np.ones(3, dtype=np.float32)
    beliefs = Beliefs(np.zeros(3, dtype=np.int64), one, one, gains, np.array([0, 1, 3]))
    assert beliefs.certainty.tolist() == [1.0, 0.75, 0.0]
    assert beliefs.sentence_of.tolist() == [0, 1, 1]


def test_no_pass_and_a_file(tagger: Tagger, split: Split, tmp_path: Path) -> None:
    beliefs = form_beliefs(tagger, split.dev, passes=0, seed=1)
    assert np.array_equal(beliefs.confidence, beliefs.plain_confidence)
    assert not beliefs.information_gain.any()
    some = form_beliefs(tagger, split.dev, passes=2, seed=1)
    (tmp_path / "b.npz").write_bytes(some.to_bytes())
    again = Beliefs.from_file(tmp_path / "b.npz")
    assert all(
        np.array_equal(getattr(some, name), getattr(again, name))
        for name in ("labels", "confidence", "information_gain", "starts")
    )


@pytest.mark.parametrize("passes", [0, 2])
def test_probabilities_of_all_labels(passes: int, tagger: Tagger, split: Split, tmp_path: Path) -> None:
    words: list[int] = []
    beliefs = form_beliefs(tagger, split.dev, passes, seed=1, probabilities=True, advance=words.append)
    assert sum(words) == len(beliefs)
    assert beliefs.probabilities is not None
    assert beliefs.probabilities.sum(-1) == pytest.approx(np.ones(len(beliefs)), abs=1e-5)
    assert beliefs.probabilities[np.arange(len(beliefs)), beliefs.labels] == pytest.approx(beliefs.confidence, abs=1e-6)
    (tmp_path / "b.npz").write_bytes(beliefs.to_bytes())
    again = Beliefs.from_file(tmp_path / "b.npz").probabilities
    assert again is not None
    assert np.array_equal(again, beliefs.probabilities)


def test_misuse(tagger: Tagger, split: Split) -> None:
    with pytest.raises(UsageError, match="at least 0"):
        form_beliefs(tagger, split.dev, passes=-1, seed=1)
