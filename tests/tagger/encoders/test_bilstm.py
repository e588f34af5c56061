from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.methods.test_self_training import same_weights

from sequst.api import resume, train
from sequst.corpus.sampling import Split
from sequst.errors import SequstError, UsageError
from sequst.tagger.batches import Batch, collate
from sequst.tagger.encoders.bilstm import BiLstm
from sequst.tagger.encoders.shape import BiLstmShape
from sequst.tagger.tagger import Tagger, labels_of
from sequst.uncertainty.mc_dropout import mc_dropout

LABELS = ["O", "B-X", "I-X"]
TEXT = [["We", "play", "in", "Oslo", "."], ["Oslo"], ["A", "much", "longer", "sentence", "of", "eight", "words", "."]]
SMALL = BiLstmShape(hidden=8, filters=6, character_size=4, word_size=5)
SHORT: dict[str, Any] = {"min_steps": 30, "epochs": 0.1}


def make(shape: BiLstmShape = SMALL, **options: Any) -> Tagger:
    tagger = Tagger.from_encoder("bilstm", LABELS, text=TEXT, shape=shape, seed=1, **options)
    assert isinstance(tagger.encoder, BiLstm)
    if tagger.encoder.learnt is not None:
        torch.nn.init.normal_(tagger.encoder.learnt.weight[1:], generator=torch.Generator().manual_seed(1))
    return tagger


def batch_of(tagger: Tagger, sentences: list[list[str]]) -> Batch:
    return collate(tagger.splitter.windows(sentences), list(range(len(sentences))), tagger.pad_id)


def test_padding_changes_nothing() -> None:
    tagger = make()
    together = tagger.hidden(batch_of(tagger, TEXT))
    for row, sentence in enumerate(TEXT):
        alone = tagger.hidden(batch_of(tagger, [sentence]))[0]
        assert torch.allclose(together[row, : len(sentence)], alone, atol=1e-6)
        assert not together[row, len(sentence) :].any()


def test_an_lstm_by_hand() -> None:
    """The reading of two words from the left, gate by gate."""
    tagger = make(BiLstmShape(hidden=2, layers=1, filters=2, character_size=2, word_size=2))
    assert isinstance(tagger.encoder, BiLstm)
    batch = batch_of(tagger, [["We", "play"]])
    lstm = tagger.encoder.layers[0]
    state, cell = torch.zeros(2), torch.zeros(2)
    for inputs in tagger.embeddings(batch)[0]:
        gates = lstm.weight_ih_l0 @ inputs + lstm.bias_ih_l0 + lstm.weight_hh_l0 @ state + lstm.bias_hh_l0  # type: ignore[operator]
        enter, forget, new, out = gates.chunk(4)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        state = out.sigmoid() * cell.tanh()
    assert torch.allclose(tagger.hidden(batch)[0, 1, :2], state, atol=1e-6)
    assert tagger.encoder.width == 4


def test_characters_by_hand() -> None:
    """One filter that answers to the letter a, wherever it stands: its largest answer, squashed."""
    tagger = make(BiLstmShape(hidden=2, filters=1, character_size=1, word_size=2))
    encoder = tagger.encoder
    assert isinstance(encoder, BiLstm)
    with torch.no_grad():
        encoder.characters.weight.zero_()
        encoder.characters.weight[encoder.vocabulary.spelling("a")[0]] = 1.0
        encoder.convolution.weight.copy_(torch.tensor([[[0.0, 0.5, 0.0]]]))
        encoder.convolution.bias.fill_(-0.25)  # type: ignore[union-attr]
    found = tagger.embeddings(batch_of(tagger, [["play", "We"]]))[0, :, -1]
    assert found.tolist() == pytest.approx([math.tanh(0.25), math.tanh(-0.25)], abs=1e-6)


def test_a_word_that_is_not_known_differs_by_its_characters_alone() -> None:
    tagger = make()
    first, second = tagger.embeddings(batch_of(tagger, [["Olso", "Osol"]]))[0]
    assert not first[:5].any()
    assert not second[:5].any()
    assert not torch.equal(first[5:], second[5:])
    strange = tagger.embeddings(batch_of(tagger, [["東京"]]))[0, 0]
    assert torch.isfinite(strange).all()


