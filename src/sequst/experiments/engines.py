"""Where the cells of a grid run: in processes of this machine, or as tasks of a Ray cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import tempfile
import threading
import traceback
from collections.abc import Callable
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any

from sequst.errors import SequstError, UsageError, said
from sequst.experiments.cells import Cell, run_cell
from sequst.experiments.results import Lines
from sequst.extras import needed
from sequst.files import Scratch

_CONTEXT = get_context("spawn")  # a forked process has no GPU

Result = tuple[dict[str, Any], dict[str, Lines]] | str
"""The line of a cell and its findings, or its error."""
Ended = tuple[Cell, Result]


@dataclasses.dataclass(frozen=True)
class Job:
    """What all cells of a grid have in common."""

    data: Path
    commit: str
    device: str = "auto"
    share: int = 1
    """Cells that share a machine or a GPU."""

    def attempt(self, cell: Cell) -> Result:
        """Run a cell, come what may: the others go on."""
        try:
            return run_cell(cell, self.data, self.commit, self.device)
        except SequstError as error:
            return str(error)
        except Exception as error:
            where = traceback.format_exc(limit=-3).strip()
            return f"{type(error).__name__}: {error}\n{where}"

    def settle(self, cpus: float) -> None:
        """Take no more of the machine than a cell's share."""
        import torch

        allowed = os.environ.get("OMP_NUM_THREADS", "")
        torch.set_num_threads(max(1, min(int(cpus), int(allowed) if allowed.isdigit() else int(cpus))))
        if self.device != "cpu" and torch.cuda.is_available():
            torch.cuda.set_per_process_memory_fraction(0.95 / self.share)  # the rest is what CUDA itself takes


class Local:
    """Processes of this machine, each of which runs one cell after the other."""

    def __init__(self, job: Job) -> None:
        from sequst.tagger.tagger import pick_device

        pick_device(job.device)  # one error now, where it is not there, and not one for every cell
        self._scratch = Scratch()  # what stopped cells leave goes with it
        self._job = job
        self._workers: list[_Worker] = []

    def room(self) -> int:
        """How many more cells could begin now."""
        return self._job.share - sum(worker.cell is not None for worker in self._workers)

    def begin(self, cell: Cell) -> None:
        if all(worker.cell for worker in self._workers):
            self._workers.append(_Worker(self._job, self._scratch.name))
        next(worker for worker in self._workers if worker.cell is None).give(cell)

    def wait(self, seconds: float | None) -> list[Ended]:
        """What has ended, as soon as there is any; none where the time is up before."""
        busy = {worker.connection: worker for worker in self._workers if worker.cell is not None}
        ended = [busy[ready].take() for ready in connection.wait(list(busy), seconds)]  # type: ignore[index]
        self._workers = [worker for worker in self._workers if worker.alive or worker.cell is not None]
        return ended

    def end(self) -> None:
        """Stop what is running."""
        for worker in self._workers:
            worker.end()
        self._scratch.cleanup()


class _Worker:
    """A process that runs one cell after the other."""

    def __init__(self, job: Job, scratch: str) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_work, args=(theirs, job, scratch), daemon=True)
        self._process.start()
        theirs.close()
        self.cell: Cell | None = None

    @property
    def alive(self) -> bool:
        return self._process.exitcode is None

    def give(self, cell: Cell) -> None:
        self.cell = cell
        with contextlib.suppress(OSError):  # a process that is gone is met again when its cell is taken
            self.connection.send(cell)

    def take(self) -> Ended:
        """What came of its cell; a process that is gone has failed at it."""
        assert self.cell is not None
        cell, self.cell = self.cell, None
        try:
            return cell, self.connection.recv()
        except (EOFError, OSError):  # a pipe that is closed, or reset, at the other end
            self._process.join()
            return cell, f"its process ended with exit code {self._process.exitcode}; was it killed, for lack of memory?"

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
        self.connection.close()


def _work(pipe: Any, job: Job, scratch: str) -> None:
    """The life of a worker: its share of the machine, then cell after cell."""
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    tempfile.tempdir = scratch
    job.settle((os.cpu_count() or 1) / job.share)
    while True:
        try:
            cell = pipe.recv()
        except EOFError:  # whoever gave the work is gone
            return
        pipe.send(job.attempt(cell))


