"""What the site has beyond the pages of this folder: every verb and every setting as a page, and links that lead out of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Fill in what is made from the code, and name files of the repository that a link leads to."""
    if "<!-- verbs -->" in markdown:
        markdown = markdown.replace("<!-- verbs -->", verbs())
    if "<!-- settings -->" in markdown:
        markdown = markdown.replace("<!-- settings -->", settings())
    folder, root = Path(config["docs_dir"]), Path(config["docs_dir"]).parent
    here = (folder / page.file.src_path).parent

    def mended(match: re.Match[str]) -> str:
        text, target, _ = match.groups()
        place = (here / target).resolve()
        if "://" in target or place.is_relative_to(folder.resolve()) or not place.exists():
            return match[0]
        return f"{text} (`{place.relative_to(root.resolve())}`)"

    return _LINK.sub(mended, markdown)


def verbs() -> str:
    """The help of every verb, as the command line has it."""
    import typer

    from sequst.cli.app import make_app

    parts: list[str] = []

    def tell(command: Any, name: str) -> None:
        if hasattr(command, "commands"):
            for each, inner in sorted(command.commands.items()):
                tell(inner, f"{name} {each}")
            return
        context = command.context_class(command, info_name=name)
        told, _, example = (command.help or "").partition("\b\nExample:")
        parts.append(f"## {name.removeprefix('sequst ')}\n\n{told.strip()}\n")
        parts.append(f"```sh\n{example.strip()}\n```\n" if example else "")
        parts.append(f"```sh\n{' '.join(command.get_usage(context).removeprefix('Usage: ').split())}\n```\n")
        rows = []
        for parameter in command.params:
            told = getattr(parameter, "help", None) or ""
            shown = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))
            rows.append(
                f"| {shown if parameter.param_type_name == 'option' else f'`{parameter.make_metavar(context)}`'} | {told} |"
            )
        parts.append("\n".join(["| | |", "|---|---|", *rows]) + "\n")

    tell(typer.main.get_command(make_app()), "sequst")
    return "\n".join(parts)


def settings() -> str:
    """Every setting with its default and what it does."""
    from sequst.training.configure import describe

    rows = [f"| `{name}` | `{default}` | {text} |" for name, default, text in describe()]
    return "\n".join(["| setting | default | what it does |", "|---|---|---|", *rows])