def test_vectors_of_a_file_are_used_and_stay(write: Callable[..., Path], split: Split, tmp_path: Path) -> None:
    words = sorted({word.lower() for s in split.labeled for word in s.words})
    path = write("v.txt", "".join(f"{word} {len(word)} {len(word) / 2} 1.5\n" for word in words))
    options: dict[str, Any] = {"encoder": "bilstm", "bilstm": {"vectors": str(path)}, "teacher": SHORT}
    result = train(split.labeled, tmp_path / "run", **options)
    path.unlink()  # the model has them
    tagger = result.tagger
    batch = batch_of(tagger, [["Zz", split.labeled[0].words[0]]])
    size = float(len(split.labeled[0].words[0]))
    assert tagger.embeddings(batch)[0, :, :3].tolist() == [[0, 0, 0], [size, size / 2, 1.5]]
    assert len(load_file(result.path / "model" / "model.safetensors")["encoder.vectors"]) == len(words)


def test_dropout_of_mc_reaches_words_inputs_and_states() -> None:
    tagger = make(BiLstmShape(hidden=8, filters=6, dropout=0.5))
    batch = batch_of(tagger, TEXT)
    plain = tagger.hidden(batch)
    with mc_dropout(tagger, seed=1):
        passes = [tagger.hidden(batch) for _ in range(8)]
        dropped = torch.stack([tagger.embeddings(batch)[2, :, :50] for _ in range(64)])
    assert all(not torch.equal(plain, other) for other in passes)
    gone = (dropped == 0).all(-1).float().mean()
    assert 0.4 < gone.item() < 0.6  # whole vectors
    assert torch.equal(tagger.hidden(batch), plain)
    for silent in ("drop_word", "drop"):
        getattr(tagger.encoder, silent).p = 0.0
    with mc_dropout(tagger, seed=1):
        assert torch.equal(tagger.hidden(batch), plain)  # there is no other in the encoder


@pytest.mark.parametrize("head", ["softmax", "crf"])
@pytest.mark.parametrize("vectors", [False, True])
def test_saved_and_loaded(head: str, vectors: bool, write: Callable[..., Path], tmp_path: Path) -> None:
    path = write("v.txt", "we 1 2\noslo 3 4\n")
    tagger = make(BiLstmShape(hidden=8, vectors=str(path)) if vectors else SMALL, head=head)
    tagger.save(tmp_path / "model")
    files = {file.name for file in (tmp_path / "model").iterdir()}
    assert files == {"README.md", "bilstm.json", "model.safetensors", "sequst.json", "vocabulary.json"} | (
        {"crf.safetensors"} if head == "crf" else set()
    )
    again = Tagger.load(tmp_path / "model")
    assert again.predict(TEXT) == tagger.predict(TEXT)
    assert "only sequst loads" in (tmp_path / "model" / "README.md").read_text()


def damaged(folder: Path, name: str) -> None:
    """Break the saved tagger in the way that the name says."""
    weights = load_file(folder / "model.safetensors")
    shape = json.loads((folder / "bilstm.json").read_text())
    facts = json.loads((folder / "sequst.json").read_text())
    match name:
        case "a weight is missing":
            weights.pop("encoder.convolution.bias")
        case "a weight too many":
            weights["encoder.more"] = torch.zeros(2)
        case "no classifier":
            weights.pop("classifier.weight")
        case "a narrow classifier":
            weights["classifier.weight"] = weights["classifier.weight"][:, :1].contiguous()
        case "no finite number":
            weights["encoder.convolution.bias"][0] = torch.nan
        case "other numbers":
            weights["encoder.convolution.bias"] = weights["encoder.convolution.bias"].double()
        case "no layers":
            shape["layers"] = 0
        case "too many":
            shape["hidden"] = 10**30
        case "no rate":
            shape["dropout"] = math.nan
        case "no room":
            facts["max_length"] = 0
        case "no facts":
            (folder / "sequst.json").unlink()
            return
        case "no shape":
            (folder / "bilstm.json").unlink()
            return
        case "a deep file":
            (folder / "sequst.json").write_text("[" * 100_000)
            return
        case "another size":
            shape["hidden"] = 9
        case "no number":
            shape["hidden"] = "8"
        case "an unknown name":
            shape["more"] = 1
        case "fewer labels":
            facts["labels"] = LABELS[:2]
        case "no labels":
            facts["labels"] = [1, 2, 3]
        case "another kind":
            facts["architecture"] = "gru"
        case "code for weights":
            (folder / "model.safetensors").write_bytes(pickle.dumps(print))
            return
    save_file(weights, folder / "model.safetensors")
    (folder / "bilstm.json").write_text(json.dumps(shape))
    (folder / "sequst.json").write_text(json.dumps(facts))


