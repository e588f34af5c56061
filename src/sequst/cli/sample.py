from __future__ import annotations

from typing import Annotated

import typer

from sequst.cli.options import InputFormat, TagColumn, WordColumn


def sample(
    file: Annotated[str, typer.Argument(help="Tagged sentences to draw from; - is standard input.")],
    shots: Annotated[int, typer.Option(help="Sentences (or mentions) of each type.")],
    output: Annotated[
        str,
        typer.Option(help="Folder to write: labeled.conll, dev.conll, unlabeled.conll, summary.json.", metavar="DIR"),
    ],
    sampler: Annotated[str, typer.Option(help="What is counted: sentences or mentions.")] = "sentences",
    seed: Annotated[int, typer.Option(help="Decides the draw.")] = 12,
    input_format: InputFormat = "auto",
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
) -> None:
    """Draw a K-shot split. A labelled set, a dev set of the same kind, and the rest as unlabelled.

    \b
    Example:
      sequst sample all.conll --shots 10 --output split
    """
    from rich.table import Table

    from sequst.cli.console import note, safe, show
    from sequst.corpus import sampling
    from sequst.corpus.formats.read import read_file
    from sequst.files import require_free

    folder = require_free(output, "--output")
    reading = read_file(file, format=input_format, word_column=word_column, tag_column=tag_column)
    split = sampling.sample(reading.require(), shots, sampler=sampler, seed=seed)
    for line in reading.notes:
        note(line)
    split.save(folder)
    summary = split.summary()
    parts = ("labeled", "dev", "unlabeled")
    table = Table("sentences (mentions)", *parts, box=None, pad_edge=False)
    for type_ in sorted({t for part in parts for t in summary[part]["types"]}):
        rows = (summary[part]["types"].get(type_, {"sentences": 0, "mentions": 0}) for part in parts)
        table.add_row(safe(type_), *(f"{row['sentences']} ({row['mentions']})" for row in rows))
    table.add_row("all", *(f"{summary[part]['sentences']} ({summary[part]['mentions']})" for part in parts))
    show(table)
    for type_, got in split.short.items():
        note(f"type {type_} has too few: {got} drawn for it, beside those drawn for rarer types")
    show(f"written to {folder}")
