from __future__ import annotations

from typing import Annotated

import typer

from sequst.cli.options import FORMATS_HELP, TagColumn, WordColumn


def convert(
    input: Annotated[str, typer.Argument(help="File or folder to read; - is standard input.")],
    output: Annotated[str, typer.Argument(help="File or folder to write.")],
    from_: Annotated[str, typer.Option("--from", help=f"Format of the input: {FORMATS_HELP}, or auto.")] = "auto",
    to: Annotated[str, typer.Option("--to", help="Format of the output; auto = by extension.")] = "auto",
    on_conflict: Annotated[
        str,
        typer.Option(
            help="What to do with what does not fit, e.g. entities that overlap: error (write nothing, list all), drop it, "
            "or trim it to the nearest words and keep the longer of two."
        ),
    ] = "error",
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
) -> None:
    """Convert files of annotation tools. Lists every annotation that does not fit.

    \b
    Example:
      sequst convert export.json labeled.conll
    """
    from sequst.cli.console import note, show
    from sequst.corpus.counts import count_types
    from sequst.corpus.formats import convert as converting

    done = converting.convert(
        input, output, from_=from_, to=to, on_conflict=on_conflict, word_column=word_column, tag_column=tag_column
    )
    for line in (*done.reading.notes, *map(str, done.misfits)):
        note(line)
    if done.written.reason != "as told":
        note(f"{output}: written as {done.written.format}, {done.written.reason}")
    for what, sentences in done.left_out.items():
        count = f"{len(sentences):,} sentence{'s' * (len(sentences) > 1)}"
        note(f"{done.written.format} has no place for {what}: not written ({count}, the first is {sentences[0].source})")
    left = f"; did not fit: {len(done.misfits)}" if done.misfits else ""
    entities = count_types(done.sentences).mentions.total()
    show(f"{len(done.sentences):,} sentences, {entities:,} entities written to {output}{left}")
