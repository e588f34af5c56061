from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sequst.cli.options import Device, InputFormat, MinConfidence, Precision, WordColumn

if TYPE_CHECKING:
    from sequst.corpus.sentence import Sentence
    from sequst.tagger.prediction import Prediction


def predict(
    model: Annotated[str, typer.Argument(help="Folder of a model, e.g. RUN/model.")],
    input: Annotated[str, typer.Argument(help="File to tag; - is standard input.")],
    output: Annotated[str | None, typer.Option(help="File to write; whole or not at all.", metavar="FILE")] = None,
    format: Annotated[
        str, typer.Option(help="Of the output: jsonl, conll, or for an annotation tool labelstudio, doccano, prodigy, argilla.")
    ] = "jsonl",
    uncertainty: Annotated[bool, typer.Option("--uncertainty", help="Add what MC dropout says of words and entities.")] = False,
    passes: Annotated[int | None, typer.Option(help="Passes of MC dropout, with --uncertainty. [default: 20]")] = None,
    last_layers: Annotated[int, typer.Option(help="Let only the last layers drop out: faster, approximate; 0 for all.")] = 0,
    raw_tags: Annotated[
        bool, typer.Option("--raw-tags", help="The best tag of every word by itself, allowed or not, as transformers gives it.")
    ] = False,
    min_confidence: MinConfidence = None,
    input_format: InputFormat = "auto",
    word_column: WordColumn = None,
    device: Device = "auto",
    precision: Precision = "fp32",
) -> None:
    """Tag a file of any size: a JSON line a sentence, columns, or tasks for an annotation tool to look at.

    \b
    Example:
      sequst predict run/model raw.txt --output tagged.jsonl
    """
    import sys
    from pathlib import Path

    from sequst.cli.console import note
    from sequst.cli.progress import make_progress
    from sequst.corpus.formats.detect import guess, open_input
    from sequst.corpus.formats.read import stream
    from sequst.corpus.formats.registry import TASKS
    from sequst.errors import UsageError, nearest
    from sequst.files import atomic_text, explained, require_writable

    formats = ("jsonl", "conll", *TASKS)
    if format not in formats:
        raise UsageError(f"--format {format}: {nearest(format, formats)}")
    if uncertainty and format != "jsonl":
        raise UsageError(f"--uncertainty has no place in --format {format}; use jsonl")
    if passes is not None and passes < 1:
        raise UsageError(f"--passes {passes}: at least 1")
    if not uncertainty and (passes is not None or last_layers):
        flag = "--passes" if passes is not None else "--last-layers"
        raise UsageError(f"{flag} is of MC dropout, which --uncertainty asks for; add it, or leave {flag} out")
    if output is not None:
        require_writable(output, "--output", read=[input])
    source = open_input(input, format=input_format)
    how = guess(source, input_format, word_column)
    if how.reason != "as told":
        note(f"{source.name}: read as {how}")

    passes = (20 if passes is None else passes) if uncertainty else 0
    annotate, within = _annotator(model, device, passes, last_layers, raw_tags, min_confidence, precision)
    predictions = annotate(stream(source, how))
    progress = make_progress()
    with contextlib.ExitStack() as stack:
        stack.enter_context(within)
        if output is None:
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
            stack.enter_context(explained(Path("<stdout>")))
        file = sys.stdout if output is None else stack.enter_context(atomic_text(output))
        if output is not None:
            progress.begin("predict", 0, unit="sentences")
            stack.callback(progress.end)
        for piece in _pieces(format, predictions, progress.advance if output is not None else lambda: None):
            file.write(piece)
        file.flush()


def _pieces(format: str, predictions: Iterable[Prediction], advance: Callable[[], None]) -> Iterator[str]:
    """The file that the predictions make, piece by piece."""
    import dataclasses
    import json

    from sequst.corpus.formats.columns import conll_block
    from sequst.corpus.formats.registry import TASKS
    from sequst.corpus.formats.write import tasks

    def scored() -> Iterator[tuple[Sentence, list[float]]]:
        for prediction in predictions:
            scores = [round(entity.confidence, 6) for entity in prediction.entities]
            yield dataclasses.replace(prediction.sentence, tags=prediction.tags), scores
            advance()

    if format in TASKS:
        yield from tasks(format, scored())
        return
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for prediction in predictions:
        if format == "jsonl":
            yield encode(prediction.to_dict()) + "\n"
        else:
            yield conll_block(prediction.words, prediction.tags)
        advance()


def _annotator(
    model: str, device: str, passes: int, last_layers: int, raw_tags: bool, min_confidence: float | None, precision: str
) -> tuple[Callable[[Iterable[Sentence]], Iterator[Prediction]], contextlib.AbstractContextManager[object]]:
    """What tags sentences, and within what: the model in the folder, or its export, which is run without torch."""
    from sequst.errors import UsageError
    from sequst.integrations.onnx.folder import is_exported, require_its_own_precision

    if is_exported(model):
        if passes:
            raise UsageError(
                f"--uncertainty needs dropout, which an export does not have; name the folder that {model} was made from"
            )
        if device == "cuda":
            raise UsageError("--device cuda: an export is run on the CPU; name the folder that it was made from")
        require_its_own_precision(precision)
        from sequst.integrations.onnx.tagger import OnnxTagger

        return OnnxTagger.load(model, raw_tags, min_confidence).annotate, contextlib.nullcontext()

    from sequst.tagger.precision import in_precision
    from sequst.tagger.predict import annotate
    from sequst.tagger.tagger import Tagger
    from sequst.uncertainty.passes import require_layers
    from sequst.uncertainty.predict import annotate_with_uncertainty

    tagger = Tagger.load(model, device, raw_tags, min_confidence)
    require_layers(tagger, last_layers)
    within = in_precision(tagger.device, precision)
    if passes:
        return lambda sentences: annotate_with_uncertainty(tagger, sentences, passes, last_layers=last_layers), within
    return lambda sentences: annotate(tagger, sentences), within
