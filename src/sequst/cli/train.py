from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from sequst.cli.options import FORMAT_HELP, TagColumn, WordColumn, setting


def train(
    labeled: Annotated[str | None, typer.Option(help="Labelled sentences.", metavar="FILE")] = None,
    unlabeled: Annotated[str | None, typer.Option(help="Unlabelled sentences; tags in it are ignored.", metavar="FILE")] = None,
    dev: Annotated[str | None, typer.Option(help="Dev set: decides which weights to keep.", metavar="FILE")] = None,
    dev_fraction: Annotated[float | None, setting("dev_fraction")] = None,
    dev_shots: Annotated[int | None, setting("dev_shots")] = None,
    test: Annotated[str | None, typer.Option(help="Test set: read once, at the end.", metavar="FILE")] = None,
    output: Annotated[str | None, typer.Option(help="Folder of the run; the model is in its `model`.", metavar="RUN")] = None,
    resume: Annotated[str | None, typer.Option(help="Go on with a run that was stopped.", metavar="RUN")] = None,
    method: Annotated[str | None, setting("method")] = None,
    encoder: Annotated[str | None, setting("encoder")] = None,
    head: Annotated[str | None, setting("head")] = None,
    seed: Annotated[int | None, setting("seed")] = None,
    settings: Annotated[
        str | None,
        typer.Option(help="Settings as YAML, `best` (the defaults) or `paper`; `sequst settings` prints all.", metavar="FILE"),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override a setting, e.g. teacher.epochs=10.", metavar="K=V")
    ] = None,
    device: Annotated[str | None, setting("device")] = None,
    tracker: Annotated[
        str | None, typer.Option(help="Show the run in tensorboard, wandb or mlflow too.", metavar="NAME")
    ] = None,
    labeled_format: Annotated[str, typer.Option(help=f"Format of --labeled, --dev, --test: {FORMAT_HELP}")] = "auto",
    unlabeled_format: Annotated[str, typer.Option(help=f"Format of --unlabeled: {FORMAT_HELP}")] = "auto",
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
) -> None:
    """Train a tagger. Everything is checked before the run begins; a killed run goes on with --resume.

    \b
    Example:
      sequst train --labeled labeled.conll --unlabeled raw.txt --dev-shots 5 --output run
    """
    from sequst.cli.console import fail
    from sequst.cli.progress import make_progress
    from sequst.cli.tables import print_result

    given = {
        "--labeled": labeled, "--unlabeled": unlabeled, "--dev": dev, "--dev-fraction": dev_fraction,
        "--dev-shots": dev_shots, "--test": test,
        "--output": output, "--method": method, "--encoder": encoder, "--head": head, "--seed": seed, "--settings": settings,
        "--set": set_ or None, "--device": device, "--labeled-format": labeled_format, "--unlabeled-format": unlabeled_format,
        "--word-column": word_column, "--tag-column": tag_column,
    }  # fmt: skip
    _require_flags(given, resume is not None)

    from sequst import api as running
    from sequst.training.configure import load_settings
    from sequst.training.data import DataFile

    def file(path: str | None, format: str) -> DataFile | None:
        return None if path is None else DataFile(path, format, word_column, tag_column)

    tracking = None
    if tracker is not None:
        from sequst.integrations.trackers import make_tracker

        tracking = make_tracker(tracker)
    place = resume or output
    progress = make_progress()
    try:
        if resume is not None:
            result = running.resume(resume, progress, tracking)
        else:
            assert labeled is not None
            assert output is not None
            result = running.train(
                DataFile(labeled, labeled_format, word_column, tag_column),
                output,
                unlabeled=file(unlabeled, unlabeled_format),
                dev=file(dev, labeled_format),
                test=file(test, labeled_format),
                settings=load_settings(
                    settings,
                    set_ or (),
                    method=method,
                    encoder=encoder,
                    head=head,
                    seed=seed,
                    device=device,
                    dev_fraction=dev_fraction,
                    dev_shots=dev_shots,
                ),
                progress=progress,
                tracker=tracking,
            )
    except KeyboardInterrupt:
        progress.end()
        begun = place is not None and (Path(place) / "run.json").is_file()
        fail(
            f"stopped; go on with: sequst train --resume {shlex.quote(str(place))}"
            if begun
            else "stopped before the run began",
            130,
        )
    print_result(result)


def _require_flags(given: dict[str, Any], resuming: bool) -> None:
    """Resuming takes no other flag; beginning takes at least the data and a place for the run."""
    from sequst.errors import UsageError

    if resuming:
        extra = [flag for flag, value in given.items() if value is not None and value is not False and value != "auto"]
        if extra:
            raise UsageError(f"--resume goes on with the run as it was begun: leave out {', '.join(extra)}")
        return
    missing = [flag for flag in ("--labeled", "--output") if given[flag] is None]
    if missing:
        raise UsageError(f"missing {' and '.join(missing)}; e.g. sequst train --labeled labeled.conll --output run")
