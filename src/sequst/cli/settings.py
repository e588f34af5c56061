from __future__ import annotations

import typer


def settings() -> None:
    """Print every setting with its default and what it does, as a YAML file to start from.

    \b
    Example:
      sequst settings > my.yaml
    """
    from sequst.training.configure import template

    typer.echo(template(), nl=False)
