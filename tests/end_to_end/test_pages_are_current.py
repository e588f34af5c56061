"""The figures of the pages are those of the results, and stand nowhere else; after new results: `make figures`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
MADE = re.compile(r"<!-- figures: \S+ -->\n.*?\n<!-- /figures -->|```.*?```", re.DOTALL)
TYPED = re.compile(r"±|\bp = 0|\b\d+\.\d+ (?:points|times|s\b|ms\b|minutes)|\b[1-9]\d\.\d+(?![\dM])|\d words a second")
"""What only results can say: an uncertainty, a difference, an F1, a time, a speed."""


pytestmark = pytest.mark.skipif(not (REPOSITORY / "results").exists(), reason="an sdist has no results")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    return importlib.import_module("pages"), importlib.import_module("pictures")


def test_pages_are_current(modules: tuple[Any, Any]) -> None:
    pages, _ = modules
    made = pages.pages()
    shown = {name for page in made for name in re.findall(r"<!-- figures: (\S+) -->", page.read_text(encoding="utf-8"))}
    assert shown == set(pages.BLOCKS)
    for page, text in made.items():
        assert page.read_text(encoding="utf-8") == text, f"{page}: run `make figures`"


def test_pictures_are_current(modules: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    _, pictures = modules
    pages = "".join(page.read_text(encoding="utf-8") for page in [REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")])
    for name in pictures.PICTURES:
        assert f"images/{name}.png)" in pages
        assert pictures.is_current(name), f"{name}.png: run `make figures`"
    assert all(f"images/{image.name})" in pages for image in pictures.IMAGES.iterdir())
    other = pictures.PICTURES["rounds"]._replace(data=lambda: {"SNIPS": 1.0})
    monkeypatch.setitem(pictures.PICTURES, "rounds", other)
    assert not pictures.is_current("rounds")


def test_pages_have_no_figures_of_their_own() -> None:
    """Outside of the study, which is closed."""
    study = REPOSITORY / "docs/study"
    for page in [REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")]:
        prose = MADE.sub("", page.read_text(encoding="utf-8"))
        assert study in page.parents or not (found := TYPED.findall(prose)), (page, found)


def test_results_are_few_and_small() -> None:
    files = [file for file in (REPOSITORY / "results").rglob("*") if file.is_file()]
    assert len(files) <= 15
    assert sum(file.stat().st_size for file in files) <= 1_500_000
