from __future__ import annotations

import typer

from sequst.training.configure import template


def settings() -> None:
    """Print every setting with its default and what it does, as a YAML file to start from.

    \b
    Example:
      sequst settings > my.yaml
    """
    typer.echo(template(), nl=False)
