"""Results on disk: a line of JSON for every cell, and beside it the lines of what was found in it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sequst.errors import SequstError, UsageError
from sequst.files import as_json, as_path, explained
from sequst.inputs import require_small

Lines = list[dict[str, Any]]

TELLING = ("experiment", "dataset", "method", "encoder", "head", "shots", "pool", "seed", "settings_hash")
"""What tells a cell from every other; all lines have it."""
KEYS = (
    *TELLING[:-1], "recipe", "f1", "precision", "recall", "tp", "fp", "fn", "seconds", "rounds", "device", "commit",
    "settings_hash",
)  # fmt: skip
"""The keys of a result line, in order."""
_KINDS: dict[str, Any] = {
    **dict.fromkeys(KEYS, str),
    **dict.fromkeys(("f1", "precision", "recall", "seconds"), (int, float)),
    **dict.fromkeys(("tp", "fp", "fn", "rounds", "seed"), int),
    **dict.fromkeys(("shots", "pool"), (int, type(None))),
}
FINDINGS = ("rounds", "reliability", "selection", "detection")
"""The kinds of lines that lie beside the results, in NAME.KIND.jsonl; `findings` makes them."""
FAILURES = "failures"
"""The kind of the lines of cells that failed."""
STRATEGIES = ("none", "confidence", "certainty", "both")
"""What words can be selected by, in the paper's table of error rates."""


def key_of(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in TELLING)


@dataclass(frozen=True)
class Results:
    """The lines of some experiments, and what was found in their cells. What is not scored on test is left out."""

    lines: Lines
    findings: Mapping[str, Lines]
    failures: Lines
    """Of cells that failed and have not been done since."""

    @classmethod
    def load(cls, places: Sequence[str | Path]) -> Results:
        """From folders that `sequst experiment run` wrote, and files of results; what lies beside these is found by itself."""
        lines: Lines = []
        failures: Lines = []
        findings: dict[str, Lines] = {kind: [] for kind in FINDINGS}
        for place in dict.fromkeys(as_path(place).resolve() for place in places):
            path = place / "results.jsonl" if place.is_dir() else place
            if path.suffixes[-2:-1] and path.suffixes[-2].strip(".") in (*FINDINGS, FAILURES):
                continue
            if not path.is_file() and not path.with_suffix(f".{FAILURES}.jsonl").is_file():
                way_out = "name a folder that `sequst experiment run` wrote, or a file of results"
                raise UsageError(f"{path}: no such file; {way_out}")
            here = read_results(path)
            done = {key_of(line) for line in here}
            lines += here
            for kind in FINDINGS:
                findings[kind] += [line for line in _beside(path, kind) if key_of(line) in done]
            failures += [line for line in _beside(path, FAILURES) if key_of(line) not in done]
        return cls.of(lines, failures, **findings)

    @classmethod
    def of(cls, lines: Lines, failures: Lines | None = None, **findings: Lines) -> Results:
        return cls(_on_test(lines), {kind: _on_test(found) for kind, found in findings.items()}, failures or [])


def _on_test(lines: Lines) -> Lines:
    return [line for line in lines if "@" not in line["experiment"]]


def read_results(path: Path) -> Lines:
    """The lines of a file, none where it is not there; one that is cut off is an error."""
    lines = []
    for number, line in _numbered(path):
        if line is None:
            raise SequstError(f"{path}:{number}: not a line of results, perhaps cut off; delete it, and its cell runs again")
        lines.append(line)
    return lines


def _beside(results: Path, kind: str) -> Lines:
    """The lines of a kind that lie beside the results. A cell that was cut off and run again has left some twice, of which the
    last count; what is cut off itself is left out."""
    lines = [line for _, line in _numbered(results.with_suffix(f".{kind}.jsonl")) if line is not None]
    return list({(key_of(line), line.get("number")): line for line in lines}.values())


def _numbered(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Every line that is not blank with its number; None in place of what is no line of results."""
    try:
        require_small(str(path), path.stat().st_size if path.is_file() else 0)
        text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    except OSError as error:
        raise SequstError(f"{path}: {error.strerror or error}") from None
    for number, given in enumerate(text.split("\n"), 1):
        if given.strip():
            try:
                line = json.loads(given)
            except (ValueError, RecursionError):
                line = None
            yield number, line if _is_line(line) else None


def _is_line(value: Any) -> bool:
    """Whether this tells a cell from every other, and all that it says of it is of the right type."""
    if not isinstance(value, dict) or not value.keys() >= set(TELLING):
        return False
    return all(isinstance(value[name], kinds) for name, kinds in _KINDS.items() if name in value)


def append_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """In one write, so that a process that dies or a full disk leaves them whole or not at all."""
    data = "".join(as_json(line) + "\n" for line in lines).encode()
    with explained(path), path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":  # it was cut off: what comes is a line of its own
            data = b"\n" + data
        if file.write(data) != len(data):
            file.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
