from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from sequst.experiments.cells import Cell
    from sequst.experiments.engines import Result
    from sequst.experiments.grid import GridResult

HELP = """Run the paper's experiments.

\b
Example:
  sequst experiment run main-10shot --data DIR --output results
"""
experiment = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)

IN_PLACE = typer.Option(help="Replaces the recipe's. May be given several times.")
Names = Annotated[list[str] | None, IN_PLACE]
Baseline = Annotated[str, typer.Option(help="Method that the others are compared with.")]
Folders = Annotated[list[str], typer.Argument(help="Folders of `run`, or files of results.", metavar="DIR...")]


@experiment.command("recipes")
def recipes() -> None:
    """List the recipes. Shows what each runs, and how many cells it has.

    \b
    Example:
      sequst experiment recipes
    """
    from sequst.cli.console import show
    from sequst.experiments.recipe import load_recipe, recipe_names

    for name in recipe_names():
        recipe = load_recipe(name)
        show(f"{name:16} {len(recipe.cells()):5} cells  {recipe.about}", soft_wrap=True)


@experiment.command("run")
def run(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe, a YAML file, or a file of results to run again.")],
    output: Annotated[str, typer.Option(help="Folder of the results. Cells in it are not run again.", metavar="DIR")],
    data: Annotated[str, typer.Option(help="Folder of the benchmarks.", metavar="DIR", envvar="SEQUST_DATA")] = ".",
    dataset: Names = None,
    method: Names = None,
    encoder: Names = None,
    head: Names = None,
    seed: Annotated[list[int] | None, IN_PLACE] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a setting of the recipe. May be given several times.", metavar="NAME=VALUE"),
    ] = None,
    engine: Annotated[str, typer.Option(help="local, or ray (a cluster).")] = "local",
    jobs: Annotated[int, typer.Option(help="Cells at a time: on this machine, or with ray on each GPU or machine.", min=1)] = 1,
    mps: Annotated[bool, typer.Option("--mps", help="Run cells on one GPU side by side, through NVIDIA's MPS.")] = False,
    limit_seconds: Annotated[
        float | None, typer.Option(help="Stop in time for this limit. The same command continues.", min=1)
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    commit: Annotated[str | None, typer.Option(help="Commit of the code, if it is not a git checkout.")] = None,
) -> None:
    """Run the cells of a recipe. Cells that are done are skipped; exits with 1 if one failed.

    \b
    Example:
      sequst experiment run main-10shot --data DIR --output results --jobs 4
    """
    import contextlib
    import signal
    import sys

    from sequst.cli.console import note
    from sequst.errors import UsageError, nearest
    from sequst.experiments.grid import run_grid
    from sequst.experiments.mps import side_by_side
    from sequst.experiments.recipe import load_cells
    from sequst.files import as_path

    if device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"--device {device}: {nearest(device, ('auto', 'cpu', 'cuda'))}")
    folder = as_path(output)
    if folder.is_file():
        raise UsageError(f"--output {output} is a file; name a folder")
    cells = load_cells(recipe, override or (), datasets=dataset, methods=method, encoders=encoder, heads=head, seeds=seed)

    def tell(cell: Cell, result: Result, grid: GridResult) -> None:
        what = f"{cell.dataset} {cell.method} {cell.encoder} {cell.head} {cell.recipe} seed {cell.seed}"
        came = f"failed: {result}" if isinstance(result, str) else f"F1 {result[0]['f1']:.2f}"
        note(f"{grid.ended} of {grid.total}: {what}: {came}")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as of Ctrl-C, so that nothing is left running
    try:
        with side_by_side(device, engine) if mps else contextlib.nullcontext():
            outcome = run_grid(
                cells, as_path(data), folder / "results.jsonl", jobs=jobs, commit=commit, device="cuda" if mps else device,
                limit_seconds=limit_seconds, tell=tell, engine=engine,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit):
        note("stopped; finished cells are kept; the same command runs the rest")
        raise
    note(f"{outcome}; results: {folder / 'results.jsonl'}")
    if outcome.failed:
        note(f"failed cells and their errors: {folder / 'results.failures.jsonl'}; the same command tries them again")
    raise typer.Exit(1 if outcome.failed else 0)


@experiment.command("table")
def table(
    folders: Folders,
    format: Annotated[str, typer.Option(help="markdown, latex or csv.")] = "markdown",
    baseline: Baseline = "sst",
) -> None:
    """Print tables of results. Means, deviations, differences with p values, beside the paper's.

    \b
    Example:
      sequst experiment table results
    """
    from sequst.errors import UsageError, nearest
    from sequst.experiments.rendering import FORMATS
    from sequst.experiments.results import Results
    from sequst.experiments.tables import tables_of
    from sequst.methods.registry import find_method

    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}; {nearest(format, FORMATS)}")
    find_method(baseline)
    typer.echo(FORMATS[format](tables_of(Results.load(folders), baseline)), nl=False)


@experiment.command("figures")
def figures(
    folders: Folders,
    output: Annotated[str | None, typer.Option(help="Folder to write. [default: DIR/figures]", metavar="DIR")] = None,
) -> None:
    """Draw figures of results. Scores, rounds and reliability, each as SVG, PNG and CSV.

    \b
    Example:
      sequst experiment figures results
    """
    from sequst.cli.console import note
    from sequst.errors import SequstError
    from sequst.experiments.figures import figures_of, write_figures
    from sequst.experiments.results import Results

    made = figures_of(Results.load(folders))
    if not made:
        raise SequstError("nothing to draw yet: no finished few-shot cell is scored on test")
    for path in write_figures(made, _beside(folders[0], output, "figures")):
        note(str(path))


@experiment.command("report")
def report(
    folders: Folders,
    output: Annotated[str | None, typer.Option(help="File to write. [default: DIR/report.html]", metavar="FILE")] = None,
    baseline: Baseline = "sst",
) -> None:
    """Write a page of tables and figures. The file needs no other file and no network.

    \b
    Example:
      sequst experiment report results
    """
    from sequst.cli.console import note
    from sequst.experiments.report import write_experiment_report
    from sequst.experiments.results import Results
    from sequst.files import as_path, require_writable
    from sequst.methods.registry import find_method

    find_method(baseline)
    page = _beside(folders[0], output, "report.html")
    require_writable(page, "--output", read=[folder for folder in folders if as_path(folder).is_file()])
    write_experiment_report(Results.load(folders), page, baseline)
    note(f"{page}: open it in a browser")


def _beside(first: str, output: str | None, name: str) -> Path:
    """The path asked for, or the default name beside the first results."""
    from pathlib import Path

    from sequst.files import as_path

    if output is not None:
        return Path(output)
    return (Path(first) if as_path(first).is_dir() else Path(first).parent) / name
