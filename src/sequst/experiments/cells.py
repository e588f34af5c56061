"""One cell of a comparison: a dataset, a method, a few-shot draw, a seed; run it, and it is a line of results."""

from __future__ import annotations

import dataclasses
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from sequst.corpus.sampling import sample
from sequst.errors import SequstError, UsageError
from sequst.experiments.benchmarks import read_part
from sequst.experiments.results import KEYS, TELLING, Lines, key_of
from sequst.files import Scratch, unsynced
from sequst.methods.registry import find_method
from sequst.training.configure import load_settings, recipe_names
from sequst.training.settings import Settings

SCORED_ON_POOL = 1000
"""Sentences of the training set that are set aside to be scored on, at most half of those that are neither labelled nor dev."""


@dataclass(frozen=True)
class Cell:
    """What to run. `recipe` is `default`, or named settings such as `paper`, or overrides of either, space-separated."""

    experiment: str
    dataset: str
    seed: int
    method: str = "finetune"
    recipe: str = "default"
    encoder: str = "minilm"
    head: str = "softmax"
    shots: int | None = 10
    """None for all of the training set."""
    pool: int | None = None
    """Cap on the unlabelled sentences; None for no cap."""
    score_on: Literal["test", "pool"] = "test"
    """`pool`: on sentences of the training set that are neither labelled, nor dev, nor in the pool. Choices are made there,
    never on test."""

    def settings(self, device: str = "auto") -> Settings:
        first, *others = self.recipe.split()
        base, overrides = (first, others) if first in recipe_names() else (None, [first, *others])
        head = None if self.head == "softmax" else self.head  # a recipe may name one too
        return load_settings(
            base, [each for each in overrides if each != "default"], method=self.method, encoder=self.encoder, head=head,
            seed=self.seed, device=device,
        )  # fmt: skip

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells a cell from every other; a result line has the same values."""
        return key_of(self.facts)

    @property
    def facts(self) -> dict[str, Any]:
        """The cell's own part of its lines: an encoder in a folder goes by the folder's name, an experiment that is not scored
        on test says so in its name, and the hash is of all settings that its method looks at."""
        experiment = self.experiment if self.score_on == "test" else f"{self.experiment}@{self.score_on}"
        settings_hash = self.settings().hash(find_method(self.method).unused)
        own = {"experiment": experiment, "encoder": PurePath(self.encoder).name, "settings_hash": settings_hash}
        return {**vars(self), **own}


def run_cell(cell: Cell, data: Path, commit: str, device: str = "auto") -> tuple[dict[str, Any], dict[str, Lines]]:
    """Train and score; (the result line, the lines of every kind of finding). The run directory is thrown away."""
    from sequst.api import train
    from sequst.evaluation.evaluate import evaluate
    from sequst.experiments.findings import Finished, look_into

    labeled, dev, rest = read_part(data, cell.dataset, "train"), None, []
    if cell.shots is not None:
        split = sample(labeled, cell.shots, seed=cell.seed)
        labeled, dev, rest = split.labeled, split.dev, split.unlabeled
    pool = random.Random(cell.seed).sample(rest, len(rest))
    if cell.score_on == "test":
        sentences = read_part(data, cell.dataset, "test")
    else:
        left = max(len(rest) - SCORED_ON_POOL, len(rest) // 2)
        pool, sentences = pool[:left], pool[left:]
        if not sentences:
            raise UsageError("with all shots no sentence is left to be scored on; use score_on: test")
    unlabeled = pool[: cell.pool] if find_method(cell.method).unlabeled else None
    settings = dataclasses.replace(cell.settings(device), keep_rounds=True)
    with Scratch() as folder, unsynced():
        result = train(labeled, Path(folder) / "run", dev=dev, unlabeled=unlabeled, settings=settings)
        evaluation = evaluate(result.tagger, sentences)
        found = dict(look_into(Finished(result, settings, dev or [], sentences, evaluation)))
    line = {
        **cell.facts,
        **{name: getattr(evaluation.total, name) for name in ("f1", "precision", "recall", "tp", "fp", "fn")},
        **{name: result.summary[name] for name in ("seconds", "rounds")},
        "device": _device_of(result.summary),
        "commit": commit,
    }
    own = {name: line[name] for name in (*TELLING, "commit")}
    numbered = {kind: [{**own, "number": i, **each} for i, each in enumerate(lines)] for kind, lines in found.items()}
    return {name: line[name] for name in KEYS}, numbered


def _device_of(summary: dict[str, Any]) -> str:
    """With its precision where the same settings may have given another one: on CPUs of two kinds."""
    device: str = summary["device"]
    return f"{device}, bf16" if device.startswith("cpu") and summary["precision"] == "bf16" else device


def current_commit() -> str:
    """The commit of the checkout that this code runs from."""
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SequstError("cannot tell the commit of the code (no git checkout); pass --commit")
    return found.stdout.strip()
