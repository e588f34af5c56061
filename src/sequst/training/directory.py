"""The run directory: everything in it is written under a temporary name and renamed, so that a killed run can go on.

settings.yaml    the settings, in full
run.json         the files with their hashes, the threads, the command
inputs/          what came through standard input, from Python or from the hub, so that it can be read again
metrics.jsonl    a line for every score
rounds/N/PHASE/  the state and the outcome of each phase
model/           the tagger
report.html      the run as a page to look at
summary.json     the final figures; a run that has it is finished
"""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import shlex
import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from sequst.errors import SequstError, UsageError, shorten
from sequst.files import (
    as_folder,
    as_json,
    as_path,
    atomic_folder,
    explained,
    intact,
    lock,
    require_free,
    write_bytes,
    write_json,
)
from sequst.inputs import read_json, require_regular_files
from sequst.training.checkpoint import load_state, save_state
from sequst.training.configure import load_saved, save_settings
from sequst.training.data import DataFile, Files
from sequst.training.settings import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

log = logging.getLogger(__name__)


class RunDirectory:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None
        self._writer = ThreadPoolExecutor(1, "sequst-writer")
        self._writing: tuple[Path, Future[None]] | None = None

    @staticmethod
    def require_free(path: str | Path) -> Path:
        path = as_path(path)
        as_folder(path.absolute())
        with explained(path):
            if (path / "run.json").is_file():
                way_out = f"continue it with `sequst train --resume {shlex.quote(str(path))}` or name another folder"
                raise UsageError(f"--output {path} holds a run already; {way_out}")
        return require_free(path, "--output")

    @classmethod
    def create(cls, path: Path, settings: Settings, files: Files, facts: dict[str, Any], spool: Path) -> RunDirectory:
        """Make the directory at once, with all that resuming needs; files that lie in the spool are copied into it."""
        with atomic_folder(path) as temporary:
            (temporary / "inputs").mkdir()

            def keep(file: DataFile) -> DataFile:
                stamped, place = file.located(Path()).stamped(), Path(file.path)
                if place.parent != spool:
                    return stamped
                shutil.copy(place, temporary / "inputs")
                return dataclasses.replace(stamped, path=f"inputs/{place.name}")

            kept = {role: dataclasses.asdict(keep(file)) for role, file in files.items()}
            write_json(temporary / "run.json", {**facts, "files": kept})
            save_settings(settings, temporary / "settings.yaml")
            cls.require_free(path)  # another process may have begun a run there while this one was starting
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        path = as_path(path)
        require_regular_files(path)
        if not (path / "run.json").is_file():
            raise UsageError(f"--resume {path}: no run is there (it has no run.json); begin one with --labeled and --output")
        return cls(path)

    def lock(self) -> None:
        """Lock the run against a second process, until this one ends."""
        self._lock = lock(self.path / ".lock", f"{self.path}: another process is working on this run")

    def unlock(self) -> None:
        try:
            self.written()
        except SequstError as error:  # whatever ended the run is told; this comes beside it
            log.warning("%s", error)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def facts(self) -> dict[str, Any]:
        """The contents of run.json: facts of the run, and its `files` by role."""
        path = self.path / "run.json"
        facts = read_json(path)
        with intact(path, "begin a new run"):
            texts = [facts[name] for name in ("sequst", "torch", "command", "device", "precision")]
            if not all(isinstance(text, str) for text in (*texts, facts["encoder"]["sha256"])):
                raise TypeError("a fact is not a text")
            if not (type(facts["threads"]) is int and 0 < facts["threads"] < 10_000):
                raise ValueError(f"threads {shorten(facts['threads'])}")
            if facts["precision"] not in ("fp32", "bf16"):
                raise ValueError(f"precision {shorten(facts['precision'])}")
            facts["files"] = {role: DataFile(**file) for role, file in facts["files"].items()}
            if "labeled" not in facts["files"] or not all(file.is_sound for file in facts["files"].values()):
                raise ValueError("its list of files")
        return facts  # type: ignore[no-any-return]

    def files(self) -> Files:
        """The run's files. Raises an error if one has changed since the run began."""
        files = {role: file.located(self.path) for role, file in self.facts["files"].items()}
        for role, file in files.items():
            try:
                now = file.stamped().sha256
            except OSError as error:
                raise SequstError(f"--{role} {file.path}: {error.strerror}; the run needs it to continue") from None
            if now != file.sha256 and role == "test":  # it was not read yet; mending it is the way out where it was malformed
                log.warning("--test %s has changed since the run began", file.path)
            elif now != file.sha256:
                raise SequstError(f"--{role} {file.path} has changed since the run began; begin a new run with it")
        return files

    def settings(self) -> Settings:
        return load_saved(self.path / "settings.yaml")

    @property
    def summary(self) -> dict[str, Any] | None:
        """The final figures, once the run has ended."""
        path = self.path / "summary.json"
        if not path.is_file():
            return None
        summary = read_json(path)
        with intact(path, "delete it, and --resume ends the run again"):
            _ = [summary[name] for name in ("dev_f1", "dev_set", "device", "history", "kept_round", "seconds")]
        return summary  # type: ignore[no-any-return]

    def record(self, line: dict[str, Any]) -> None:
        path = self.path / "metrics.jsonl"
        with explained(path, "free some space, then continue with --resume"), path.open("a", encoding="utf-8") as file:
            file.write(as_json(line) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        path = self.path / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def clear_metrics(self) -> None:
        (self.path / "metrics.jsonl").unlink(missing_ok=True)

    def phase(self, round_: int, name: str) -> Path:
        return self.path / "rounds" / str(round_) / name

    def beliefs(self, round_: int) -> Path:
        """Path of a round's beliefs about the unlabelled words."""
        return self.phase(round_, "beliefs") / "beliefs.npz"

    def keep_selection(self, round_: int, selected: NDArray[np.bool_]) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, selected=selected)  # with a checksum
        write_bytes(self._selection(round_), buffer.getvalue(), "free some space, then continue with --resume")

    def selection(self, round_: int) -> NDArray[np.bool_]:
        """The unlabelled words that a round selected."""
        path = self._selection(round_)
        with intact(path), np.load(path, allow_pickle=False) as arrays:
            selected: NDArray[np.bool_] = arrays["selected"]
        return selected

    def _selection(self, round_: int) -> Path:
        return self.phase(round_, "beliefs") / "selected.npz"

    def outcome(self, round_: int, name: str) -> dict[str, Any] | None:
        """The result of a finished phase, weights included."""
        folder = self.phase(round_, name)
        if self._writing is not None and self._writing[0] == folder:
            self.written()
        path = folder / "done.pt"
        return load_state(path) if path.is_file() else None

    def finish_phase(self, round_: int, name: str, weights: Mapping[str, Tensor], outcome: dict[str, Any]) -> None:
        """Save the result of a phase in the background. If the run is killed before it is written, the phase is repeated."""
        self.written()
        folder = self.phase(round_, name)
        kept = {**outcome, "tagger": {key: value.detach().to("cpu", copy=True) for key, value in weights.items()}}

        def write() -> None:
            save_state(folder / "done.pt", kept)
            (folder / "state.pt").unlink(missing_ok=True)

        self._writing = folder, self._writer.submit(write)

    def written(self) -> None:
        """Wait for background writes. Their errors are raised here."""
        if self._writing is not None:
            (_, writing), self._writing = self._writing, None
            writing.result()

    def finish(self, summary: dict[str, Any], keep_rounds: bool) -> None:
        """Write the summary, which marks the run as finished, and delete the states of phases."""
        self.written()
        write_json(self.path / "summary.json", summary)
        if not keep_rounds:
            shutil.rmtree(self.path / "rounds", ignore_errors=True)
