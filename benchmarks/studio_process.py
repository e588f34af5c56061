"""A studio in a process of its own, for the benchmarks that label through its API."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any


def ask(address: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = urllib.request.Request(address + path, data, {"content-type": "application/json", **named}, method=method)
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return json.load(answer)


class Studio:
    """`arguments` are those of `sequst studio`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "sequst", "studio", str(folder), "--no-browser", "--port", "0", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "the studio is at " in line:
                self.address = line.partition(" at ")[2].partition(";")[0]
                threading.Thread(target=self.process.stderr.read, daemon=True).start()  # else a full pipe would stop it
                return
            print(line, end="", flush=True)
        raise SystemExit(f"the studio did not start: {self.process.wait()}")

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return ask(self.address, method, path, body, **headers)

    def wait(self) -> Any:
        """The state when nothing is trained and nothing is due."""
        while True:
            state = self.ask("GET", "/api/state")
            if state["problem"]:
                raise SystemExit(state["problem"])
            due = state["next_training"]
            if state["training"] is None and not (due and due["left"] == 0):
                return state
            time.sleep(1)

    def memory(self) -> float:
        """MB of the server."""
        return memory_of(self.process.pid)

    def workers(self) -> list[int]:
        return [int(each) for each in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def memory_of(process: int) -> float:
    """MB of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000
