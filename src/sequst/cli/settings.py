from __future__ import annotations

import typer

from sequst.training.configure import template


def settings() -> None:
    """Print all settings as YAML. Each with its default and its help.

    \b
    Example:
      sequst settings > my.yaml
    """
    typer.echo(template(), nl=False)
