"""Exports that somebody else made, or that were damaged: predictions with finite confidences, or one error."""

from __future__ import annotations

import json
import math
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import SequstError
from sequst.integrations.onnx.tagger import OnnxTagger
from sequst.tagger.tagger import Tagger
from tests.hostile.test_model_folders import LABELS, WRONG, places, with_part

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def exported(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sequst.integrations.onnx.exporting import export

    folder = tmp_path_factory.mktemp("onnx") / "o"
    export(Tagger.from_encoder(tiny_encoder, LABELS, valid=True), folder)
    return folder


def attempt(folder: Path) -> tuple[Any, str]:
    try:
        return OnnxTagger.load(folder).predict("We play in Oslo."), ""
    except SequstError as error:
        return None, str(error)


@pytest.mark.parametrize("name", ["sequst.json", "tokenizer.json"])
def test_a_tampered_file_is_refused_or_harmless(seed: int, name: str, exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "o"))
    whole, rng, refused = json.loads((folder / name).read_text()), random.Random(seed), 0
    changes = [(path, part) for path in places(whole) for part in WRONG if part != 10**400]
    for path, part in rng.sample(changes, min(len(changes), 250)):
        (folder / name).write_text(json.dumps(with_part(whole, path, part)))
        prediction, error = attempt(folder)
        refused += bool(error)
        assert error or all(map(math.isfinite, prediction.confidences)), (path, part)
    assert refused > 30


def test_a_damaged_graph(seed: int, exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "o"))
    data, rng = (folder / "model.onnx").read_bytes(), random.Random(seed)
    for _ in range(60):
        place = rng.randrange(len(data))
        (folder / "model.onnx").write_bytes(data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :])
        prediction, error = attempt(folder)
        assert error or all(map(math.isfinite, prediction.confidences))
    for length in (0, 10, len(data) // 2, len(data) - 1):
        (folder / "model.onnx").write_bytes(data[:length])
        assert attempt(folder)[1]
