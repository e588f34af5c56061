"""Every test is guarded. Those that take a `seed` are run with each seed of seeds.txt, or with the one that `make fuzz` asks
for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.guard import guarded, require_clean

SEEDS = Path(__file__).with_name("seeds.txt")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        asked = os.environ.get("SEQUST_FUZZ")
        metafunc.parametrize("seed", [int(asked)] if asked else [int(line) for line in SEEDS.read_text().split()])


@pytest.fixture(autouse=True)
def nothing_is_executed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is executed, and no temporary file is left."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    with guarded(tmp_path_factory.getbasetemp()):
        yield
    if folder is not None:
        require_clean(folder)
