from __future__ import annotations

from typing import Annotated

import typer

from sequst.cli.options import FORMAT_HELP, TagColumn, WordColumn
from sequst.errors import UsageError

SHOWN = 20
"""Malformed places that are printed."""


def check(
    labeled: Annotated[str, typer.Option(help="Labelled sentences.", metavar="FILE")],
    unlabeled: Annotated[str | None, typer.Option(help="Unlabelled sentences.", metavar="FILE")] = None,
    dev: Annotated[str | None, typer.Option(help="Dev set.", metavar="FILE")] = None,
    test: Annotated[str | None, typer.Option(help="Test set.", metavar="FILE")] = None,
    encoder: Annotated[
        str, typer.Option(help="Encoder whose sub-words are counted (words for `bilstm`); none = skip.")
    ] = "minilm",
    max_length: Annotated[int, typer.Option(help="Longest window in sub-words.")] = 64,
    labeled_format: Annotated[str, typer.Option(help=f"Format of --labeled, --dev, --test: {FORMAT_HELP}")] = "auto",
    unlabeled_format: Annotated[str, typer.Option(help=f"Format of --unlabeled: {FORMAT_HELP}")] = "auto",
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
    drop_overlap: Annotated[
        bool, typer.Option("--drop-overlap", help="Drop sentences that dev or test have too. Needs --output.")
    ] = False,
    output: Annotated[str | None, typer.Option(help="Write the files into this folder, as JSON lines.", metavar="DIR")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the data before training. Exits with 0 if training may start, else with 1.

    \b
    Example:
      sequst check --labeled labeled.conll --unlabeled raw.txt
    """
    import dataclasses
    import functools

    from sequst.cli.console import show, show_json
    from sequst.corpus import checking
    from sequst.corpus.formats.read import read_file
    from sequst.files import require_free
    from sequst.inputs import require_one_stdin

    require_one_stdin((labeled, unlabeled, dev, test))
    folder = None if output is None else require_free(output, "--output")
    if drop_overlap and folder is None:
        raise UsageError("--drop-overlap needs a place for the files that it writes; add --output DIR")
    read = functools.partial(read_file, word_column=word_column, tag_column=tag_column)
    readings = {"labeled": read(labeled, format=labeled_format)}
    if unlabeled is not None:
        readings["unlabeled"] = read(unlabeled, format=unlabeled_format, tag_use="hidden")
    for role, path in (("dev", dev), ("test", test)):
        if path is not None:
            readings[role] = read(path, format=labeled_format)
    dropped: list[checking.Finding] = []
    if drop_overlap:
        readings, dropped = checking.without_overlap(readings)
    findings = [*checking.check(readings), *dropped]
    if encoder != "none":
        from sequst.tagger.coverage import check_coverage

        findings += check_coverage(readings, encoder, max_length)
    failed = any(finding.level == "error" for finding in findings)
    if folder is not None and not failed:
        checking.write_readings(readings, folder)
    if as_json:
        show_json({"ok": not failed, "findings": [dataclasses.asdict(f) for f in findings]})
    else:
        styles = {"error": "bold red", "warning": "yellow", "note": "dim"}
        malformed = 0
        for finding in findings:
            malformed += finding.kind == "malformed"
            if finding.kind == "malformed" and malformed > SHOWN:
                continue
            show(f"{finding.level:8}", style=styles[finding.level], end="")
            show(finding.message, soft_wrap=True)
        if malformed > SHOWN:
            show(f"{malformed - SHOWN:,} more malformed places; --json lists all")
        show("training cannot start: fix the errors above" if failed else "training may start")
    raise typer.Exit(1 if failed else 0)
