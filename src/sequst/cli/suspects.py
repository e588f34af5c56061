from __future__ import annotations

from typing import Annotated

import typer

from sequst.cli import console, options
from sequst.files import as_json, atomic_text, require_writable
from sequst.training.configure import load_settings


def suspects(
    labeled: Annotated[str, typer.Argument(help="Labelled sentences; - is standard input.")],
    output: Annotated[str, typer.Option(help="File to write, as JSON lines.", metavar="FILE")],
    folds: Annotated[int, typer.Option(help="Taggers to train. Each judges the sentences that it has not learnt.")] = 5,
    show: Annotated[int, typer.Option(help="Suspects to print. All are in the file.", min=0)] = 20,
    encoder: options.Encoder = None,
    head: options.Head = None,
    seed: options.Seed = None,
    settings: options.SettingsFile = None,
    set_: options.Overrides = None,
    device: options.TrainingDevice = None,
    input_format: options.InputFormat = "auto",
    word_column: options.WordColumn = None,
    tag_column: options.TagColumn = None,
) -> None:
    """Find labels that look wrong. Lists the most doubtful first.

    \b
    Example:
      sequst suspects labeled.conll --output suspects.jsonl
    """
    require_writable(output, "--output", read=[labeled])
    chosen = load_settings(settings, set_ or (), encoder=encoder, head=head, seed=seed, device=device)

    from sequst.annotation.suspects import find_suspects
    from sequst.cli.progress import make_progress
    from sequst.cli.tables import suspects_table
    from sequst.training.data import DataFile

    progress = make_progress()
    try:
        file = DataFile(labeled, input_format, word_column, tag_column)
        found = [each.to_dict() for each in find_suspects(file, folds=folds, settings=chosen, progress=progress)]
    except KeyboardInterrupt:
        progress.end()
        console.fail("stopped; nothing was written", 130)
    with atomic_text(output) as lines:
        for rank, record in enumerate(found, 1):
            lines.write(as_json({"rank": rank, **record}) + "\n")
    if found[:show]:
        console.show(suspects_table(found[:show]))
    console.show(f"{len(found)} labels to look at are in {output}, the most doubtful first")
    if len(found) > show:
        console.note(f"the table shows the first {show}; --show prints more")
