"""What an export and eight bits cost on a benchmark: test F1, tags that change and words a second, of torch and of onnxruntime.

python benchmarks/int8.py [--json FILE] [--encoder minilm] [--data mit_restaurant] [--shots 10] [--sentences 1000] [--steps 600]
    [--seeds 12,21,42] [--test N]

For every seed two taggers are fine-tuned: on `shots` sentences of each type, and on `sentences` drawn by the seed. Each is
exported as `sequst export --int8` does, and the three tag the test set: `changed` is the percentage of words whose tag is
another than torch's. They take turns at being timed. Sentences are of a benchmark where SEQUST_DATA names the folder, else of
the generated corpus.
"""

from __future__ import annotations

import dataclasses
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common

from sequst.api import train
from sequst.corpus.sampling import sample
from sequst.corpus.sentence import Sentence
from sequst.integrations.onnx.comparing import compare
from sequst.integrations.onnx.exporting import export, quantise
from sequst.integrations.onnx.tagger import OnnxTagger
from sequst.tagger.predict import annotate
from sequst.tagger.tagger import Tagger


def measure(labeled: Sequence[Sentence], test: Sequence[Sentence], options: Any, seed: int) -> dict[str, Any]:
    phase = {"min_steps": options.steps, "epochs": options.epochs}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(
            labeled, folder / "run", method="finetune", encoder=options.encoder, head=options.head, device="cpu", seed=seed,
            teacher=phase,
        )  # fmt: skip
        tagger = Tagger.load(folder / "run" / "model", "cpu")
        export(tagger, folder / "fp32")
        quantise(folder / "fp32", folder / "int8")
        ways = {
            "torch": lambda sentences: annotate(tagger, sentences),
            "onnx, fp32": OnnxTagger.load(folder / "fp32").annotate,
            "onnx, int8": OnnxTagger.load(folder / "int8").annotate,
        }
        found = {name: dataclasses.asdict(each) for name, each in compare(ways, test, tagger.types).items()}
        size = {kind: sum(file.stat().st_size for file in (folder / kind).iterdir()) / 1e6 for kind in ("fp32", "int8")}
    for each in found.values():
        each["speed"] = each["words_a_second"] / found["onnx, fp32"]["words_a_second"]
        each["f1_less"] = found["torch"]["f1"] - each["f1"]
    return {"seed": seed, "labelled_sentences": len(labeled), "ways": found, "megabytes": size}


def main() -> None:
    given = {"encoder": "minilm", "head": "softmax", "data": "mit_restaurant", "steps": 600, "epochs": 5.0, "seeds": "12,21,42"}
    options = common.options(__doc__, shots=10, sentences=1000, test=0, **given)
    data, pool, test = common.benchmark(options.data)
    test = test[: options.test or None]
    runs: dict[str, list[dict[str, Any]]] = {f"{options.shots} of each type": [], f"{options.sentences} sentences": []}
    for seed in map(int, options.seeds.split(",")):
        few = sample(pool, shots=options.shots, seed=seed).labeled
        many = random.Random(seed).sample(pool, min(options.sentences, len(pool)))
        for name, labeled in zip(runs, (few, many), strict=True):
            runs[name].append(measure(labeled, test, options, seed))
    found = {"mean": {name: summary(each) for name, each in runs.items()}, "runs": runs}
    asked = common.asked(options, "encoder", "head", "steps", "epochs", "seeds")
    more = {"data": data, "test_sentences": len(test), **asked, "cores": os.cpu_count()}
    common.tell({**found, **more, **common.machine("cpu")}, options.json)


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of every figure of every way the mean and the standard deviation over the seeds."""
    return {
        way: {key: common.spread([run["ways"][way][key] for run in runs]) for key in figures}
        for way, figures in runs[0]["ways"].items()
    }


if __name__ == "__main__":
    main()
