from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sequst.cli.console import note
from sequst.cli.options import InputFormat, Model, TagColumn, WordColumn
from sequst.errors import UsageError, nearest
from sequst.files import Scratch, require_free


def export(
    model: Model,
    output: Annotated[str, typer.Option(help="Folder to write; `sequst predict` runs it.", metavar="DIR")],
    to: Annotated[str, typer.Option("--to", help="Format: onnx.")] = "onnx",
    int8: Annotated[bool, typer.Option("--int8", help="Round weights to eight bits: smaller, faster, less exact.")] = False,
    test: Annotated[str | None, typer.Option(help="Tagged sentences to measure on.", metavar="FILE")] = None,
    input_format: InputFormat = "auto",
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
) -> None:
    """Export a model to ONNX. onnxruntime runs it without torch; speed and changed tags are measured.

    \b
    Example:
      sequst export run/model --to onnx --output small
    """
    from sequst.cli.reading import read_tagged
    from sequst.cli.tables import print_measured
    from sequst.corpus.generated import generate

    if to != "onnx":
        raise UsageError(f"--to {to}: {nearest(to, ('onnx',))}")
    require_free(output, "--output")
    sentences = None if test is None else read_tagged(test, input_format, word_column, tag_column)

    from sequst.integrations.onnx.comparing import compare
    from sequst.integrations.onnx.exporting import export as write
    from sequst.integrations.onnx.exporting import quantise
    from sequst.integrations.onnx.tagger import OnnxTagger
    from sequst.tagger.predict import annotate
    from sequst.tagger.tagger import Tagger

    tagger = Tagger.load(model, "cpu")
    with Scratch() as spool:
        exact = Path(spool) / "fp32" if int8 else Path(output)
        write(tagger, exact)
        ways = {"torch": lambda sentences: annotate(tagger, sentences), "onnx, fp32": OnnxTagger.load(exact).annotate}
        if int8:
            quantise(exact, output)
            ways["onnx, int8"] = OnnxTagger.load(output).annotate
        if sentences is None:
            note("measured on 1,000 generated sentences, which are not like yours; --test FILE measures on your own, with F1")
            sentences = [sentence.without_tags() for sentence in generate(pool=1000, test=1).pool]
        print_measured(compare(ways, sentences, tagger.types))
    size = sum(file.stat().st_size for file in Path(output).iterdir()) / 1e6
    note(f"{output}: {size:.1f} MB; run it with `sequst predict {output} FILE`")
