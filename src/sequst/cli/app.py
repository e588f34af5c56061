"""The verbs, one file each. A verb imports what it needs when it runs, so that `--help` stays fast."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Annotated

import typer

from sequst.version import __version__

VERBS = (
    "studio", "train", "predict", "serve", "evaluate", "export", "next", "suspects", "check", "sample", "convert", "demo",
    "methods", "benchmarks", "settings", "experiment",
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sequst {__version__}")
        raise typer.Exit


def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks. Allowed anywhere.")] = False,
) -> None:
    """Train sequence taggers from a few labelled sentences and raw text."""


def make_app(verbs: Iterable[str] = VERBS) -> typer.Typer:
    """The command line with these verbs. No other verb is imported."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(root)
    for name in verbs:
        verb = getattr(importlib.import_module(f"sequst.cli.{name}"), name)
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name)
        else:
            app.command(name)(verb)
    return app