def _end_with_the_parent() -> None:
    """Whoever gave the work may be killed; nobody would hear what comes of it."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


class OnRay:
    """Tasks of a Ray cluster: that of RAY_ADDRESS, one that is connected already, or a new one on this machine.

    A cell asks for its share of a GPU, or of a machine where the cluster has none. The benchmarks, the encoder and sequst must
    be at the same place on every machine. Lines are written where the grid was started, so a cell whose machine is lost runs
    again elsewhere and is never counted twice.
    """

    LOSSES = 3
    """Processes that a cell may lose before it has failed: a machine may be lost, but a cell may also be what kills it."""

    def __init__(self, job: Job) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # unset, Ray warns that it will be so one day
        self._ray = needed("ray", "ray")
        self._job = dataclasses.replace(job, data=job.data.absolute())
        self._started = not self._ray.is_initialized()
        if self._started:
            options: dict[str, Any] = {"log_to_driver": False, "logging_level": "WARNING"}
            _require_reachable(os.environ.get("RAY_ADDRESS", ""))
            if not os.environ.get("RAY_ADDRESS"):  # lines are all that it carries: they need no large store
                options |= {"address": "local", "include_dashboard": False, "object_store_memory": 100_000_000}
            self._ray.init(**options)
        self._tasks: dict[Any, tuple[Cell, int]] = {}
        """What runs a cell, and the processes that it has lost."""
        if job.device == "cuda" and not self._gpus():
            self.end()
            raise UsageError("device cuda: no machine of the Ray cluster has a GPU; use --device cpu")

    def room(self) -> int:
        slots = sum(self._slots(node) for node in self._machines())
        return max(slots - len(self._tasks), int(not self._tasks))  # with no machine at all a cell waits for one

    def _machines(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _gpus(self) -> bool:
        return self._job.device != "cpu" and any(machine.get("GPU") for machine in self._machines())

    def _slots(self, machine: dict[str, float]) -> int:
        if self._gpus():
            return int(machine.get("GPU", 0.0) * self._job.share)
        return min(self._job.share, int(machine.get("CPU", 0.0)))

    def begin(self, cell: Cell, losses: int = 0) -> None:
        shares = [machine.get("CPU", 0.0) / slots for machine in self._machines() if (slots := self._slots(machine))]
        cpus = min(shares, default=1.0)
        asked = {"num_cpus": float(int(cpus)) if cpus >= 1 else cpus, "max_retries": 0}
        if self._gpus():
            asked["num_gpus"] = 1.0 / self._job.share
        folder = Path(cell.encoder)
        placed = dataclasses.replace(cell, encoder=str(folder.absolute())) if folder.is_dir() else cell
        reference = self._ray.remote(_task).options(**asked).remote(self._job, placed, cpus)
        self._tasks[reference] = cell, losses

    def wait(self, seconds: float | None) -> list[Ended]:
        ready, _ = self._ray.wait(list(self._tasks), timeout=seconds)
        ended: list[Ended] = []
        for reference in ready:
            cell, losses = self._tasks.pop(reference)
            try:
                ended.append((cell, self._ray.get(reference)))
            except self._ray.exceptions.RayError as error:  # the task's own errors are results: this is a lost process
                if losses + 1 < self.LOSSES:
                    self.begin(cell, losses + 1)
                else:
                    reason = said(error)
                    ended.append((cell, f"its process was lost {self.LOSSES} times, for lack of memory? Ray says: {reason}"))
        return ended

    def end(self) -> None:
        for reference in self._tasks:
            self._ray.cancel(reference, force=True)
        if self._started:
            self._ray.shutdown()


def _require_reachable(address: str) -> None:
    """An error now where nobody listens at HOST:PORT: Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "//" in address:
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"RAY_ADDRESS {address}: no Ray cluster answers there ({reason}); start one, or unset it") from None


def _task(job: Job, cell: Cell, cpus: float) -> Result:
    job.settle(cpus)
    return job.attempt(cell)


Engine = Local | OnRay
ENGINES: dict[str, Callable[[Job], Engine]] = {"local": Local, "ray": OnRay}
