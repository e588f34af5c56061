from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.mark.timeout(300)
def test_wheel_and_sdist_are_built_and_pass_the_check(tmp_path: Path) -> None:
    for library in ("build", "twine", "hatchling"):
        pytest.importorskip(library)

    def run(*command: str) -> str:
        done = subprocess.run([sys.executable, "-m", *command], cwd=REPOSITORY, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("build", "--no-isolation", "--outdir", str(tmp_path))
    wheel, sdist = sorted(tmp_path.iterdir(), key=lambda path: path.suffix, reverse=True)
    assert run("twine", "check", "--strict", str(wheel), str(sdist)).count("PASSED") == 2
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (REPOSITORY / "src").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(REPOSITORY / "src").as_posix() in names
    assert not [name for name in names if not re.match(r"sequst(-[\d.]+\.dist-info)?/", name)]
