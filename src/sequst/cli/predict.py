from __future__ import annotations

from typing import Annotated

import typer

from sequst.cli.options import Device, InputFormat, WordColumn


def predict(
    model: Annotated[str, typer.Argument(help="Folder of a model, e.g. RUN/model.")],
    input: Annotated[str, typer.Argument(help="File to tag; - is standard input.")],
    output: Annotated[str | None, typer.Option(help="File to write; whole or not at all.", metavar="FILE")] = None,
    format: Annotated[str, typer.Option(help="Of the output: jsonl or conll.")] = "jsonl",
    uncertainty: Annotated[bool, typer.Option("--uncertainty", help="Add what MC dropout says of words and entities.")] = False,
    passes: Annotated[int, typer.Option(help="Passes of MC dropout, with --uncertainty.")] = 20,
    last_layers: Annotated[int, typer.Option(help="Let only the last layers drop out: faster, approximate; 0 for all.")] = 0,
    input_format: InputFormat = "auto",
    word_column: WordColumn = None,
    device: Device = "auto",
) -> None:
    """Tag a file of any size: a JSON line a sentence, or columns."""
    import contextlib
    import json
    import sys
    from pathlib import Path

    from sequst.cli.console import note
    from sequst.cli.progress import make_progress
    from sequst.corpus.formats import guess, open_input
    from sequst.corpus.reading import stream
    from sequst.corpus.writing import conll_block
    from sequst.errors import UsageError, nearest
    from sequst.files import atomic_text, explained, require_writable

    if format not in ("jsonl", "conll"):
        raise UsageError(f"--format {format}: {nearest(format, ('jsonl', 'conll'))}")
    if uncertainty and format != "jsonl":
        raise UsageError(f"--uncertainty has no place in --format {format}; use jsonl")
    if passes < 1:
        raise UsageError(f"--passes {passes}: at least 1")
    if output is not None:
        require_writable(output, "--output")
    source = open_input(input, format=input_format)
    how = guess(source, input_format, word_column)
    if how.reason != "as told":
        note(f"{source.name}: read as {how}")

    from sequst.tagger.predicting import annotate
    from sequst.tagger.tagger import Tagger
    from sequst.uncertainty.passes import require_layers
    from sequst.uncertainty.predicting import annotate_with_uncertainty

    tagger = Tagger.load(model, device)
    require_layers(tagger, last_layers)
    sentences = stream(source, how)
    predictions = (
        annotate_with_uncertainty(tagger, sentences, passes, last_layers=last_layers)
        if uncertainty
        else annotate(tagger, sentences)
    )
    progress, encode = make_progress(), json.JSONEncoder(ensure_ascii=False).encode
    with contextlib.ExitStack() as stack:
        if output is None:
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
            stack.enter_context(explained(Path("<stdout>")))
        file = sys.stdout if output is None else stack.enter_context(atomic_text(output))
        if output is not None:
            progress.begin("predict", 0, unit="sentences")
            stack.callback(progress.end)
        for prediction in predictions:
            if format == "jsonl":
                file.write(encode(prediction.to_dict()) + "\n")
            else:
                file.write(conll_block(prediction.words, prediction.tags))
            if output is not None:
                progress.advance()
        file.flush()
