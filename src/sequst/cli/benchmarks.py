from __future__ import annotations

from typing import Annotated, Any

import typer


def benchmarks(
    names: Annotated[list[str] | None, typer.Argument(help="Benchmarks to show. [default: all]", metavar="[NAME]...")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Folder of the benchmarks.", metavar="DIR", envvar="SEQUST_DATA"),
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Download those whose licence allows it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the benchmarks. Prints their sizes beside the paper's; exits with 1 if a file is malformed.

    \b
    Example:
      sequst benchmarks --data DIR
    """
    from sequst.cli.console import note, show, show_json
    from sequst.cli.tables import benchmarks_table
    from sequst.errors import UsageError
    from sequst.experiments.benchmarks import BENCHMARKS, fetch, find_benchmark, look_at
    from sequst.files import as_path

    chosen = [find_benchmark(name) for name in names or BENCHMARKS]
    folder = None if data is None else as_path(data)
    if download:
        if folder is None:
            raise UsageError("--download needs a folder to put files into: name it with --data")
        for benchmark in chosen:
            if benchmark.download or names:
                fetch(benchmark, folder, note)
    elif folder is not None and not folder.is_dir():
        raise UsageError(f"--data {data}: no such folder")
    looks = [look_at(benchmark, folder) for benchmark in chosen]
    if as_json:
        show_json(looks)
    else:
        show(benchmarks_table(looks))
        _tell(looks)
    raise typer.Exit(1 if any(look["problems"] for look in looks) else 0)


def _tell(looks: list[dict[str, Any]]) -> None:
    """What is missing, what to know and what is wrong."""
    from sequst.cli.console import note

    for look in looks:
        missing = [] if look["there"] else [f"not there. {look['how_to_get']}"]
        for line in (*missing, *look["notes"], *look["problems"][:5]):
            note(f"{look['name']}: {line}")
