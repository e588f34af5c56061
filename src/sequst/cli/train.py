from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sequst.cli import options
from sequst.cli.console import fail
from sequst.errors import UsageError
from sequst.training.configure import load_settings


def train(
    context: typer.Context,
    labeled: Annotated[str | None, typer.Option(help="Labelled sentences.", metavar="FILE")] = None,
    unlabeled: Annotated[str | None, typer.Option(help="Unlabelled sentences; tags in it are ignored.", metavar="FILE")] = None,
    dev: Annotated[
        str | None, typer.Option(help="Dev set. Decides which weights to keep, and calibrates.", metavar="FILE")
    ] = None,
    dev_fraction: Annotated[float | None, options.setting("dev_fraction")] = None,
    dev_shots: Annotated[int | None, options.setting("dev_shots")] = None,
    test: Annotated[str | None, typer.Option(help="Test set. Read once, at the end.", metavar="FILE")] = None,
    output: Annotated[str | None, typer.Option(help="Folder of the run. The model is in RUN/model.", metavar="RUN")] = None,
    resume: Annotated[str | None, typer.Option(help="Continue a run that was stopped.", metavar="RUN")] = None,
    method: Annotated[str | None, options.setting("method")] = None,
    encoder: options.Encoder = None,
    head: options.Head = None,
    seed: options.Seed = None,
    effort: options.Effort = None,
    settings: options.SettingsFile = None,
    set_: options.Overrides = None,
    device: options.TrainingDevice = None,
    tracker: Annotated[
        str | None, typer.Option(help="Also show the run in tensorboard, wandb or mlflow.", metavar="NAME")
    ] = None,
    labeled_format: Annotated[str, typer.Option(help=f"Format of --labeled, --dev, --test: {options.FORMAT_HELP}")] = "auto",
    unlabeled_format: Annotated[str, typer.Option(help=f"Format of --unlabeled: {options.FORMAT_HELP}")] = "auto",
    word_column: options.WordColumn = None,
    tag_column: options.TagColumn = None,
    verbose: options.Verbose = False,
) -> None:
    """Train a tagger. Input is checked before training; a killed run continues with --resume.

    \b
    Example:
      sequst train --labeled labeled.conll --unlabeled raw.txt --dev-shots 5 --output run
    """
    _require_flags(context)

    from sequst import api
    from sequst.cli.progress import make_progress
    from sequst.cli.tables import print_result
    from sequst.training.data import DataFile

    def file(path: str | None, format: str) -> DataFile | None:
        return None if path is None else DataFile(path, format, word_column, tag_column)

    tracking = None
    if tracker is not None:
        from sequst.integrations.trackers import make_tracker

        tracking = make_tracker(tracker)
    place = str(resume or output)
    progress = make_progress(verbose)
    try:
        if resume is not None:
            result = api.resume(resume, progress, tracking)
        else:
            chosen = load_settings(
                settings, set_ or (), effort=effort, method=method, encoder=encoder, head=head, seed=seed,
                device=device, dev_fraction=dev_fraction, dev_shots=dev_shots,
            )  # fmt: skip
            result = api.train(
                DataFile(str(labeled), labeled_format, word_column, tag_column),
                place,
                unlabeled=file(unlabeled, unlabeled_format),
                dev=file(dev, labeled_format),
                test=file(test, labeled_format),
                settings=chosen,
                progress=progress,
                tracker=tracking,
            )
    except KeyboardInterrupt:
        progress.end()
        begun = (Path(place) / "run.json").is_file()
        way_on = f"continue with: sequst train --resume {shlex.quote(place)}"
        fail(f"stopped; {way_on}" if begun else "stopped before the run began", 130)
    print_result(result)


def _require_flags(context: typer.Context) -> None:
    """Only --tracker and --verbose go with --resume; a new run needs --labeled and --output."""
    sources = {each.opts[0]: context.get_parameter_source(str(each.name)) for each in context.command.params}
    given = [flag for flag, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if "--resume" in given:
        extra = [flag for flag in given if flag not in ("--resume", "--tracker", "--verbose")]
        if extra:
            raise UsageError(f"--resume continues the run with its own settings: leave out {', '.join(extra)}")
        return
    missing = [flag for flag in ("--labeled", "--output") if flag not in given]
    if missing:
        raise UsageError(f"missing {' and '.join(missing)}; e.g. sequst train --labeled labeled.conll --output run")
