"""Flags that several verbs share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sequst.corpus.formats.registry import FORMATS
from sequst.training.configure import describe


def setting(name: str) -> Any:
    """A flag whose help is the docstring of the setting it stands for."""
    found = next(item for item in describe() if item.name == name)
    return typer.Option(help=f"{found.help} [default: {found.default}]")


FORMATS_HELP = ", ".join(FORMATS)
FORMAT_HELP = f"{FORMATS_HELP}, or auto: by the extension, for .txt by content."

Model = Annotated[str, typer.Argument(help="Folder of a model, e.g. RUN/model.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
InputFormat = Annotated[str, typer.Option("--input-format", help=f"Format of the input: {FORMAT_HELP}")]
WordColumn = Annotated[
    int | None, typer.Option(help="Column of the word in column files; 0 is the first, -1 the last. [default: 0]")
]
TagColumn = Annotated[
    int | None, typer.Option(help="Column of the tag in column files; 0 is the first, -1 the last. [default: -1]")
]
Precision = Annotated[
    str, typer.Option(help="fp32, or bf16 where the machine has it: faster, and now and then another tag where two are close.")
]
Device = Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu or cuda.")]
LastLayers = Annotated[int, typer.Option(help="Let only the last layers drop out: faster, approximate; 0 for all.")]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        help="Leave out entities of less confidence, 0 to 1; 0 for none. [default: those that training found to cost F1]",
        metavar="P",
        min=0.0,
        max=1.0,
    ),
]
SettingsFile = Annotated[
    str | None,
    typer.Option(help="Settings as YAML, `best` (the defaults) or `paper`; `sequst settings` prints all.", metavar="FILE"),
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Override a setting, e.g. teacher.epochs=10.", metavar="K=V")
]
Encoder = Annotated[str | None, setting("encoder")]
Head = Annotated[str | None, setting("head")]
Seed = Annotated[int | None, setting("seed")]
TrainingDevice = Annotated[str | None, setting("device")]
