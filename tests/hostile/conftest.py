"""Tests that take a `seed` are run with each seed of seeds.txt, or with the one that `make fuzz` asks for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SEEDS = Path(__file__).with_name("seeds.txt")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        asked = os.environ.get("SEQUST_FUZZ")
        metafunc.parametrize("seed", [int(asked)] if asked else [int(line) for line in SEEDS.read_text().split()])
