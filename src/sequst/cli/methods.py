from __future__ import annotations

from typing import Annotated

import typer


def methods(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the methods of `train`.

    \b
    Example:
      sequst methods
    """
    import json

    from sequst.cli.console import results
    from sequst.methods.registry import METHODS

    if as_json:
        rows = [{"name": m.name, "summary": m.summary, "source": m.source, "unlabeled": m.unlabeled} for m in METHODS.values()]
        typer.echo(json.dumps(rows))
        return
    for method in METHODS.values():
        results.print(f"{method.name:18} {method.summary} ({method.source})")
