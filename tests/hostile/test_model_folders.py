"""Folders of models and encoders that somebody else made: nothing in them is run, and what does not load whole is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from sequst.errors import SequstError
from sequst.tagger.encoders.pretrained import load_model
from sequst.tagger.tagger import Tagger

LABELS = ["O", "B-LOC", "I-LOC"]


@pytest.fixture
def model(tiny_encoder: str, tmp_path: Path) -> Path:
    Tagger.from_encoder(tiny_encoder, LABELS).save(tmp_path / "m")
    return tmp_path / "m"


def edit(folder: Path, **values: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **values}))


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
