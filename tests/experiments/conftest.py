from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sequst.corpus.formats.columns import write_conll
from sequst.corpus.generated import generate


@pytest.fixture(scope="session")
def make_benchmark(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A folder with the generated corpus as a benchmark of this name, in the layout that SEQUST_DATA has."""

    def make(name: str, test: int | None = None) -> Path:
        folder = tmp_path_factory.mktemp("data")
        (folder / name).mkdir()
        corpus = generate()
        write_conll(folder / name / "train.txt.gz", corpus.pool)
        write_conll(folder / name / "test.txt.gz", corpus.test[:test])
        return folder

    return make
