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

IN_PLACE = typer.Option(help="In place of the recipe's; may be given again.")
Names = Annotated[list[str] | None, IN_PLACE]
Baseline = Annotated[str, typer.Option(help="The method that differences are taken to.")]
Folders = Annotated[list[str], typer.Argument(help="Folders of `run`, or files of results.", metavar="DIR...")]


@experiment.command("recipes")
def recipes() -> None:
    """List the recipes: what each runs, and how many cells it has.

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
    recipe: Annotated[str, typer.Argument(help="A recipe by its name, a YAML file, or results to run again.")],
    output: Annotated[str, typer.Option(help="Folder of the results; cells that are in it are not run again.", metavar="DIR")],
    data: Annotated[
        str, typer.Option(help="Folder of the benchmarks; else that of SEQUST_DATA.", metavar="DIR", envvar="SEQUST_DATA")
    ] = ".",
    dataset: Names = None,
    method: Names = None,
    encoder: Names = None,
    head: Names = None,
    seed: Annotated[list[int] | None, IN_PLACE] = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A setting on top of the recipe's, as `train` takes it; may be given again.", metavar="NAME=VALUE"
        ),
    ] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster.")] = "local",
    jobs: Annotated[int, typer.Option(help="Cells at a time on this machine; with ray, on a GPU or a machine.", min=1)] = 1,
    mps: Annotated[bool, typer.Option("--mps", help="Several cells on a GPU compute side by side, by NVIDIA's MPS.")] = False,
    limit_seconds: Annotated[float | None, typer.Option(help="Stop by then; what is left runs another time.", min=1)] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    commit: Annotated[str | None, typer.Option(help="Commit of the code, where it is no git checkout.")] = None,
) -> None:
    """Run the cells of a recipe that are not done yet. Exits with 1 where some failed.

    \b
    Example:
      sequst experiment run main-10shot --data DIR --output results --jobs 4
    """
    import contextlib
    import signal
    import sys
    from pathlib import Path

    from sequst.cli.console import note
    from sequst.errors import UsageError, nearest
    from sequst.experiments.grid import run_grid
    from sequst.experiments.mps import side_by_side
    from sequst.experiments.recipe import load_cells

    if device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"--device {device}: {nearest(device, ('auto', 'cpu', 'cuda'))}")
    folder = Path(output)
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
                cells, Path(data), folder / "results.jsonl", jobs=jobs, commit=commit, device="cuda" if mps else device,
                limit_seconds=limit_seconds, tell=tell, engine=engine,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit):
        note("stopped; the cells that have ended are kept, and the same command runs the others")
        raise
    note(f"{outcome}; results: {folder / 'results.jsonl'}")
    if outcome.failed:
        note(f"what failed, and why: {folder / 'results.failures.jsonl'}; the same command tries it again")
    raise typer.Exit(1 if outcome.failed else 0)


@experiment.command("table")
def table(
    folders: Folders,
    format: Annotated[str, typer.Option(help="markdown, latex or csv.")] = "markdown",
    baseline: Baseline = "sst",
) -> None:
    """Print the results beside the paper's: means, deviations, differences, and which of them are real.

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
    output: Annotated[str | None, typer.Option(help="Where to; else DIR/figures.", metavar="DIR")] = None,
) -> None:
    """Draw what the results have something for: scores, rounds, reliability. Every figure is written as SVG, PNG and CSV.

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
        raise SequstError("there is nothing to draw yet: no cell of a few-shot draw that is scored on test has ended")
    for path in write_figures(made, _beside(folders[0], output, "figures")):
        note(str(path))


@experiment.command("report")
def report(
    folders: Folders,
    output: Annotated[str | None, typer.Option(help="The page; else DIR/report.html.", metavar="FILE")] = None,
    baseline: Baseline = "sst",
) -> None:
    """Put tables and figures into one page, which needs no other file and no network.

    \b
    Example:
      sequst experiment report results
    """
    from pathlib import Path

    from sequst.cli.console import note
    from sequst.experiments.report import write_experiment_report
    from sequst.experiments.results import Results
    from sequst.files import require_writable
    from sequst.methods.registry import find_method

    find_method(baseline)
    page = _beside(folders[0], output, "report.html")
    require_writable(page, "--output", read=[folder for folder in folders if Path(folder).is_file()])
    write_experiment_report(Results.load(folders), page, baseline)
    note(f"{page}: open it in a browser")


def _beside(first: str, output: str | None, name: str) -> Path:
    """What was asked for, or a name beside the first results."""
    from pathlib import Path

    if output is not None:
        return Path(output)
    return (Path(first) if Path(first).is_dir() else Path(first).parent) / name
