"""The demo: a generated corpus, a few labelled sentences of it, and fine-tuning and self-training on the same split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sequst.api import train
from sequst.corpus.formats.columns import write_conll
from sequst.corpus.generated import generate
from sequst.corpus.sampling import sample
from sequst.files import require_free, write_json
from sequst.methods.registry import find_method
from sequst.training.configure import load_settings
from sequst.training.progress import Progress

METHODS = ("finetune", "sst", "sequst")
SHOTS = 5
BRIEF = (
    "max_rounds=2",
    "teacher.min_steps=150",
    "student.batch_size=16",
    "student.epochs=1",
    "student.min_steps=240",
    "retune.min_steps=40",
    "uncertainty.passes=8",
)
"""Settings that fit three methods into five minutes of two CPU cores; all others are the defaults."""


def run_demo(output: str | Path, seed: int, progress: Progress, methods: Sequence[str] = METHODS) -> dict[str, Any]:
    """Write the corpus, train each of the methods on the same split, and keep {method: {f1, dev_f1, rounds, seconds}} in
    summary.json."""
    settings = load_settings(None, BRIEF, seed=seed)
    known = {name: find_method(name) for name in methods}
    folder = require_free(output, "--output")
    generated = generate(seed)
    split = sample(generated.pool, SHOTS, seed=seed)
    corpus = folder / "corpus"
    split.save(corpus)
    write_conll(corpus / "test.conll", generated.test)
    progress.note(
        f"corpus: {len(split.labeled)} labelled, {len(split.dev)} dev, {len(split.unlabeled)} unlabelled "
        f"and {len(generated.test)} test sentences in {corpus}"
    )
    summary: dict[str, Any] = {}
    for method, its in known.items():
        unlabeled = corpus / "unlabeled.conll" if its.unlabeled else None
        kept = train(
            corpus / "labeled.conll",
            folder / "runs" / method,
            unlabeled=unlabeled,
            dev=corpus / "dev.conll",
            test=corpus / "test.conll",
            settings=settings,
            method=method,
            progress=progress,
        ).summary
        summary[method] = {"f1": kept["test"]["f1"], **{name: kept[name] for name in ("dev_f1", "rounds", "seconds")}}
    write_json(folder / "summary.json", summary)
    return summary
