from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sequst.api import train
from sequst.corpus.sampling import Split
from sequst.methods.cvt import VIEWS, Views, read
from sequst.tagger.batches import Batch, collate
from sequst.tagger.encoders.bilstm import BiLstm
from sequst.tagger.tagger import Tagger
from tests.methods.test_self_training import QUICK, metrics, same_weights

WORDS = ["one", "two", "three", "four", "five"]
SEEN = {"forward": (0, 1, 2), "backward": (2, 3, 4), "future": (0, 1), "past": (3, 4)}
"""Of five words, those that the view of the middle one may look at."""


def batch_of(tagger: Tagger, words: list[str]) -> Batch:
    return collate(
        tagger.splitter.windows([words, ["a", "longer", "sentence", "of", "seven", "words", "."]]), [0, 1], tagger.pad_id
    )


@pytest.mark.parametrize("changed", range(5))
def test_a_view_of_a_bilstm_sees_no_word_that_it_must_not_see(changed: int) -> None:
    torch.manual_seed(1)
    tagger = Tagger.from_encoder("bilstm", ["O", "B-X", "I-X"], text=[WORDS, ["other"]], seed=1)
    assert isinstance(tagger.encoder, BiLstm)
    assert tagger.encoder.learnt is not None
    torch.nn.init.normal_(tagger.encoder.learnt.weight)
    views = Views(128, 3, 0.0)
    others = [*WORDS]
    others[changed] = "other"
    before, after = (views(*read(tagger, batch_of(tagger, words), None)[1:]) for words in (WORDS, others))
    for view in VIEWS:
        same = torch.equal(before[view][0, 2], after[view][0, 2])
        assert same == (changed not in SEEN[view]), view


@pytest.mark.parametrize("changed", range(5))
def test_a_view_of_a_transformers_states_sees_no_state_that_it_must_not_see(changed: int, tiny_encoder: str) -> None:
    torch.manual_seed(1)
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1)
    lstm = torch.nn.LSTM(tagger.encoder.width, 16, batch_first=True, bidirectional=True)
    views = Views(16, 3, 0.0)
    batch = batch_of(tagger, WORDS)
    states = tagger.hidden(batch)
    others = states.clone()
    others[0, changed] += 1.0
    found = []
    for given in (states, others):
        tagger.hidden = lambda batch, given=given: given  # type: ignore[method-assign, misc]
        found.append(views(*read(tagger, batch, lstm)[1:]))
    for view in VIEWS:
        same = torch.equal(found[0][view][0, 2], found[1][view][0, 2])
        assert same == (changed not in SEEN[view]), view


@pytest.mark.parametrize("encoder", ["tiny", "bilstm"])
def test_it_learns_from_unlabelled_batches_in_turn(encoder: str, split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    short = {**QUICK, "min_steps": 400, "max_steps": 40} if encoder == "tiny" else {"min_steps": 40, "epochs": 0.1}
    options: dict[str, Any] = {
        "encoder": tiny_encoder if encoder == "tiny" else encoder,
        "teacher": short,
        "dev": split.dev,
        "evaluations": 2,
    }
    alone = train(split.labeled, tmp_path / "alone", **options)
    result = train(
        split.labeled, tmp_path / "run", unlabeled=split.unlabeled[:60], method="cvt", cvt={"weight": 0.1}, **options
    )
    lines = [line for line in metrics(result.path) if line["phase"] == "teacher"]
    assert lines[-1]["step"] == 80  # every second one sees labelled sentences
    for view in VIEWS:
        assert lines[-1][f"apart_{view}"] > 0
    assert lines[-1]["labelled"] < lines[0]["labelled"]
    assert not same_weights(alone.tagger, result.tagger)
    assert result.tagger.state_dict().keys() == alone.tagger.state_dict().keys()  # the views are gone


def test_the_primary_head_is_a_target(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    """Nothing of an unlabelled step reaches the primary head."""
    from sequst.methods import cvt

    kept = cvt.CrossViews.loss
    checked = []

    def watched(self: Any, tagger: Tagger, batch: Batch) -> Any:
        loss, values = kept(self, tagger, batch)
        if "labelled" not in values:
            learners = [*tagger.head.parameters(), next(tagger.encoder.parameters())]
            *head, encoder = torch.autograd.grad(loss, learners, retain_graph=True, allow_unused=True)
            checked.append(all(gradient is None for gradient in head) and encoder.abs().sum() > 0)
        return loss, values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cvt.CrossViews, "loss", watched)
        options: dict[str, Any] = {"encoder": tiny_encoder, "teacher": QUICK, "head": "crf"}
        train(split.labeled, tmp_path / "run", unlabeled=split.unlabeled[:20], method="cvt", **options)
    assert len(checked) == 8
    assert all(checked)
