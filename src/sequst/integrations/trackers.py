"""Runs in TensorBoard, Weights & Biases and MLflow, through Accelerate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accelerate import tracking

from sequst.errors import SequstError, UsageError, nearest
from sequst.extras import needed
from sequst.training.configure import leaves
from sequst.training.progress import Tracker

log = logging.getLogger(__name__)

PROJECT = "sequst"
"""Name of the project that runs belong to."""

_MAKERS: dict[str, Callable[[Path], Any]] = {
    "tensorboard": lambda run: tracking.TensorBoardTracker("tensorboard", logging_dir=run),
    "wandb": lambda run: tracking.WandBTracker(PROJECT, name=run.name, dir=str(run)),
    "mlflow": lambda run: tracking.MLflowTracker(PROJECT, run_name=run.name),
}
TRACKERS = tuple(_MAKERS)
_FAILED: dict[str, Callable[[Any], Any]] = {
    "wandb": lambda tracker: tracker.run.finish(exit_code=1),
    "mlflow": lambda tracker: needed("mlflow", "mlflow").end_run("FAILED"),
}
"""Ends a run as failed, for the tools that know the difference; Accelerate does not."""


def make_tracker(name: str) -> AcceleratedTracker:
    """The tracker of this name. Raises an error if its library is not installed."""
    if name not in _MAKERS:
        raise UsageError(f"unknown tracker {name!r}; {nearest(name, TRACKERS)}")
    needed(name, name)
    return AcceleratedTracker(name, _MAKERS[name])


class AcceleratedTracker(Tracker):
    """One of Accelerate's trackers. Its step is the number of the line: the steps of each phase begin at 0 again."""

    def __init__(self, name: str, make: Callable[[Path], Any]) -> None:
        self._name, self._make = name, make
        self._tracker: Any = None
        self._step = 0

    def begin(self, run: Path, settings: Mapping[str, Any]) -> None:
        tracker, self._step = self._make(run.absolute()), 0
        try:
            tracker.start()
            plain = (bool, int, float, str)
            found = {name: value if isinstance(value, plain) else str(value) for name, value in leaves(settings)}
            tracker.store_init_configuration(found)
        except Exception as error:  # each tool has its own: no network, no account, no place to write
            raise SequstError(
                f"--tracker {self._name} cannot begin ({type(error).__name__}: {error}); "
                f"fix that, or continue without it: sequst train --resume {run}"
            ) from error
        self._tracker = tracker

    def log(self, line: Mapping[str, Any]) -> None:
        """The numbers of a line, under the name of its phase. A tool that fails is left, and the run goes on."""
        if self._tracker is None:
            return
        numbers = {
            f"{line.get('phase', 'run')}/{name}": value
            for name, value in line.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        self._step += 1
        try:
            self._tracker.log(numbers, step=self._step)
        except Exception as error:
            log.warning(
                "%s failed and is used no more (%s: %s); metrics.jsonl has all lines", self._name, type(error).__name__, error
            )
            self._tracker = None

    def end(self, failed: bool = False) -> None:
        tracker, self._tracker = self._tracker, None
        if tracker is None:
            return
        try:
            if failed and self._name in _FAILED:
                _FAILED[self._name](tracker)
            else:
                tracker.finish()
        except Exception as error:  # the run itself has ended well
            log.warning("%s could not be closed (%s: %s)", self._name, type(error).__name__, error)
