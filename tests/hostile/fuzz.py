"""Mutate files for so many minutes: python tests/hostile/fuzz.py MINUTES.

Half of the time goes to the tests that mutate; a seed that finds something is kept in seeds.txt. Where atheris is installed,
the other half goes to inputs guided by the code that they reach; one that finds something is kept in found/.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SEEDS = 8
"""Seeds that one process tries: its start takes seconds."""
SLOT = 20
"""Seconds for which inputs of one kind are guided."""

Counts = defaultdict[str, Counter[str]]


def mutate(counts: Counts, folder: Path) -> list[str]:
    """Run the tests that mutate with new seeds; the last lines of what they say of each finding."""
    seeds = [str(random.SystemRandom().randrange(2, 10**9)) for _ in range(SEEDS)]
    told = folder / "tests"
    told.unlink(missing_ok=True)
    environment = {**os.environ, "SEQUST_FUZZ": " ".join(seeds), "SEQUST_FUZZ_COUNTS": str(told)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "-k",
        "mutated or flipped",
        f"--basetemp={folder / 'base'}",
        str(HERE),
    ]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    begun: set[str] = set()
    failed: set[str] = set()
    for line in map(json.loads, told.read_text(encoding="utf-8").splitlines() if told.is_file() else ()):
        begun |= {line["begun"]} if "begun" in line else set()
        failed |= {line["failed"]} if "failed" in line else set()
        begun -= {line.get("ended", "")}
        for kind, count in line.get("tried", {}).items():
            counts[kind].update(count)
    if begun or failed or done.returncode:  # a test that began and did not end has taken the process with it
        guilty = {seed for seed in seeds for test in begun | failed if re.search(rf"\b{seed}\b", test)} or set(seeds)
        with (HERE / "seeds.txt").open("a", encoding="utf-8") as file:
            file.writelines(f"{seed}\n" for seed in sorted(guilty))
        for test in begun:
            counts[f"a process that ended in {test.rpartition('::')[2]}"]["tried"] += 1
        return [f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}\n{', '.join(sorted(begun | failed))}"]
    return []


def guide(kind: str, seconds: int, counts: Counts, folder: Path) -> list[str]:
    """The inputs of one kind for some seconds; what was found is moved to found/."""
    told, made = folder / "guided", folder / "artifacts"
    told.unlink(missing_ok=True)
    made.mkdir(exist_ok=True)
    corpus = ROOT / "build" / "fuzz" / kind.replace(" ", "-")
    options = [f"-max_total_time={seconds}", f"-artifact_prefix={made}/", "-timeout=20", "-rss_limit_mb=2048", "-max_len=4096"]
    command = [sys.executable, "-m", "tests.hostile.guided", kind, str(corpus), *options]
    environment = {**os.environ, "SEQUST_FUZZ_COUNTS": str(told), "SEQUST_FUZZ_FOLDER": str(folder)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    for name, count in re.findall(r"(\w+)=(\d+)", told.read_text() if told.is_file() else ""):
        counts[f"guided: {kind}"][name] += int(count)
    found = list(made.iterdir())
    (HERE / "found").mkdir(exist_ok=True)
    for path in found:
        counts[f"guided: {kind}"]["tried"] += 1
        data = path.read_bytes()
        (HERE / "found" / f"{kind.replace(' ', '-')}.{hashlib.sha256(data).hexdigest()[:8]}").write_bytes(data)
        path.unlink()
    return [done.stderr[-6000:]] if found or done.returncode else []


def table(counts: Counts) -> str:
    """Kind of input, inputs tried, refused, accepted, findings."""
    rows = [("kind of input", "tried", "refused", "accepted", "findings")]
    for kind, count in sorted(counts.items()):
        tried, refused, accepted = count["tried"], count["refused"], count["accepted"]
        rows.append((kind, f"{tried:,}", f"{refused:,}", f"{accepted:,}", str(tried - refused - accepted)))
    total: Counter[str] = sum(counts.values(), Counter())
    numbers = [total["tried"], total["refused"], total["accepted"], total["tried"] - total["refused"] - total["accepted"]]
    rows.append(("all", *(f"{number:,}" for number in numbers)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{row[0]:{widths[0]}}" + "".join(f"{c:>{w + 2}}" for c, w in zip(row[1:], widths[1:], strict=True)) for row in rows
    )


def main() -> None:
    end, found, counts = time.monotonic() + 60 * float(sys.argv[1]), list[str](), Counts(Counter)
    kinds: itertools.cycle[str] | None = None
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: mutation alone", flush=True)
    else:
        sys.path.insert(0, str(ROOT))
        from tests.hostile.targets import GUIDED

        kinds = itertools.cycle(GUIDED)
    with tempfile.TemporaryDirectory() as name:
        while (begun := time.monotonic()) < end:
            new = mutate(counts, Path(name))
            took = time.monotonic() - begun
            if kinds is not None:
                slots = int(max(0, min(took, end - time.monotonic())) // SLOT)
                for kind in itertools.islice(kinds, max(1, slots)):
                    new += guide(kind, SLOT, counts, Path(name))
            for each in new:
                print(each)
            found += new
            print(f"{table(counts)}\n", flush=True)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
