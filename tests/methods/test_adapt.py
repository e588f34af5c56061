from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from sequst.api import resume
from sequst.corpus.sampling import Split
from sequst.methods.adapt import HiddenWords
from sequst.tagger.accel.fused_encoder import FusedEncoder
from sequst.tagger.batches import collate
from sequst.tagger.tagger import Tagger
from sequst.training.accel.graphs import RecordedSteps
from sequst.training.checkpoint import load_state
from sequst.training.device import make_accelerator
from sequst.training.loop import Examples, Hooks, PhaseSpec, fit
from sequst.training.noise import hide_words
from sequst.training.progress import Progress
from sequst.training.settings import PhaseSettings, Settings
from tests.methods.test_self_training import run
from tests.test_api import metrics
from tests.training.test_loop import equal, weights
from tests.training.test_steps import calls_of, refuse

READING = {"adapt": True, "adaptation": {"epochs": 20.0, "learning_rate": 2e-3}, "max_rounds": 1}


def test_only_hidden_words_count(tiny_encoder: str, split: Split) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O"], seed=1)
    text = [s.words for s in split.labeled]
    windows = tagger.splitter.windows(text)
    first = [[window.ids[head] for head in window.heads] for window in windows]
    batch = collate(windows, list(range(8)), tagger.pad_id, first)
    hidden = hide_words(batch, 0.4, tagger, torch.Generator().manual_seed(1))
    objective = HiddenWords(tagger, 0.4)
    loss, told = objective.loss(tagger, hidden)
    assert objective.loss(tagger, batch)[0] == 0  # nothing is hidden, nothing is asked
    assert 0 <= told["found"] <= 1
    table = tagger.encoder.model.get_input_embeddings().weight  # type: ignore[union-attr, operator]
    states = torch.nn.functional.layer_norm(torch.nn.functional.gelu(tagger.hidden(hidden)), (table.shape[1],))
    logs = torch.log_softmax(states @ table.T, -1)
    gone = [(r, w) for r in range(8) for w in range(len(text[r])) if hidden.input_ids[r, windows[r].heads[w]] == 4]
    assert tagger.encoder.mask_id == 4
    by_hand = torch.stack([-logs[r, w, first[r][w]] for r, w in gone]).mean()
    assert loss.item() == pytest.approx(by_hand.item(), rel=1e-4)


def test_all_taggers_start_from_what_was_read(tiny_encoder: str, split: Split, tmp_path: Path) -> None:
    result = run(split, tiny_encoder, tmp_path / "run", "sequst", keep_rounds=True, **READING)
    lines = [line for line in metrics(result.path) if line["phase"] == "adaptation"]
    assert lines[-1]["dev_f1"] is None
    adapted = load_state(result.path / "rounds/0/adaptation/done.pt")["tagger"]
    plain = Tagger.from_encoder(tiny_encoder, ["O"]).encoder.state_dict()
    assert any(not torch.equal(adapted[f"encoder.{name}"], plain[name]) for name in plain)
    without = run(split, tiny_encoder, tmp_path / "without", "sequst", max_rounds=1)
    assert result.summary["settings_hash"] != without.summary["settings_hash"]
    (result.path / "summary.json").unlink()
    again = resume(result.path)
    assert {**again.summary, "seconds": 0} == {**result.summary, "seconds": 0}


def test_an_encoder_without_a_mask_token_does_not_read(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers.PreTrainedTokenizerBase, "mask_token_id", None, raising=False)
    notes: list[str] = []
    progress = Progress()
    progress.note = lambda message, detail=False: notes.append(message)  # type: ignore[method-assign]
    result = run(split, tiny_encoder, tmp_path / "run", "sst", adapt=True, max_rounds=1, progress=progress)
    assert f"the encoder {tiny_encoder} has no mask token, so it is not adapted to the text" in notes
    assert not [line for line in metrics(result.path) if line["phase"] == "adaptation"]


