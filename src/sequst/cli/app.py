"""The verbs together. Importing this must stay cheap: every verb imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from sequst.cli.benchmarks import benchmarks
from sequst.cli.check import check
from sequst.cli.convert import convert
from sequst.cli.demo import demo
from sequst.cli.evaluate import evaluate
from sequst.cli.experiment import experiment
from sequst.cli.export import export
from sequst.cli.methods import methods
from sequst.cli.next import next_
from sequst.cli.predict import predict
from sequst.cli.sample import sample
from sequst.cli.settings import settings
from sequst.cli.suspects import suspects
from sequst.cli.train import train
from sequst.version import __version__

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sequst {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    """Sequence taggers from a few labelled sentences and a pile of raw text."""


for verb in (train, predict, evaluate, export, next_, suspects, check, sample, convert, demo, methods, benchmarks, settings):
    app.command(verb.__name__.rstrip("_"))(verb)  # some are words of Python too
app.add_typer(experiment, name="experiment")
