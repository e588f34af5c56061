"""Mutate files for so many minutes: python tests/hostile/fuzz.py MINUTES. A seed that finds something is kept in seeds.txt."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    end, tried, found = time.monotonic() + 60 * float(sys.argv[1]), 0, []
    while time.monotonic() < end:
        seed = random.SystemRandom().randrange(2, 10**9)
        command = [sys.executable, "-m", "pytest", "-q", "-k", "mutated or tampered or damaged_graph or flipped", str(HERE)]
        done = subprocess.run(
            command, env={**os.environ, "SEQUST_FUZZ": str(seed)}, capture_output=True, text=True, check=False
        )
        tried += 1
        if done.returncode:
            found.append(seed)
            with (HERE / "seeds.txt").open("a", encoding="utf-8") as file:
                file.write(f"{seed}\n")
            print(done.stdout[-3000:])
        print(f"{tried} seeds, {len(found)} with findings {found}", flush=True)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
