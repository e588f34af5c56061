"""What a whole run of SeqUST takes, from files to a scored tagger: seconds, and where they go.

python benchmarks/whole_run.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--dataset mit_restaurant] [--seeds 12,21]
    [--paths ours,plain]

10-shot, five rounds of four student epochs over a pool of 4,000 sentences, none skipped. `--paths ours,plain` takes the plain
path beside ours, seed by seed: transformers' forward in the passes of MC dropout, and training steps kernel by kernel.
The benchmarks are read from the folder that SEQUST_DATA names; without, the generated corpus stands in.
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import common

from sequst.api import train
from sequst.corpus.sampling import sample
from sequst.training.progress import Progress

POOL = 4000
SETTINGS = {"method": "sequst", "max_rounds": 5, "student": {"epochs": 4}, "selection": {"selector": "sampled"}}
"""With words drawn, as all that has been timed."""


class Clock(Progress):
    """Adds up the seconds of phases of the same name, whatever the round."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._name, self._begun = "", 0.0

    def begin(self, name: str, *details: Any, **more: Any) -> None:
        self._name, self._begun = name.rpartition(": ")[2], time.perf_counter()

    def end(self) -> None:
        self.seconds[self._name] += time.perf_counter() - self._begun


def one_run(options: Any, encoder: str, seed: int, plain: bool) -> dict[str, Any]:
    _, train_set, test = common.benchmark(options.dataset)
    split = sample(train_set, 10, seed=seed)
    pool = random.Random(seed).sample(split.unlabeled, len(split.unlabeled))[:POOL]
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, common.plain_path() if plain else contextlib.nullcontext():
        begun = time.perf_counter()
        result = train(
            split.labeled, Path(folder) / "run", dev=split.dev, unlabeled=pool, test=test, encoder=encoder, seed=seed,
            device=options.device, progress=clock, **SETTINGS,
        )  # fmt: skip
        seconds = time.perf_counter() - begun
    rounds = [line["teacher_f1"] for line in result.summary["history"]]
    return {
        "seed": seed, "seconds": seconds, "phases": dict(clock.seconds), "rest": seconds - sum(clock.seconds.values()),
        "rounds": len(rounds) - 1, "f1": result.summary["test"]["f1"],
    }  # fmt: skip


def main() -> None:
    parser = common.parser(__doc__, encoder="minilm", dataset="mit_restaurant", seeds="12", paths="ours")
    options = parser.parse_args()
    if not set(paths := options.paths.split(",")) <= {"ours", "plain"}:
        parser.error(f"--paths {options.paths}: there are ours and plain")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        encoder = common.encoder(options.encoder, Path(folder) / "encoder")
        runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for seed in map(int, options.seeds.split(",")):
            for path in paths:
                runs[path].append(one_run(options, encoder, seed, plain=path == "plain"))
    for name, lines in runs.items():
        found[name] = {
            "seconds": statistics.median(line["seconds"] for line in lines),
            "f1": statistics.mean(line["f1"] for line in lines),
            "runs": lines,
        }
    found |= {
        "encoder": Path(options.encoder).name, "data": options.dataset if os.environ.get("SEQUST_DATA") else "generated",
        "settings": SETTINGS, "pool": POOL, **common.machine(options.device),
    }  # fmt: skip
    common.tell(found, options.json)


if __name__ == "__main__":
    main()
