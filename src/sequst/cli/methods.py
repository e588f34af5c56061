from __future__ import annotations

from sequst.cli.console import show, show_json
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
        show_json(rows)
        return
    for method in METHODS.values():
        show(f"{method.name:18} {method.summary} ({method.source})")
