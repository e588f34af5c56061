from __future__ import annotations

import typer

from sequst.cli import options
from sequst.training.configure import load_settings, template


def settings(effort: options.Effort = None) -> None:
    """Print all settings as YAML. Each with its value and its help.

    \b
    Example:
      sequst settings > my.yaml
    """
    typer.echo(template(load_settings(effort=effort)), nl=False)
