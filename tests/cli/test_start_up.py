from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_importing_costs_no_torch() -> None:
    code = (
        "import sys, sequst, sequst.cli.app as cli; cli.make_app(); sys.exit(bool({'torch', 'transformers'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_verb_imports_no_other() -> None:
    code = """
import sys
from sequst.cli import main
sys.argv = ["sequst", "train", "--help"]
try:
    main()
finally:
    found = {name.removeprefix("sequst.cli.") for name in sys.modules if name.startswith("sequst.cli.")}
    sys.stderr.write(" ".join(sorted(found & {"train", "predict", "next", "experiment", "demo", "check"})))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "train")


def test_help_in_half_a_second(sequst_process: Callable[..., Any]) -> None:
    """Of a core's time: how long one waits for it depends on what else runs here."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    times = []
    for _ in range(3):
        before = spent()
        assert sequst_process("--help").returncode == 0
        times.append(spent() - before)
    assert 0 < min(times) < 0.5


def test_every_public_name_is_there() -> None:
    import sequst

    assert all(getattr(sequst, name) is not None for name in sequst.__all__)
    assert set(sequst.__all__) <= set(dir(sequst))
    page = (Path(__file__).parent.parent.parent / "docs/reference/python.md").read_text(encoding="utf-8")
    told = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: ")}
    assert set(sequst.__all__) - {"__version__"} == told - {"OnnxTagger", "make_tracker"}


def test_version(sequst_process: Callable[..., Any]) -> None:
    from sequst.version import __version__

    assert sequst_process("--version").stdout.strip() == f"sequst {__version__}"
