"""The figures of the pages are those of the results; after new results: `make figures`."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent


def test_pages_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    made = importlib.import_module("pages").pages()
    assert len(made) > 5
    for page, text in made.items():
        assert page.read_text(encoding="utf-8") == text, f"{page}: run `make figures`"
