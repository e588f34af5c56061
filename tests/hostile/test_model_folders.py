"""Folders of models and encoders that somebody else made: nothing in them is run, and what does not load whole is refused."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from sequst.errors import SequstError
from sequst.integrations.labeler import Labeler
from sequst.tagger.encoders.pretrained import load_model
from sequst.tagger.tagger import Tagger
from tests.hostile.conftest import LABELS
from tests.hostile.mutation import Trial, mutated


@pytest.fixture
def model(tiny_encoder: str, tmp_path: Path) -> Path:
    Tagger.from_encoder(tiny_encoder, LABELS).save(tmp_path / "m")
    return tmp_path / "m"


def edit(folder: Path, **values: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **values}))


@pytest.mark.parametrize("verb", ["predict", "next"])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "../link.json"])
def test_output_never_goes_over_the_model_that_is_read(
    verb: str, name: str, model: Path, sequst: Callable[..., Any], write: Callable[..., Path]
) -> None:
    raw, before = write("raw.txt", "We play in Oslo .\n"), {path: path.read_bytes() for path in model.iterdir()}
    (model.parent / "link.json").symlink_to(model / "config.json")
    done = sequst(verb, model, raw, "--output", model / name)
    assert done.returncode == 2
    assert "is also an input and would be overwritten; name another" in done.stderr
    assert before == {path: path.read_bytes() for path in model.iterdir()}


@pytest.mark.parametrize("kind", ["bert", "evil"])
@pytest.mark.parametrize("part", ["AutoConfig", "AutoModelForTokenClassification", "AutoTokenizer"])
@pytest.mark.parametrize("verb", ["predict", "train"])
def test_no_code_of_a_folder_is_run(kind: str, part: str, verb: str, model: Path, sequst: Callable[..., Any]) -> None:
    """Whatever is typed or piped in: nothing but the text is read from standard input."""
    marker = model.parent / "ran"
    (model / "evil.py").write_text(f"open({str(marker)!r}, 'w')\nclass Evil: pass\n")
    target = ["evil.Evil", "evil.Evil"] if part == "AutoTokenizer" else "evil.Evil"
    edit(model, model_type=kind, auto_map={part: target})
    tokenizer = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**tokenizer, "auto_map": {part: target}}))
    (model.parent / "l.conll").write_text("Oslo B-LOC\nsleeps O\n\nLima B-LOC\nsings O\n")
    short = ["--set", "teacher.min_steps=1", "--set", "teacher.epochs=1", "--output", model.parent / "run"]
    command = {
        "predict": ["predict", model, "-"],
        "train": ["train", "--labeled", model.parent / "l.conll", "--encoder", model, *short],
    }[verb]
    done = sequst(*command, stdin="y\nyes\ny\n")
    assert not marker.exists()
    if done.returncode:
        assert done.returncode == 1
        assert "error: cannot load " in done.stderr
        assert "Traceback" not in done.stderr
    else:
        assert kind == "bert"  # transformers has this one itself


def test_a_model_must_load_whole(model: Path, tmp_path: Path) -> None:
    """Whichever of its weights is missing, or has another shape, is named."""
    weights = load_file(model / "model.safetensors")
    assert len(weights) > 10
    for name, value in weights.items():
        for others in ({}, {name: torch.zeros(*value.shape, 2)}, {f"old.{name}": value}):
            rest = {key: each.contiguous() for key, each in weights.items() if key != name}
            save_file({**rest, **others}, model / "model.safetensors", metadata={"format": "pt"})
            with pytest.raises(SequstError, match=rf"{name}") as caught:
                Tagger.load(model)
            assert str(model) in str(caught.value)


def test_an_encoder_may_lack_its_head_and_nothing_else(tiny_encoder: str, tmp_path: Path) -> None:
    folder = tmp_path / "e"
    shutil.copytree(tiny_encoder, folder)
    weights = load_file(folder / "model.safetensors")
    for name in weights:
        save_file(
            {key: each for key, each in weights.items() if key != name}, folder / "model.safetensors", metadata={"format": "pt"}
        )
        if not name.startswith("pooler."):
            with pytest.raises(SequstError, match=f"bert.{name}"):
                load_model(str(folder), LABELS)
        else:
            load_model(str(folder), LABELS)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    edit(folder, hidden_size=48)
    with pytest.raises(SequstError, match="another shape"):
        load_model(str(folder), LABELS)


@pytest.mark.parametrize("shard", ["weights.bin", "../weights.safetensors", "/tmp/weights.safetensors", "a/b.safetensors"])
def test_weights_are_safetensors_of_the_folder_itself(shard: str, model: Path) -> None:
    names = list(load_file(model / "model.safetensors"))
    (model / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, shard)}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(SequstError, match=r"model\.safetensors\.index\.json names .*expected safetensors files of this folder"):
        Tagger.load(model)


def test_a_pickle_is_not_read(model: Path) -> None:
    torch.save(load_file(model / "model.safetensors"), model / "pytorch_model.bin")
    (model / "model.safetensors").unlink()
    with pytest.raises(SequstError, match="cannot load the model"):
        Tagger.load(model)
    with pytest.raises(SequstError, match="cannot load the encoder"):
        load_model(str(model), LABELS)


def predict(folder: Path) -> None:
    """Load the model as each of two classes, and predict: confidences are finite."""
    for load in (Tagger.load, Labeler.load):
        assert all(map(math.isfinite, load(folder).predict("We play in Oslo.").confidences))


FILES = {
    "transformer": ("config.json", "sequst.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"),
    "crf": ("crf.safetensors",),
    "bilstm": ("bilstm.json", "vocabulary.json", "sequst.json", "model.safetensors"),
}


@pytest.mark.parametrize(("architecture", "name"), [(kind, name) for kind, names in FILES.items() for name in names])
def test_a_mutated_file_is_refused_or_harmless(
    seed: int, architecture: str, name: str, models: dict[str, Path], tmp_path: Path, trial: Trial
) -> None:
    """Parts or bytes of each file replaced by something else: finite confidences, or one error that names the folder."""
    folder, kind = Path(shutil.copytree(models[architecture], tmp_path / "m")), f"{architecture}: {name}"
    whole, rng = (folder / name).read_bytes(), random.Random(f"{kind} {seed}")
    for _ in range(40):
        (folder / name).write_bytes(mutated(whole, rng))
        _, error = trial(kind, lambda: predict(folder))
        assert not error or str(folder) in error or "not finite" in error, error
    assert trial.refused(kind) > 5


def test_labels_that_differ_from_those_of_the_facts(model: Path) -> None:
    edit(model, id2label={"0": "O", "1": "I-LOC", "2": "B-LOC"})
    with pytest.raises(SequstError, match=r"config\.json and sequst\.json name different labels"):
        Tagger.load(model)


def test_facts_that_are_missing(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    (model / "sequst.json").unlink()
    assert Tagger.load(model).labels == LABELS
    assert "sequst.json is missing: transitions, calibration and the confidence cut are unknown" in caplog.text
    (model / "sequst.json").symlink_to("nowhere")
    with pytest.raises(SequstError, match=r"sequst\.json is missing"):
        Tagger.load(model)
    (model / "sequst.json").unlink()
    edit(model, sequst=None)
    caplog.clear()
    assert Tagger.load(model).labels == LABELS  # as another tool would have saved it
    assert not caplog.text


def test_weights_without_measure(model: Path) -> None:
    weights = load_file(model / "model.safetensors")
    save_file({name: value * 1e37 for name, value in weights.items()}, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SequstError, match="not finite"):
        Tagger.load(model).predict("We play in Oslo.")


@pytest.mark.parametrize("content", [[7], {"..": b""}, {7: b""}, {"a": "text"}, {"a": 7}, None, b"\xc1"])
def test_bytes_that_are_no_model(
    content: Any, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libraries: None
) -> None:
    import spacy
    import srsly

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pipe = spacy.blank("en").add_pipe("sequst", config={"model": str(models["bilstm"])})
    with pytest.raises(SequstError, match="not the bytes of a model"):
        pipe.from_bytes(content if isinstance(content, bytes) else srsly.msgpack_dumps(content))  # type: ignore[attr-defined]
