"""Single files of every kind, mutated: what they say is sound, or there is one error."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.hostile.mutation import Trial
from tests.hostile.targets import TARGETS, mutants

FOUND = Path(__file__).with_name("found")
pytestmark = pytest.mark.usefixtures("libraries")


@pytest.mark.parametrize("kind", TARGETS)
def test_mutated_files_are_read_or_refused(seed: int, kind: str, tmp_path: Path, trial: Trial) -> None:
    for data in mutants(kind, tmp_path, random.Random(f"{kind} {seed}"), 100):
        trial(kind, lambda data=data: TARGETS[kind](data, tmp_path))  # type: ignore[misc]
    assert trial.refused(kind) > 10
    assert trial.counts[kind]["accepted"] > 0


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.*")), ids=lambda path: path.name)
def test_what_was_found(path: Path, tmp_path: Path, trial: Trial) -> None:
    """NAME.NUMBER: what once ended in anything but an error of ours."""
    kind = path.stem.replace("-", " ")
    trial(kind, lambda: TARGETS[kind](path.read_bytes(), tmp_path))
