"""What a step of each method costs, on the generated corpus: milliseconds, and how many fine-tuning steps that is.

python benchmarks/methods.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--head softmax] [--threads N]

Every method trains for real, with batches of the same size; its cost is that of the phase that learns from unlabelled
sentences, per step, without evaluations. Repeats are interleaved; the median, the least and the most are reported. `beliefs` is
one pass of MC dropout over a batch of the same size, of which SeqUST makes T for every unlabelled sentence in a round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import common

from sequst.api import train
from sequst.corpus.generated import generate
from sequst.corpus.sampling import Split, sample
from sequst.tagger.tagger import Tagger, labels_of
from sequst.uncertainty.beliefs import form_beliefs

CONTENDERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    # what it is called, the method, the phase whose steps are timed, further settings
    "finetune": ("finetune", "teacher", {}),
    "vat": ("vat", "teacher", {}),
    "seqvat": ("seqvat", "teacher", {}),
    "cvt, a labelled and an unlabelled step": ("cvt", "teacher", {}),
    "sst": ("sst", "student", {}),
    "sequst": ("sequst", "student", {}),
    "metast": ("metast", "student", {"metast": {"warmup": 0.0}}),
}


def main() -> None:
    options = common.options(__doc__, encoder="minilm", head="softmax", steps=20, batch=16, repeats=3)
    split = sample(generate().pool, 5)
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(options.repeats):
        for name in CONTENDERS:
            times[name].append(milliseconds_a_step(name, split, options))
        times["beliefs"].append(milliseconds_a_pass(split, options))
    unit = statistics.median(times["finetune"])
    found: dict[str, Any] = {}
    for name, values in times.items():
        middle = statistics.median(values)
        found[name] = {"ms": [round(v, 1) for v in (min(values), middle, max(values))], "ratio": round(middle / unit, 2)}
    asked = common.asked(options, "encoder", "head", "steps", "batch", "repeats")
    common.tell({**found, **asked, **common.machine(options.device)}, options.json)


def milliseconds_a_step(name: str, split: Split, options: argparse.Namespace) -> float:
    method, phase, settings = CONTENDERS[name]
    short = {"epochs": 0.001, "min_steps": 1, "batch_size": options.batch}
    phases = {each: {**short, "min_steps": options.steps if each == phase else 1} for each in ("teacher", "student", "retune")}
    with tempfile.TemporaryDirectory() as folder:
        result = train(
            split.labeled, Path(folder) / "run", unlabeled=None if method == "finetune" else split.unlabeled, method=method,
            encoder=options.encoder, head=options.head, device=options.device, max_rounds=1, uncertainty={"passes": 1},
            selection={"selector": "all"}, evaluations=0, **settings, **phases,
        )  # fmt: skip
        lines = [json.loads(line) for line in (result.path / "metrics.jsonl").read_text().splitlines()]
    [line] = [line for line in lines if line.get("phase") == phase]
    return 1000 * line["seconds"] / options.steps


def milliseconds_a_pass(split: Split, options: argparse.Namespace) -> float:
    sentences = split.unlabeled[: 8 * options.batch]
    tagger = Tagger.from_encoder(
        options.encoder, labels_of(split.labeled), head=options.head, text=[s.words for s in sentences]
    )
    tagger.to(options.device)
    taken = []
    for passes in (0, 4):
        begun = time.perf_counter()
        form_beliefs(tagger, sentences, passes, seed=1)
        taken.append(time.perf_counter() - begun)
    return 1000 * (taken[1] - taken[0]) / 4 / 8


if __name__ == "__main__":
    main()
