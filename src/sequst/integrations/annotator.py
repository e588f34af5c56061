"""Load a model or its ONNX export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.integrations.onnx.folder import is_exported
from sequst.tagger.prediction import Prediction


class Annotator(NamedTuple):
    annotate: Callable[[Iterable[Sentence]], Iterator[Prediction]]
    types: Sequence[str]


def require_annotator(folder: str | Path, device: str = "auto", precision: str = "fp32", passes: int = 0) -> None:
    """Raise an error if the folder has no model, or an export that cannot do what is asked."""
    if not is_exported(folder):
        from sequst.tagger.save import require_model
        from sequst.tagger.tagger import pick_device

        require_model(Path(folder))
        pick_device(device)
        return
    for name, asked, why in (
        (f"device {device}", device not in ("auto", "cpu"), "runs on the CPU"),
        (f"precision {precision}", precision != "fp32", "has its own precision"),
        ("uncertainty", passes > 0, "has no dropout"),
    ):
        if asked:
            raise UsageError(f"{name}: {folder} is an export, which {why}; name the model that it was made from")


def load_annotator(
    folder: str | Path,
    *,
    device: str = "auto",
    precision: str = "fp32",
    raw_tags: bool = False,
    min_confidence: float | None = None,
    passes: int = 0,
    last_layers: int = 0,
    seed: int = 12,
) -> Annotator:
    """From the folder of a model or an export. With `passes` predictions carry what MC dropout says; `seed` decides its masks.
    `raw_tags`, `min_confidence`: see `Tagger.load`."""
    require_annotator(folder, device, precision, passes)
    if is_exported(folder):
        from sequst.integrations.onnx.tagger import OnnxTagger

        exported = OnnxTagger.load(folder, raw_tags, min_confidence)
        return Annotator(exported.annotate, exported.types)

    from sequst.tagger.precision import in_precision
    from sequst.tagger.predict import annotate
    from sequst.tagger.tagger import Tagger
    from sequst.uncertainty.passes import require_layers
    from sequst.uncertainty.predict import annotate_with_uncertainty

    tagger = Tagger.load(folder, device, raw_tags, min_confidence)
    require_layers(tagger, last_layers)
    within = in_precision(tagger.device, precision)

    def annotated(sentences: Iterable[Sentence]) -> Iterator[Prediction]:
        with within:
            if passes:
                yield from annotate_with_uncertainty(tagger, sentences, passes, seed, last_layers=last_layers)
            else:
                yield from annotate(tagger, sentences)

    return Annotator(annotated, tagger.types)
