"""Exports that somebody else made, or that were damaged: predictions with finite confidences, or one error."""

from __future__ import annotations

import math
import random
import shutil
from pathlib import Path

import pytest

from sequst.errors import SequstError
from sequst.integrations.onnx.tagger import OnnxTagger
from tests.hostile.mutation import Trial, mutated

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def predict(folder: Path) -> None:
    assert all(map(math.isfinite, OnnxTagger.load(folder).predict("We play in Oslo.").confidences))


@pytest.mark.parametrize("name", ["sequst.json", "tokenizer.json", "transitions.safetensors", "model.onnx"])
def test_a_mutated_file_is_refused_or_harmless(seed: int, name: str, exported: Path, tmp_path: Path, trial: Trial) -> None:
    folder, kind = Path(shutil.copytree(exported, tmp_path / "o")), f"export: {name}"
    whole, rng = (folder / name).read_bytes(), random.Random(f"{kind} {seed}")
    for _ in range(40):
        (folder / name).write_bytes(mutated(whole, rng))
        trial(kind, lambda: predict(folder))
    assert trial.refused(kind) > 5


def test_a_graph_that_is_cut_off(exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "o"))
    data = (folder / "model.onnx").read_bytes()
    for length in (0, 10, len(data) // 2, len(data) - 1):
        (folder / "model.onnx").write_bytes(data[:length])
        with pytest.raises(SequstError, match=r"model\.onnx"):
            predict(folder)
