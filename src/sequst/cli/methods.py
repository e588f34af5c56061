from __future__ import annotations

import json

import typer

from sequst.cli.console import show
from sequst.cli.options import AsJson
from sequst.methods.registry import METHODS


def methods(as_json: AsJson = False) -> None:
    """List the methods of `train`.

    \b
    Example:
      sequst methods
    """
    if as_json:
        rows = [{"name": m.name, "summary": m.summary, "source": m.source, "unlabeled": m.unlabeled} for m in METHODS.values()]
        typer.echo(json.dumps(rows))
        return
    for method in METHODS.values():
        show(f"{method.name:18} {method.summary} ({method.source})")
