from __future__ import annotations

import shlex
from typing import Annotated

import typer


def demo(
    seed: Annotated[int, typer.Option(help="Decides the corpus, the few-shot draw and the training.")] = 12,
    output: Annotated[str, typer.Option(help="Folder to write; it must not exist yet.", metavar="DIR")] = "sequst-demo",
    method: Annotated[list[str] | None, typer.Option(help="In place of the three; may be given again.", metavar="NAME")] = None,
) -> None:
    """Train fine-tuning, SST and SeqUST on a generated corpus and print what comes out, in five minutes on two cores.

    \b
    Example:
      sequst demo --output build/demo
    """
    from rich.table import Table

    from sequst.cli.console import note, show
    from sequst.cli.progress import make_progress
    from sequst.experiments.demo import METHODS, run_demo

    methods = method or METHODS
    summary = run_demo(output, seed, make_progress(), methods)
    table = Table("method", "test F1", "dev F1", "rounds", "seconds", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in summary.items():
        table.add_row(name, f"{row['f1']:.2f}", f"{row['dev_f1']:.2f}", str(row["rounds"]), f"{row['seconds']:.0f}")
    show(table)
    note(f"corpus, runs and summary.json are in {output}; look at {output}/runs/{methods[-1]}/report.html")
    model = shlex.quote(f"{output}/runs/{methods[-1]}/model")
    note(f"try it: echo 'Can Sydney conduct The Planets in Verona on Friday?' | sequst predict {model} -")
