from __future__ import annotations

import threading
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from sequst.cli.console import note
from sequst.errors import UsageError
from sequst.extras import needed
from sequst.files import as_path

if TYPE_CHECKING:
    from sequst.service.guard import Tokens
    from sequst.service.server import Site

DEMO = "sequst-studio-demo"


def studio(
    project: Annotated[str | None, typer.Argument(help="Folder of the project; made where there is none.")] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Text to choose from, to be added. May be given several times.", metavar="FILE"),
    ] = None,
    labeled: Annotated[
        list[str] | None, typer.Option(help="Labelled sentences, to be added. May be given several times.", metavar="FILE")
    ] = None,
    types: Annotated[str | None, typer.Option(help="Entity types, with commas between, e.g. person,place.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="`minilm`, a local folder, or a model of the Hugging Face hub. [default: minilm]")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any but this machine's own needs --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 = any that is free.", min=0, max=65535)] = 8080,
    token_file: Annotated[
        str | None, typer.Option(help="File with a token on each line; the page asks for one of them.", metavar="FILE")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    demo: Annotated[bool, typer.Option("--demo", help=f"Try it on generated text, in the folder {DEMO}.")] = False,
) -> None:
    """Label sentences in the browser while a tagger learns from them.

    \b
    Example:
      sequst studio project --text raw.txt --types person,place
    """
    for module in ("fastapi", "fastapi_offline", "uvicorn", "httptools", "prometheus_client"):
        needed(module, "studio")
    if project is None and not demo:
        raise UsageError("name the folder of the project, e.g. sequst studio project --text raw.txt; or try --demo")

    from sequst.service.server import serve
    from sequst.studio.app import build_studio
    from sequst.studio.demo import make_demo
    from sequst.studio.exports import add_file
    from sequst.studio.project import Project

    opened = Project(project or DEMO)
    with opened.lock():
        if demo:
            make_demo(opened)
        if encoder is not None:
            opened.change_settings({"encoder": _located(encoder)}, "")
        known = {each.name for each in opened.types()}
        for name in filter(None, (each.strip() for each in (types or "").split(","))):
            if name not in known:
                opened.change_types({"op": "add", "name": name}, "")
        for files, with_labels in ((labeled, True), (text, False)):
            for file in files or ():
                added = add_file(opened, file, file, with_labels)
                for told in added["notes"]:
                    note(told)
                again = f", {added['known']:,} were there already" if added["known"] else ""
                note(f"{file}: {added['added']:,} sentences added{again}")

        def make(tokens: Tokens) -> Site:
            return build_studio(opened, tokens)

        def ready(address: str) -> None:
            note(f"the studio is at {address}; Ctrl-C stops it, and the same command goes on")
            if browser:  # in a thread, for a browser in the terminal ends when the person ends it
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        serve(make, host, port, token_file, ready)


def _located(encoder: str) -> str:
    path = as_path(encoder)
    return str(path.absolute()) if path.is_dir() else encoder
