"""What it takes to begin: seconds from nothing to the end of a process, each a new one, one after the other in turn.

python benchmarks/start_up.py [--json FILE] [--repeats N]

- python: an interpreter that does nothing
- help: `sequst --help`
- transformers: `import transformers`, which imports neither torch nor any model
- torch and transformers: both imported
- classes: both, and the classes that load a tagger, `AutoModelForTokenClassification` and `AutoTokenizer`: whoever loads a
  model with transformers waits for that
- predict: `sequst predict` of one sentence by a saved `minilm` tagger, whose tags are looked at

`predict_over_import` is what `predict` takes beyond `classes`. The first of each, which may find the files not read yet and no
bytecode, does not count.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common

from sequst.tagger.tagger import Tagger

WORDS = ("Anna", "flew", "to", "Oslo", ".")
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
IMPORT = "import torch, transformers"
CLASSES = "transformers.AutoModelForTokenClassification, transformers.AutoTokenizer"


def commands(model: Path, text: Path) -> dict[str, list[str]]:
    arguments = {
        "python": ["-c", "pass"],
        "help": ["-m", "sequst", "--help"],
        "transformers": ["-c", "import transformers"],
        "torch and transformers": ["-c", IMPORT],
        "classes": ["-c", f"{IMPORT}; {CLASSES}"],
        "predict": ["-m", "sequst", "predict", str(model), str(text), "--device", "cpu"],
    }
    return {name: [sys.executable, *rest] for name, rest in arguments.items()}


def run(command: list[str]) -> tuple[float, str]:
    """(seconds, what it printed)."""
    begun = time.perf_counter()
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return time.perf_counter() - begun, out


def measure(folder: Path, repeats: int, encoder: str = "minilm") -> dict[str, Any]:
    model, text = folder / "model", folder / "one.txt"
    Tagger.from_encoder(encoder, LABELS, seed=1).save(model)
    text.write_text(" ".join(WORDS) + "\n", encoding="utf-8")
    expected = Tagger.load(model, "cpu").predict(WORDS)
    times: dict[str, list[float]] = {}
    for repeat in range(repeats + 1):
        for name, command in commands(model, text).items():
            seconds, out = run(command)
            if name == "predict":
                assert json.loads(out)["tags"] == list(expected.tags), "the verb must tag as the tagger does"
            if repeat:
                times.setdefault(name, []).append(seconds)
    seconds_of = {
        name: {"median": statistics.median(taken), "least": min(taken), "most": max(taken)} for name, taken in times.items()
    }
    over = [mine - theirs for mine, theirs in zip(times["predict"], times["classes"], strict=True)]
    return {"seconds": seconds_of, "predict_over_import": statistics.median(over)}


def main() -> None:
    options = common.options(__doc__, repeats=5)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.repeats)
    common.tell({**found, "repeats": options.repeats, **common.machine("cpu")}, options.json)


if __name__ == "__main__":
    main()