@pytest.mark.parametrize(
    "damage",
    [
        "a weight is missing", "a weight too many", "no classifier", "another size", "no number", "an unknown name",
        "fewer labels", "no labels", "another kind", "code for weights", "a narrow classifier", "no finite number",
        "other numbers", "no layers", "too many", "no rate", "no room", "no facts", "no shape", "a deep file",
    ],
)  # fmt: skip
def test_a_damaged_model_is_refused_with_its_place(damage: str, tmp_path: Path) -> None:
    make().save(tmp_path / "model")
    damaged(tmp_path / "model", damage)
    with pytest.raises(SequstError, match=str(tmp_path)[:40]):
        Tagger.load(tmp_path / "model")


def test_it_learns_from_nothing_and_resumes(split: Split, tmp_path: Path) -> None:
    options: dict[str, Any] = {"encoder": "bilstm", "teacher": {**SHORT, "min_steps": 120}, "dev": split.dev}
    result = train(split.labeled, tmp_path / "run", **options)
    assert result.summary["dev_f1"] > 30  # an untrained one is below 5
    assert same_weights(train(split.labeled, tmp_path / "again", **options).tagger, result.tagger)
    other = train(split.labeled, tmp_path / "other", unlabeled=split.unlabeled[:40], method="finetune", **options)
    assert same_weights(other.tagger, result.tagger)  # fine-tuning knows no word of the unlabelled text either
    (result.path / "summary.json").unlink()
    (result.path / "rounds" / "0" / "teacher" / "done.pt").unlink(missing_ok=True)
    assert same_weights(resume(result.path).tagger, result.tagger)


def test_vectors_that_have_changed_end_a_run(write: Callable[..., Path], split: Split, tmp_path: Path) -> None:
    path = write("v.txt", "we 1 2\noslo 3 4\n")
    options: dict[str, Any] = {"encoder": "bilstm", "bilstm": {"vectors": str(path)}, "teacher": {**SHORT, "min_steps": 4}}
    result = train(split.labeled, tmp_path / "run", **options)
    (result.path / "summary.json").unlink()
    write("v.txt", "we 1 2\noslo 3 5\n")
    with pytest.raises(SequstError, match=r"v\.txt has other word vectors"):
        resume(result.path)


def test_wrong_vectors_are_refused_before_a_run_is_made(write: Callable[..., Path], split: Split, tmp_path: Path) -> None:
    for vectors in (str(write("v.txt", "we 1 x\n")), "nowhere.txt"):
        with pytest.raises(SequstError):
            train(split.labeled, tmp_path / "run", encoder="bilstm", bilstm={"vectors": vectors})
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match=r"bilstm\.layers"):
        train(split.labeled, tmp_path / "run", encoder="bilstm", bilstm={"layers": 0})


def test_a_trained_one_is_no_encoder(split: Split, tmp_path: Path) -> None:
    make().save(tmp_path / "model")
    with pytest.raises(UsageError, match="is a trained BiLSTM"):
        train(split.labeled, tmp_path / "run", encoder=str(tmp_path / "model"))


def test_a_long_sentence_is_tagged_whole() -> None:
    tagger = make(max_length=10, overlap=4)
    words = ["Oslo"] * 37
    assert len(tagger.predict(words).tags) == 37
    assert labels_of([]) == ["O"]
