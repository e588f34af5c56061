"""What a student learns: one first teacher of SeqUST, several students that learn what it believes in different ways, and the
F1 of each, before and after it is re-tuned.

python benchmarks/students.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--data conll03,snips] [--seeds 12,21]
    [--pool 1000] [--test 1000] [--steps 250] [--passes 10] [--teacher 600] [--retune 200]
    [--ways "name: setting=value setting=value; ..."]
python benchmarks/students.py --join ONE.json,OTHER.json --json FILE

The first way is what the others are compared with. 10-shot, one round, tags decoded without transitions. F1 is of sentences
of the training set that are neither labelled, nor dev, nor in the pool. The benchmarks are read from the folder that
SEQUST_DATA names; without, the generated corpus stands in. `--join` puts the runs of several files together.
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import common

from sequst.api import train
from sequst.corpus.sentence import Sentence
from sequst.evaluation.evaluate import evaluate
from sequst.tagger.tagger import Tagger
from sequst.training.configure import load_settings
from sequst.training.loop import Examples, PhaseResult
from sequst.training.objective import Objective
from sequst.training.run import Run
from sequst.training.settings import Phase, Settings

WAYS = """
drawn: selection.selector=sampled;
all: selection.selector=all;
weighed: selection.selector=weighed;
weighed within classes: selection.selector=weighed-of-class;
all, mean: selection.selector=all pseudo_labels=mean;
surest: selection.selector=top-of-class selection.share=0.6;
surest, rest as mean: selection.selector=top-of-class selection.share=0.6 selection.rest=mean;
drawn, rest as mean: selection.selector=sampled selection.rest=mean
"""

OF_TEACHER = (
    "encoder",
    "head",
    "crf",
    "standardise",
    "max_length",
    "overlap",
    "valid_tags",
    "transitions",
    "capitals",
    "teacher",
    "adapt",
    "adaptation",
)
"""Settings that the first teacher knows of."""


class Taught(Run):
    """A run whose first teacher is that of the run before, and which tells what became of its student."""

    held: list[Sentence]
    teacher: list[tuple[dict[str, Any], PhaseResult]]
    found: dict[str, float]

    def train(
        self, tagger: Tagger, examples: Examples, objective: Objective, phase: Phase, round_: int, name: str, *rest: Any,
        **more: Any,
    ) -> PhaseResult:  # fmt: skip
        if name == "teacher" and self.teacher:
            weights, outcome = self.teacher[0]
            tagger.load_state_dict(weights)
            tagger.eval()
            self.directory.finish_phase(round_, name, weights, {"outcome": vars(outcome), "lines": []})
            return outcome
        outcome = super().train(tagger, examples, objective, phase, round_, name, *rest, **more)
        if name == "teacher":
            self.teacher.append((copy.deepcopy(tagger.state_dict()), outcome))
        self.found[name] = evaluate(tagger, self.held).total.f1
        return outcome


def parsed(ways: str) -> dict[str, list[str]]:
    """{name: overrides}."""
    pairs = (way.partition(":") for way in ways.split(";") if way.strip())
    return {name.strip(): changes.split() for name, _, changes in pairs}


def one_run(options: Any, name: str, seed: int) -> dict[str, Any]:
    data = common.few_shot(name, seed, options.pool, options.test)
    base = [
        "max_rounds=1", "transitions=0", "abstain=false", f"student.min_steps={options.steps}",
        f"teacher.min_steps={options.teacher}", f"retune.min_steps={options.retune}", f"uncertainty.passes={options.passes}",
        "method=sequst", f"encoder={options.encoder}", f"device={options.device}",
    ]  # fmt: skip
    ways: dict[str, dict[str, float]] = {}
    plain: Settings | None = None
    teacher: list[tuple[dict[str, Any], PhaseResult]] = []
    for way, changes in parsed(options.ways).items():
        found = ways[way] = {}
        own = {"held": data.held, "found": found, "teacher": teacher}
        settings = load_settings(None, [*base, *changes], seed=seed)
        plain = plain or settings
        if other := [name for name in OF_TEACHER if getattr(settings, name) != getattr(plain, name)]:
            raise SystemExit(f"--ways {way!r}: all ways share their first teacher, and {', '.join(other)} would change it")
        with tempfile.TemporaryDirectory() as folder, mock.patch("sequst.api.Run", type("Own", (Taught,), own)):
            result = train(data.labeled, Path(folder) / "run", dev=data.dev, unlabeled=data.pool, settings=settings)
        for line in result.summary["history"][1:]:
            found |= {key: value for key, value in line.items() if "error" in key or key == "selected"}
    return {"data": name, "seed": seed, "ways": ways}


def gains(runs: list[dict[str, Any]], phase: str) -> dict[str, dict[str, float | None]]:
    """Of every way that all runs have, over the first."""
    first, *others = runs[0]["ways"]
    return {
        way: common.gain([run["ways"][way][phase] - run["ways"][first][phase] for run in runs])
        for way in others
        if all(phase in run["ways"].get(each, {}) for run in runs for each in (first, way))
    }


def main() -> None:
    parser = common.parser(
        __doc__, encoder="minilm", data="conll03", seeds="12", pool=1000, test=1000, steps=250, passes=10, teacher=600,
        retune=200, ways=WAYS, join="",
    )  # fmt: skip
    options = parser.parse_args()
    found = common.runs_of(options, one_run, ("encoder", "pool", "test", "steps", "passes", "teacher", "retune", "ways"))
    found["gain"] = {phase: gains(found["runs"], phase) for phase in ("student", "retune")}
    common.tell(found, options.json)


if __name__ == "__main__":
    main()
