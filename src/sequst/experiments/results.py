"""Results on disk: a line of JSON for every cell, and beside it the lines of what was found in it."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sequst.errors import SequstError, UsageError
from sequst.files import explained

Lines = list[dict[str, Any]]

KEYS = (
    "experiment", "dataset", "method", "recipe", "encoder", "head", "shots", "sampler", "pool", "seed", "f1", "precision",
    "recall", "tp", "fp", "fn", "seconds", "rounds", "device", "commit", "settings_hash",
)  # fmt: skip
"""The keys of a result line, in order."""
TELLING = (
    "experiment", "dataset", "method", "recipe", "encoder", "head", "shots", "sampler", "pool", "seed", "settings_hash",
)  # fmt: skip
"""Those that tell a cell from every other."""
_NAMED = tuple(name for name in TELLING if name != "settings_hash")
"""Those of them that a failure has too."""
ALWAYS, ON_REQUEST = ("rounds", "reliability", "selection", "detection"), ("cases", "words")
FINDINGS = (*ALWAYS, *ON_REQUEST)
"""The kinds of lines that lie beside the results, in NAME.KIND.jsonl, of every cell or where a recipe asks for them; `findings`
makes them."""
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
    findings: Mapping[str, Lines] = field(default_factory=dict)
    failures: Lines = field(default_factory=list)
    """Of cells that failed and have not been done since."""

    @classmethod
    def load(cls, places: Sequence[str | Path]) -> Results:
        """From folders that `sequst experiment run` wrote, and files of results; what lies beside these is found by itself."""
        lines: Lines = []
        failures: Lines = []
        findings: dict[str, Lines] = {kind: [] for kind in FINDINGS}
        for place in dict.fromkeys(Path(place).resolve() for place in places):
            path = place / "results.jsonl" if place.is_dir() else place
            if path.suffixes[-2:-1] and path.suffixes[-2].strip(".") in (*FINDINGS, FAILURES):
                continue
            if not path.is_file() and not path.with_suffix(f".{FAILURES}.jsonl").is_file():
                way_out = "name a folder that `sequst experiment run` wrote, or a file of results"
                raise UsageError(f"{path}: no such file; {way_out}")
            here = _whole(path)
            lines += here
            for kind in FINDINGS:
                findings[kind] += _findings_of(here, path, kind)
            failures += _not_done_since(_beside(path, FAILURES), here)
        return dataclasses.replace(cls.of(lines, **findings), failures=failures)

    @classmethod
    def of(cls, lines: Lines, **findings: Lines) -> Results:
        return cls(_on_test(lines), {kind: _on_test(found) for kind, found in findings.items()})

    def found(self, kind: str) -> Lines:
        return self.findings.get(kind, [])


def _whole(path: Path) -> Lines:
    """The lines of results, each with all that such a line has."""
    for number, line in _checked(path):
        lacking = [name for name in KEYS if name not in line]
        if lacking:
            raise SequstError(f"{path}:{number}: no line of results, for it lacks {', '.join(lacking[:3])}; name another file")
    return read_results(path)


def _not_done_since(failures: Lines, lines: Lines) -> Lines:
    """The last failure of every cell that is not among the lines; what failed has no settings of its own to tell."""
    done = {tuple(line[name] for name in _NAMED) for line in lines}
    last = {tuple(failure[name] for name in _NAMED): failure for failure in failures}
    return [failure for key, failure in last.items() if key not in done]


def _on_test(lines: Lines) -> Lines:
    return [line for line in lines if "@" not in line["experiment"]]


def read_results(path: Path) -> Lines:
    return [line for _, line in _checked(path)]


def _checked(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(path):
        if not isinstance(line, dict):
            raise SequstError(f"{path}:{number}: no line of JSON, perhaps cut off; delete it, and its cell runs again")
        yield number, line


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Every line that is not blank with its number; None in place of what is no JSON."""
    try:
        text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    except OSError as error:
        raise SequstError(f"{path}: {error.strerror or error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError:
                yield number, None


def read_findings(results: Path, kind: str) -> Lines:
    """The lines of a kind of finding that lie beside the results, of the cells that are in these: a cell that was cut off and
    run again has left some twice, of which the last count."""
    return _findings_of(read_results(results), results, kind)


def _findings_of(lines: Lines, results: Path, kind: str) -> Lines:
    done = {key_of(line) for line in lines}
    found: dict[tuple[Any, ...], Lines] = {}
    before = None
    for line in _beside(results, kind):
        key = key_of(line)
        if key != before or line.get("number") == 0:  # the lines of a cell are written in one go
            found[key] = []
        found[key].append(line)
        before = key
    return [line for key, of_cell in found.items() if key in done for line in of_cell]


def _beside(results: Path, kind: str) -> Lines:
    """The lines of a kind that lie beside the results; what was cut off is left out, for its cell was not done."""
    found = [line for _, line in _lines(results.with_suffix(f".{kind}.jsonl"))]
    return [line for line in found if isinstance(line, dict) and all(name in line for name in _NAMED)]


def append_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """In one write, so that a process that dies or a full disk leaves them whole or not at all."""
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with explained(path), path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":  # it was cut off: what comes is a line of its own
            data = b"\n" + data
        if file.write(data) != len(data):
            file.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
