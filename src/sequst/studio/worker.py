"""The process that trains and chooses, so that the page never waits. It reads and writes the project's file.

The server writes a line to its standard input when there may be something to do, and closes it when it ends itself: the worker
then ends too. What the worker does it tells on its standard output, a JSON object a line. A worker that is killed in the middle
of a training leaves a run that the next one continues.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sequst.errors import SequstError, said
from sequst.files import as_json
from sequst.studio import exports, jobs
from sequst.studio.exports import WORK
from sequst.studio.project import Project
from sequst.training.progress import Counted

NICE = 10
"""How far its priority is below that of the server and the browser."""
_EVERY = 0.2
"""Seconds between two lines about progress."""
_IDLE = 30.0
_FEW = 5
"""Sentences in the queue below which it is filled."""

log = logging.getLogger(__name__)


class Told(Counted):
    """Progress as lines of JSON."""

    def __init__(self, job: jobs.Job) -> None:
        self._job, self._last = job, 0.0
        self.efforts: Mapping[str, float] = {}

    def forecast(self, efforts: Mapping[str, float]) -> None:
        self.efforts = efforts

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        super().begin(phase, total, done, unit)
        self._tell()

    def advance(self, steps: int = 1, **values: float) -> None:
        super().advance(steps, **values)
        if time.monotonic() - self._last > _EVERY:
            self._tell()

    def note(self, message: str, detail: bool = False) -> None:
        log.info("%s", message)

    def _tell(self) -> None:
        self._last = time.monotonic()
        tell(job=self._job.id, phase=self.phase, done=self.done, total=self.total, left=self.seconds_left())


def tell(**what: Any) -> None:
    try:
        sys.stdout.write(as_json(what) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the server is gone, which is no fault of the job
        os._exit(0)


def work(folder: str | Path) -> None:
    """Do what there is to do until standard input ends, or until the work that needed torch is done: a process that has
    trained holds gigabytes, and the next one is small until it trains."""
    wake = threading.Event()
    threading.Thread(target=_listen, args=(wake,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICE)
    with contextlib.suppress(OSError):  # Linux on a desktop weighs sessions, and this process has one of its own
        Path("/proc/self/autogroup").write_text(str(NICE), encoding="ascii")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # torch is not imported yet; with a thread on every core it would wait for the one whose core the browser has
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores - 1)))
    project = Project(folder)
    _clear_up(project)
    while True:
        wake.clear()
        job = jobs.take(project)
        if job is not None:
            _do(project, job)
        elif not _choose_ahead(project):
            if "torch" in sys.modules:
                return
            wake.wait(_IDLE)


def _clear_up(project: Project) -> None:
    """Remove what is left of trainings that were stopped or failed."""
    running = jobs.unfinished(project)
    for path in (project.folder / WORK).glob("run-*"):
        if path.name.partition("-")[2].partition(".")[0] not in map(str, running):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _listen(wake: threading.Event) -> None:
    for _ in sys.stdin:
        wake.set()
    os._exit(0)


def _do(project: Project, job: jobs.Job) -> None:
    from sequst.studio.tasks import TASKS

    tell(job=job.id, phase="", done=0, total=0, left=None)
    try:
        TASKS[job.kind](project, job, Told(job))
    except SequstError as error:
        jobs.end(project, job.id, "failed", str(error))
        log.warning("%s %d: %s", job.kind, job.id, error)
    except Exception as error:
        jobs.end(project, job.id, "failed", f"{type(error).__name__}: {said(error)}; the studio's log shows where")
        log.exception("%s %d", job.kind, job.id)
    else:
        jobs.end(project, job.id, "done")
    tell(ended=job.id)


def _choose_ahead(project: Project) -> bool:
    """Fill the queue where it runs low, or a new model can choose better. Whether there was something to do."""
    counts, newest = project.counts(), exports.newest(project) or 0
    answered = [newest, counts["labeled"] + counts["skipped"]]
    if not counts["raw"] or project.fact("chosen") == answered:
        return False
    left = project.database.reading.execute(
        "SELECT count(*) FROM queue CROSS JOIN sentences ON sentences.id = queue.sentence WHERE status = 'raw' AND NOT judging"
    ).fetchone()[0]
    if left >= _FEW and (project.fact("chosen") or [0])[0] == newest:
        return False
    tell(job=0, phase="", done=0, total=0, left=None)
    from sequst.studio.tasks import choose_ahead

    trouble = None
    try:
        choose_ahead(project)
    except Exception as error:  # sentences then come at random, which is no reason to stop
        trouble = f"The next sentences come at random: {said(error)}"
        log.warning("%s", trouble)
    project.keep_fact("trouble", trouble)
    project.keep_fact("chosen", answered)
    tell(chosen=True)
    return True


def main() -> None:
    logging.basicConfig(format="%(levelname)s: worker: %(message)s", level=logging.WARNING)
    with contextlib.suppress(KeyboardInterrupt):
        work(sys.argv[1])


if __name__ == "__main__":
    main()
