"""Flags that several verbs share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sequst.corpus.formats.registry import FORMATS
from sequst.training.configure import EFFORTS, describe


def setting(name: str) -> Any:
    """A flag whose help is the docstring of the setting it stands for."""
    found = next(item for item in describe() if item.name == name)
    return typer.Option(help=f"{found.help} [default: {found.default}]")


FORMATS_HELP = ", ".join(FORMATS)
FORMAT_HELP = f"{FORMATS_HELP}, or auto: by extension, .txt by content."

Model = Annotated[str, typer.Argument(help="Folder of a model, e.g. RUN/model.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
InputFormat = Annotated[str, typer.Option("--input-format", help=f"Format of the input: {FORMAT_HELP}")]
WordColumn = Annotated[int | None, typer.Option(help="Column of the word; 0 = first, -1 = last. [default: 0]")]
TagColumn = Annotated[int | None, typer.Option(help="Column of the tag; 0 = first, -1 = last. [default: -1]")]
Precision = Annotated[
    str, typer.Option(help="fp32, or bf16: faster if the machine has it, but a tag may change where two are close.")
]
Device = Annotated[str, typer.Option(help="auto (the GPU if there is one), cpu or cuda.")]
LastLayers = Annotated[int, typer.Option(help="Dropout in the last layers only: faster, an approximation. 0 = all.")]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        help="Confidence cut, 0 to 1. Entities below it are left out; 0 = none. [default: the cut found in training]",
        metavar="P",
        min=0.0,
        max=1.0,
    ),
]
SettingsFile = Annotated[
    str | None,
    typer.Option(help="YAML file, or `paper`; `sequst settings` prints all settings.", metavar="FILE"),
]
Effort = Annotated[
    str | None,
    typer.Option(help=f"How long to train: {', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}. [default: default]", metavar="NAME"),
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Override a setting, e.g. teacher.epochs=10.", metavar="K=V")
]
Encoder = Annotated[str | None, setting("encoder")]
Head = Annotated[str | None, setting("head")]
Seed = Annotated[int | None, setting("seed")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print how files were read and where the dev set comes from.")
]
TrainingDevice = Annotated[str | None, setting("device")]
