"""What several processes that train on one GPU reach together: steps a second of a student, by turns and side by side (MPS).

python benchmarks/sharing.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--processes 1,3,6,10]
    [--seconds 3] [--rows 32] [--mps 0]

Every process has a student of its own, PHCE and GCR with K = 3, and takes the step of one batch over and over; with a GPU it is
replayed. All are started and have recorded it before time is taken; then the first of them work for some seconds, then more.
With `--mps 1` the same once more, through NVIDIA's MPS.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import torch
from accelerate import Accelerator
from torch import nn
from training_step import NORM, RATE, examples, objective

from sequst.experiments.mps import side_by_side
from sequst.tagger.precision import has_bf16
from sequst.tagger.tagger import Tagger
from sequst.training.loop import MAX_TOKENS, _optimizer
from sequst.training.settings import Phase
from sequst.training.steps import ReplayedSteps, Steps

LOOK_EVERY = 5
"""Steps that are sent before a process waits for them."""


def work(number: int, encoder: str, options: Any, counts: list[int], ready: Any, found: Any) -> None:
    """What a process does: prepare, and for each count that it is among, take steps until the time is up."""
    torch.set_num_threads(1)
    _, sentences = common.sentences(8 * options.rows)
    tagger = Tagger.from_encoder(encoder, common.LABELS, seed=1).to(options.device).train()
    batch = examples(tagger, sentences).collated(list(range(options.rows)), tagger.pad_id)
    task = objective(tagger.encoder.width)
    learners = nn.ModuleDict({"tagger": tagger, "nets": task.nets}).to(options.device)
    task.begin_epoch(1)
    recorded = ReplayedSteps.fit(tagger)
    precision = "bf16" if has_bf16(tagger.device) else "no"
    accelerator = Accelerator(mixed_precision=precision, cpu=options.device == "cpu")
    optimizer = _optimizer(tagger, task, Phase(learning_rate=RATE), 5e-3, recorded)
    parts = (tagger, task, learners, optimizer, accelerator, NORM)
    steps = ReplayedSteps(*parts, rows=options.rows, tokens=MAX_TOKENS) if recorded else Steps(*parts)
    task.begin_step(1, 2)
    for _ in range(LOOK_EVERY):
        steps.take(batch)
    for count in counts:
        ready.wait()
        begun, done = time.perf_counter(), 0
        while number < count and time.perf_counter() - begun < options.seconds:
            taken = [steps.take(batch) for _ in range(LOOK_EVERY)]
            taken[-1].values.tolist()
            done += LOOK_EVERY
        found.put((count, done / (time.perf_counter() - begun) if done else 0.0))
        ready.wait()


def together(encoder: str, options: Any, counts: list[int]) -> dict[str, float]:
    """Steps a second of so many processes."""
    context = multiprocessing.get_context("spawn")
    ready, found = context.Barrier(max(counts)), context.Queue()
    crew = [
        context.Process(target=work, args=(number, encoder, options, counts, ready, found), daemon=True)
        for number in range(max(counts))
    ]
    sums, awaited = dict.fromkeys(counts, 0.0), len(counts) * len(crew)
    try:
        for each in crew:
            each.start()
        while awaited:
            try:
                count, rate = found.get(timeout=1)
            except queue.Empty:
                if any(each.exitcode for each in crew):
                    raise SystemExit("a process has failed; its error stands above") from None
                continue
            sums[count] += rate
            awaited -= 1
    finally:
        for each in crew:
            if awaited:
                each.terminate()
            each.join()
    return {str(count): rate for count, rate in sums.items()}


def main() -> None:
    options = common.parser(__doc__, encoder="minilm", processes="1,3,6,10", seconds=3.0, rows=32, mps=0).parse_args()
    counts = [int(each) for each in options.processes.split(",")]
    data, _ = common.sentences(1)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        encoder = common.encoder(options.encoder, Path(folder) / "encoder")
        for name in ("by turns", "side by side") if options.mps else ("by turns",):
            with side_by_side(options.device, "local") if name == "side by side" else contextlib.nullcontext():
                found[name] = together(encoder, options, counts)
    about = {"encoder": options.encoder, "data": data, "rows": options.rows, "seconds": options.seconds}
    common.tell({"steps_a_second": found, **about, **common.machine(options.device)}, options.json)


if __name__ == "__main__":
    main()
