from __future__ import annotations

from typing import Annotated

import typer

from sequst.cli.options import Device, InputFormat, MinConfidence, Precision, TagColumn, WordColumn


def evaluate(
    model: Annotated[str, typer.Argument(help="Folder of a model, e.g. RUN/model.")],
    file: Annotated[str, typer.Argument(help="Tagged sentences; - is standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    min_confidence: MinConfidence = None,
    input_format: InputFormat = "auto",
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
    device: Device = "auto",
    precision: Precision = "fp32",
) -> None:
    """Score a model on tagged sentences: entity-level precision, recall, F1 and calibration, from 0 to 100.

    \b
    Example:
      sequst evaluate run/model test.conll
    """
    import json

    from sequst.cli.console import note
    from sequst.cli.tables import print_scores
    from sequst.corpus.formats.read import read_file

    reading = read_file(file, format=input_format, word_column=word_column, tag_column=tag_column)
    sentences = reading.require()
    for line in reading.notes:
        note(line)

    from sequst.evaluation import evaluate as evaluating
    from sequst.integrations.onnx.folder import is_exported, require_its_own_precision

    if is_exported(model):
        require_its_own_precision(precision)
        from sequst.integrations.onnx.tagger import OnnxTagger

        exported = OnnxTagger.load(model, min_confidence=min_confidence)
        evaluation = evaluating.evaluation_of(list(exported.annotate(sentences)), exported.types)
    else:
        from sequst.tagger.precision import in_precision
        from sequst.tagger.tagger import Tagger

        tagger = Tagger.load(model, device, min_confidence=min_confidence)
        with in_precision(tagger.device, precision):
            evaluation = evaluating.evaluate(tagger, sentences)
    for type_, count in evaluation.unknown_types.items():
        note(f"warning: the model does not know the type {type_}; its {count} entities count as missed")
    if as_json:
        typer.echo(json.dumps(evaluation.to_dict(), ensure_ascii=False))
    else:
        print_scores(evaluation.to_dict())
