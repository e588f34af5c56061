"""The guard itself: whoever does what is forbidden is named, even if the error is swallowed."""

from __future__ import annotations

import contextlib
import os
import pickle
import runpy
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.files import atomic_bytes, atomic_folder
from tests.hostile.guard import MOST, Forbidden, guarded, limited, require_clean, unguarded


def connect() -> None:
    with socket.socket() as opened:
        opened.connect(("127.0.0.1", 9))


FORBIDDEN: dict[str, Callable[[], Any]] = {
    "socket.connect": connect,
    "socket.getaddrinfo": lambda: socket.getaddrinfo("localhost", 80),
    "subprocess.Popen": lambda: subprocess.run(["true"], check=True),
    "os.system": lambda: os.system("true"),
    "os.exec": lambda: os.execv("/bin/true", ["true"]),
    "os.fork": os.fork,
    "os.posix_spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "pickle.find_class": lambda: pickle.loads(pickle.dumps(os.system)),
    "builtins.input": input,
    "reading of standard input": lambda: sys.stdin.read(),
    "reading of standard  input": lambda: sys.stdin.buffer,
    "reading of  standard input": lambda: list(sys.stdin),
    "writing of": lambda: Path(__file__).with_name("written").write_text("x"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_is_forbidden_does_not_happen_and_is_told(what: str, tmp_path: Path) -> None:
    with pytest.raises(Forbidden, match=" ".join(what.split())), guarded(tmp_path), contextlib.suppress(Exception):
        FORBIDDEN[what]()
    assert not Path(__file__).with_name("written").exists()


def test_code_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("open('ran', 'w')")
    with pytest.raises(Forbidden, match=r"code of .*evil\.py"), guarded(tmp_path), contextlib.suppress(Exception):
        runpy.run_path(str(tmp_path / "evil.py"))


def test_all_else_is_allowed(tmp_path: Path) -> None:
    with guarded(tmp_path):
        (tmp_path / "a").write_text("x")
        assert Path(__file__).read_text()
        with unguarded():
            subprocess.run(["true"], check=True)


def test_a_temporary_name_is_noticed(tmp_path: Path) -> None:
    for write in (atomic_bytes, atomic_folder):
        with write(tmp_path / "a"), pytest.raises(AssertionError, match="half-written"):
            require_clean(tmp_path)
        require_clean(tmp_path)
        with contextlib.suppress(OSError):
            (tmp_path / "a").unlink()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the peak of memory")
def test_memory_that_was_taken_is_noticed_even_if_it_is_given_back() -> None:
    with pytest.raises(AssertionError, match="bytes of memory"), unguarded(), limited(MOST // 10):
        bytearray(b"x" * (MOST // 5))
    with unguarded(), limited(MOST // 10):
        bytearray(b"x" * (MOST // 100))
