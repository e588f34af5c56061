from __future__ import annotations

import shlex
import statistics
from typing import Annotated

import typer

from sequst.cli import options

SENTENCE = "Can Sydney conduct The Planets in Verona on Friday?"


def demo(
    seed: Annotated[
        list[int] | None, typer.Option(help="Decides draw and training, the first the corpus too. [default: 12, 21, 42]")
    ] = None,
    output: Annotated[str, typer.Option(help="Folder to write; it must not exist yet.", metavar="DIR")] = "sequst-demo",
    method: Annotated[
        list[str] | None, typer.Option(help="Method to train, e.g. sequst. [default: finetune, sst]", metavar="NAME")
    ] = None,
    verbose: options.Verbose = False,
) -> None:
    """Train on a generated corpus and show the result. Takes up to five minutes on two cores. --seed and --method may be given
    several times.

    \b
    Example:
      sequst demo --output build/demo
    """
    from sequst.cli.console import show
    from sequst.cli.progress import make_progress
    from sequst.cli.tables import plain_table, tagged
    from sequst.experiments.demo import METHODS, SEEDS, run_demo
    from sequst.tagger.tagger import Tagger

    methods, seeds = tuple(dict.fromkeys(method or METHODS)), tuple(dict.fromkeys(seed or SEEDS))
    summary = run_demo(output, seeds, make_progress(verbose), methods)
    table = plain_table("method", "test F1", "", "seconds a run")
    for name, runs in summary.items():
        f1 = [run["f1"] for run in runs]
        deviation = f"± {statistics.stdev(f1):.1f}" if len(f1) > 1 else ""
        table.add_row(name, f"{statistics.mean(f1):.1f}", deviation, f"{statistics.mean(run['seconds'] for run in runs):.0f}")
    show(f"\nMean and standard deviation over {len(seeds)} seeds ({', '.join(map(str, seeds))}):" if len(seeds) > 1 else "")
    show(table)
    place = f"{output}/runs/{methods[-1]}"
    show("")
    show(tagged(Tagger.load(f"{place}/model").predict(SENTENCE)))
    show(f"\nreport:   {place}/report.html")
    show(f"try next: echo 'A sentence of yours.' | sequst predict {shlex.quote(f'{place}/model')} -")
