"""A process in the background, and what it says."""

from __future__ import annotations

import subprocess
import sys
import threading
import time


class Heard:
    """`sequst` with these arguments. It is ended by whoever starts it."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "sequst", *arguments], stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)

    def wait_for(self, words: str) -> str:
        """The line of its messages that has these words."""
        for _ in range(1200):
            if found := [line for line in list(self.said) if words in line]:
                return found[-1]
            if self.process.poll() is not None:
                time.sleep(0.1)
                break
            time.sleep(0.05)
        raise AssertionError(f"no {words!r} in {''.join(self.said)}")

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)
