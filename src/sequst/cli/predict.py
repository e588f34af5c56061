from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from sequst.cli.options import Device, InputFormat, LastLayers, MinConfidence, Model, Precision, WordColumn
from sequst.errors import UsageError, nearest
from sequst.files import as_json, atomic_text, explained, require_writable, with_mark

if TYPE_CHECKING:
    from sequst.tagger.prediction import Prediction


def predict(
    model: Model,
    input: Annotated[str, typer.Argument(help="File to tag; - is standard input.")],
    output: Annotated[str | None, typer.Option(help="File to write. [default: standard output]", metavar="FILE")] = None,
    format: Annotated[
        str, typer.Option(help="Format of the output: jsonl, conll, labelstudio, doccano, prodigy or argilla.")
    ] = "jsonl",
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="Add confidence and information gain of MC dropout.")
    ] = False,
    passes: Annotated[int | None, typer.Option(help="Passes of MC dropout with --uncertainty. [default: 20]")] = None,
    last_layers: LastLayers = 0,
    raw_tags: Annotated[
        bool, typer.Option("--raw-tags", help="The most probable tag of each word, as transformers gives it.")
    ] = False,
    min_confidence: MinConfidence = None,
    input_format: InputFormat = "auto",
    word_column: WordColumn = None,
    device: Device = "auto",
    precision: Precision = "fp32",
) -> None:
    """Tag a file of any size. Writes JSON lines, columns, or tasks for an annotation tool.

    \b
    Example:
      sequst predict run/model raw.txt --output tagged.jsonl
    """
    from sequst.cli.progress import make_progress
    from sequst.cli.reading import open_stream
    from sequst.corpus.formats.read import stream
    from sequst.training.progress import Progress

    _require_flags(format, uncertainty, passes, last_layers)
    if output is not None:
        require_writable(output, "--output", read=[input, model])
    source, how = open_stream(input, input_format, word_column)

    from sequst.integrations.annotator import load_annotator

    tagger = load_annotator(
        model, device=device, precision=precision, raw_tags=raw_tags, min_confidence=min_confidence,
        passes=(passes or 20) if uncertainty else 0, last_layers=last_layers,
    )  # fmt: skip
    progress = Progress() if output is None else make_progress()

    def predictions() -> Iterator[Prediction]:
        for prediction in tagger.annotate(stream(source, how)):
            yield prediction
            progress.advance()

    with _opened(output) as file:
        progress.begin("predict", 0, unit="sentences")
        try:
            file.writelines(_pieces(format, predictions()))
        finally:
            progress.end()


def _require_flags(format: str, uncertainty: bool, passes: int | None, last_layers: int) -> None:
    from sequst.corpus.formats.registry import TASKS

    formats = ("jsonl", "conll", *TASKS)
    if format not in formats:
        raise UsageError(f"--format {format}: {nearest(format, formats)}")
    if uncertainty and format != "jsonl":
        raise UsageError(f"--format {format} cannot hold uncertainties; use jsonl")
    if passes is not None and passes < 1:
        raise UsageError(f"--passes {passes}: at least 1")
    if not uncertainty and (passes is not None or last_layers):
        flag = "--passes" if passes is not None else "--last-layers"
        raise UsageError(f"{flag} needs --uncertainty; add it, or leave {flag} out")


@contextlib.contextmanager
def _opened(output: str | None) -> Iterator[IO[str]]:
    """The file, which is complete or not written, or standard output."""
    if output is not None:
        with atomic_text(output) as file:
            yield file
        return
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    with explained(Path("<stdout>")):
        yield sys.stdout
        sys.stdout.flush()


def _pieces(format: str, predictions: Iterable[Prediction]) -> Iterator[str]:
    """The output in pieces."""
    from sequst.corpus.formats.columns import conll_block
    from sequst.corpus.formats.registry import TASKS
    from sequst.corpus.formats.write import tasks

    if format in TASKS:
        return tasks(format, (prediction.as_task() for prediction in predictions))
    if format == "conll":
        return with_mark(conll_block(prediction.words, prediction.tags) for prediction in predictions)
    return (as_json(prediction.to_dict()) + "\n" for prediction in predictions)
