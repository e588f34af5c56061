"""The demo: a generated corpus, a few labelled sentences of it, and fine-tuning and self-training on the same splits."""

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

METHODS = ("finetune", "sst")
SEEDS = (12, 21, 42)
Summary = dict[str, list[dict[str, Any]]]
"""By method: seed, f1, dev_f1, rounds and seconds of each run."""
SHOTS = 5


def run_demo(output: str | Path, seeds: Sequence[int], progress: Progress, methods: Sequence[str] = METHODS) -> Summary:
    """Train each method once for each seed, on a corpus of the first; the result is kept in summary.json.

    A seed decides the few-shot draw and the training. Files of the first are in `corpus` and `runs` of the folder, those of
    another in `seed-N`.
    """
    settings = {seed: load_settings(effort="quick", seed=seed) for seed in seeds}
    known = [find_method(name) for name in methods]
    folder = require_free(output, "--output")
    generated = generate(seeds[0])
    summary: Summary = {name: [] for name in methods}
    for seed, chosen in settings.items():
        place = folder if seed == seeds[0] else folder / f"seed-{seed}"
        split, corpus = sample(generated.pool, SHOTS, seed=seed), place / "corpus"
        split.save(corpus)
        write_conll(corpus / "test.conll", generated.test)
        for method in known:
            progress.note(
                f"{method.name}, seed {seed}: {len(split.labeled)} labelled sentences"
                + (f" and {len(split.unlabeled)} unlabelled" if method.unlabeled else "")
            )
            kept = train(
                corpus / "labeled.conll",
                place / "runs" / method.name,
                unlabeled=corpus / "unlabeled.conll" if method.unlabeled else None,
                dev=corpus / "dev.conll",
                test=corpus / "test.conll",
                settings=chosen,
                method=method.name,
                progress=progress,
            ).summary
            told = {name: kept[name] for name in ("seed", "dev_f1", "rounds", "seconds")}
            summary[method.name].append({**told, "f1": kept["test"]["f1"]})
    write_json(folder / "summary.json", summary)
    return summary
