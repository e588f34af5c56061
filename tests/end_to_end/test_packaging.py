from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import tarfile
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
    if (REPOSITORY / ".git").exists():
        tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split()
        with tarfile.open(sdist) as archive:
            inside = {name.partition("/")[2] for name in archive.getnames()}
        assert len(tracked) > 300
        assert {name for name in tracked if not name.startswith((".", "results/"))} <= inside
    _works(wheel, tmp_path / "elsewhere")


def _works(wheel: Path, place: Path) -> None:
    """What is in the wheel, and nothing else of ours, reads its own files, trains and tags; `make check-wheel` does it with a
    fresh environment and the demo."""
    zipfile.ZipFile(wheel).extractall(place / "site")
    (place / "labeled.conll").write_text("Anna B-PER\nsings O\n\nOslo B-LOC\nsleeps O\n")

    def python(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(place / "site")}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    sequst = functools.partial(python, "-m", "sequst")

    assert "main-10shot" in sequst("experiment", "recipes")
    sequst("train", "--labeled", "labeled.conll", "--encoder", "bilstm", "--set", "teacher.min_steps=20", "--output", "run")
    assert (place / "run" / "report.html").is_file()
    assert '"words": ["Anna", "sings"]' in sequst("predict", "run/model", "labeled.conll")
    assert python("-c", "import sequst; print(sequst.__file__)").startswith(str(place))
