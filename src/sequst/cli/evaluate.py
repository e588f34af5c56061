from __future__ import annotations

from typing import Annotated

import typer

from sequst.cli.console import note, show, show_json
from sequst.cli.options import AsJson, Device, InputFormat, MinConfidence, Model, Precision, TagColumn, WordColumn


def evaluate(
    model: Model,
    file: Annotated[str, typer.Argument(help="Tagged sentences; - is standard input.")],
    as_json: AsJson = False,
    min_confidence: MinConfidence = None,
    input_format: InputFormat = "auto",
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
    device: Device = "auto",
    precision: Precision = "fp32",
) -> None:
    """Score a model on tagged sentences. Prints entity-level precision, recall, F1 and calibration error, from 0 to 100.

    \b
    Example:
      sequst evaluate run/model test.conll
    """
    from sequst.cli.reading import read_tagged
    from sequst.cli.tables import scores_told

    sentences = read_tagged(file, input_format, word_column, tag_column)

    from sequst.evaluation.evaluate import evaluation_of
    from sequst.integrations.annotator import load_annotator

    tagger = load_annotator(model, device=device, precision=precision, min_confidence=min_confidence)
    evaluation = evaluation_of(list(tagger.annotate(sentences)), tagger.types)
    for type_, count in evaluation.unknown_types.items():
        note(f"warning: the model does not know the type {type_}; its {count} entities count as missed")
    if as_json:
        show_json(evaluation.to_dict())
    else:
        for each in scores_told(evaluation.to_dict()):
            show(each)
