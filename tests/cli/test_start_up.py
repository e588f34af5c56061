from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def test_importing_costs_no_torch() -> None:
    code = "import sys, sequst, sequst.cli.app; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_in_half_a_second(sequst_process: Callable[..., Any]) -> None:
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        assert sequst_process("--help").returncode == 0
        times.append(time.perf_counter() - begun)
    assert min(times) < 0.5


def test_every_public_name_is_there() -> None:
    import sequst

    assert all(getattr(sequst, name) is not None for name in sequst.__all__)
    assert set(sequst.__all__) <= set(dir(sequst))


def test_version(sequst_process: Callable[..., Any]) -> None:
    from sequst.version import __version__

    assert sequst_process("--version").stdout.strip() == f"sequst {__version__}"