def test_what_cannot_hide_words_does_not_read(split: Split, tmp_path: Path) -> None:
    notes: list[str] = []
    progress = Progress()
    progress.note = lambda message, detail=False: notes.append(message)  # type: ignore[method-assign]
    run(split, "bilstm", tmp_path / "run", "sst", adapt=True, max_rounds=1, keep_rounds=True, progress=progress)
    assert not any("mask token" in note for note in notes)  # it begins with no weights that could have read anything
    assert not list((tmp_path / "run").rglob("adaptation"))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_reading_is_recorded_and_the_same_every_time(
    precision: str, tiny_encoder: str, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step by step, replayed, and replayed again, bit by bit; the head, which nobody asks, stays as it was."""
    replays = calls_of(torch.cuda.CUDAGraph, "replay", monkeypatch)
    phase = PhaseSettings(learning_rate=1e-3, min_steps=60, epochs=1, batch_size=8)
    found = []
    for recorded in (False, True, True):
        tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1).to("cuda")
        head = tagger.head.linear.weight.clone()
        text = [sentence.words for sentence in split.unlabeled[:64]]
        windows = tagger.splitter.windows(text)
        examples = Examples(windows, [[window.ids[place] for place in window.heads] for window in windows])
        with pytest.MonkeyPatch.context() as patch:
            if not recorded:
                patch.setattr(RecordedSteps, "_record", refuse)
            accelerator = make_accelerator(Settings(device="cuda"), precision)
            spec = PhaseSpec("adaptation", 0, phase, examples, HiddenWords(tagger, 0.3), hide=0.3, evaluations=1)
            fit(tagger, spec, accelerator, 7, Hooks())
        assert (len(replays) > 30) == recorded
        assert torch.equal(tagger.head.linear.weight, head)
        found.append(weights(tagger))
    assert equal(found[0], found[1])
    assert equal(found[1], found[2])


@pytest.mark.gpu
@pytest.mark.parametrize("length", [16, 32, 48, 64])
def test_gradients_of_reading_are_the_same_every_time(length: int, tiny_encoder: str, tmp_path: Path) -> None:
    """At the sizes of a real encoder, each weight's bit by bit; names those that differ."""
    config = transformers.MPNetConfig(num_hidden_layers=3)
    transformers.MPNetModel(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(tmp_path)
    tagger = Tagger.from_encoder(str(tmp_path), ["O"], seed=1).to("cuda")
    objective, way = HiddenWords(tagger, 0.15), FusedEncoder.of(tagger.encoder, torch.bfloat16)
    assert way is not None
    assert objective.nets is not None
    objective.nets.to("cuda")
    noise = torch.Generator().manual_seed(3)
    windows = tagger.splitter.windows([["a"] * (length - 2 - row % 7) for row in range(32)])
    batch = collate(windows, list(range(32)), tagger.pad_id, [[5 + place for place in range(length)] for _ in range(32)])
    batch = hide_words(batch, 0.15, tagger, noise).padded(33, length, tagger.pad_id).to(tagger.device)
    learnt = dict(torch.nn.ModuleDict({"tagger": tagger, "nets": objective.nets}).named_parameters())
    first: dict[str, torch.Tensor] = {}
    differs: dict[str, torch.Tensor] = {}
    for turn in range(400):
        torch.manual_seed(7)
        with torch.autocast("cuda", torch.bfloat16), way:
            loss, _ = objective.loss(tagger.train(), batch)
        loss.backward()
        found = {name: weight.grad for name, weight in learnt.items() if weight.grad is not None}
        if turn == 0:
            first = {name: gradient.clone() for name, gradient in found.items()}
            differs = {name: torch.zeros((), device="cuda", dtype=torch.int64) for name in found}
        for name, gradient in found.items():
            differs[name] += (gradient != first[name]).any()
            learnt[name].grad = None
    assert len(first) > 40
    assert {name: int(times) for name, times in differs.items() if times} == {}
