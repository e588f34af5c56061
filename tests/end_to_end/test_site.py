from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.mark.timeout(300)
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in (tmp_path / "site").rglob("*.html")}
    for page in (REPOSITORY / "docs").rglob("*.md"):
        place = page.relative_to(REPOSITORY / "docs")
        folder = place.parent if place.name == "README.md" else place.with_suffix("")
        assert (folder / "index.html").as_posix() in pages, place
    assert "--dev-shots" in pages["reference/verbs/index.html"]
    assert "selection.share" in pages["reference/settings/index.html"]
    assert "set_params" in pages["reference/python/index.html"]
    for name, text in pages.items():
        assert not re.search(r'(?:href|src)="https?://fonts\.', text), name
        assert "<!-- verbs -->" not in text
