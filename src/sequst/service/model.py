"""The model that is served: of torch or an ONNX export, without torch then."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.inputs import read_json
from sequst.integrations.annotator import require_annotator
from sequst.integrations.onnx.folder import FACTS, is_exported
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.prediction import Prediction
from sequst.version import __version__

Annotate = Callable[[Sequence[Sentence], bool], list[Prediction]]
"""Predictions of these sentences; true where no other batch is being computed, so that all cores are free."""
_TOLD = (
    "encoder", "method", "head", "precision", "max_length", "seed", "labeled_sentences", "unlabeled_sentences", "rounds",
    "dev_f1", "calibration",
)  # fmt: skip
"""What of sequst.json is told: no paths, no settings."""


@dataclass(frozen=True)
class ServedModel:
    """Predictions come without a confidence cut: each request has its own."""

    types: Sequence[str]
    calibration: EntityCalibration
    facts: Mapping[str, Any]
    version: str
    """Of these files: another model in the folder has another."""
    lanes: int
    """How many batches may be computed at the same time."""
    annotate: Annotate
    annotate_with_uncertainty: Annotate | None

    @classmethod
    def load(
        cls, folder: str | Path, device: str = "auto", precision: str = "fp32", min_confidence: float | None = None
    ) -> ServedModel:
        """`min_confidence`: the cut of requests that name none; without it the one found in training."""
        require_annotator(folder, device, precision)
        load = _load_export if is_exported(folder) else _load_tagger
        return load(Path(folder), device, precision, min_confidence)

    def described(self) -> dict[str, Any]:
        """What GET /v1/model answers."""
        return {
            "types": list(self.types),
            **self.facts,
            "entity_calibration": self.calibration.to_dict(),
            "uncertainty": self.annotate_with_uncertainty is not None,
            "model_version": self.version,
            "version": __version__,
        }

    def require_uncertainty(self) -> None:
        if self.annotate_with_uncertainty is None:
            raise UsageError("uncertainty: this model is an ONNX export, which has no dropout; leave `uncertainty` out")


def _facts_of(folder: Path) -> dict[str, Any]:
    path = folder / FACTS
    found = read_json(path) if path.is_file() else {}
    facts = {name: found[name] for name in _TOLD if name in found} if isinstance(found, dict) else {}
    if "encoder" in facts and PurePath(str(facts["encoder"])).is_absolute():
        facts["encoder"] = PurePath(facts["encoder"]).name
    return facts


def _version_of(folder: Path) -> str:
    files = sorted((each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in folder.iterdir() if each.is_file())
    return f"sequst-{hashlib.sha256(repr(files).encode()).hexdigest()[:8]}"


def _load_export(folder: Path, device: str, precision: str, min_confidence: float | None) -> ServedModel:
    from sequst.integrations.onnx.tagger import OnnxTagger

    tagger = OnnxTagger.load(folder)
    calibration = tagger.entity_calibration.asked_for(False, min_confidence)
    tagger.entity_calibration = calibration._replace(threshold=0.0)
    return ServedModel(
        tagger.types,
        calibration,
        _facts_of(folder),
        _version_of(folder),
        1,
        lambda some, alone: list(tagger.annotate(some)),
        None,
    )


def _load_tagger(folder: Path, device: str, precision: str, min_confidence: float | None) -> ServedModel:
    import torch

    from sequst.tagger.accel.forward import Forward
    from sequst.tagger.precision import in_precision
    from sequst.tagger.predict import annotate
    from sequst.tagger.tagger import Tagger
    from sequst.uncertainty.predict import annotate_with_uncertainty

    tagger = Tagger.load(folder, device)
    for weight in (*tagger.parameters(), *tagger.buffers()):  # they may be the file itself, which somebody may write over
        weight.data = weight.data.clone()
    calibration = tagger.entity_calibration.asked_for(False, min_confidence)
    tagger.entity_calibration = calibration._replace(threshold=0.0)
    cores = torch.get_num_threads()
    with in_precision(tagger.device, precision):
        # a forward that changes modes and generators, which all threads share, allows one batch at a time
        lanes = cores if Forward(tagger).cpu is not None else 1

    def plain(sentences: Sequence[Sentence], alone: bool) -> list[Prediction]:
        torch.set_num_threads(cores if alone or lanes == 1 else 1)
        with in_precision(tagger.device, precision):
            return list(annotate(tagger, sentences, keep_forward=True))

    def uncertain(sentences: Sequence[Sentence], alone: bool) -> list[Prediction]:
        torch.set_num_threads(1 if lanes > 1 else cores)
        with in_precision(tagger.device, precision):
            return list(annotate_with_uncertainty(tagger, sentences))

    return ServedModel(tagger.types, calibration, _facts_of(folder), _version_of(folder), lanes, plain, uncertain)
