"""What is gained by the mean of several taggers' weights: of the rounds of SeqUST, of its first teachers, of a student and what
re-tuning made of it.

python benchmarks/merging.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--data conll03,snips] [--seeds 12,21]
    [--method sequst] [--pool 1000] [--test 1000] [--rounds 4] [--steps 250] [--passes 10] [--teachers 3] [--adapt 0]
    [--teacher 600] [--retune 200]
python benchmarks/merging.py --join ONE.json,OTHER.json --json FILE

- last: the teacher of the last round, as training keeps it
- last 2, last 3, ...: the mean of the weights of the teachers of the last rounds; together: the mean of their probabilities,
  at as many times the cost
- towards S: the student of the last round and a share S of the way to the teacher that re-tuning made of it
- first: the first teacher that dev likes best; first, merged and first, together: of all first teachers

10-shot. F1 and the calibration error of entities, in percent, are of sentences of the training set that are neither labelled,
nor dev, nor in the pool; confidences are put right with the dev set, as training does. The benchmarks are read from the folder
that SEQUST_DATA names; without, the generated corpus stands in. `--join` puts the runs of several files together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np
import torch
from torch import Tensor

from sequst.api import train
from sequst.calibration.calibrate import calibrate
from sequst.corpus.sentence import Sentence
from sequst.evaluation.evaluate import evaluate
from sequst.evaluation.spans import score_spans
from sequst.methods.self_training import member_phase
from sequst.tagger.tagger import Tagger, labels_of
from sequst.training.directory import RunDirectory
from sequst.uncertainty.beliefs import form_beliefs
from sequst.uncertainty.labelling import best_valid

State = Mapping[str, Tensor]
TOWARDS = (0.5, 0.75, 1.25)


@torch.no_grad()
def merge(tagger: Tagger, states: Sequence[State], shares: Sequence[float] | None = None) -> None:
    """Give the tagger the mean of these states of taggers like it, each with its share; without shares they count alike.

    Heads that see states standardised in different ways are first brought to plain states, where they can be compared.
    """
    states = [{name: value.clone() for name, value in state.items()} for state in states]  # one of them may be the tagger's own
    shares = [1.0] * len(states) if shares is None else shares
    total, means = sum(shares), [torch.zeros_like(weight, dtype=torch.float64) for weight in tagger.parameters()]
    for state, share in zip(states, shares, strict=True):
        tagger.load_state_dict(dict(state))
        tagger.head.unfold(tagger.head.folded())
        for mean, weight in zip(means, tagger.parameters(), strict=True):
            mean.add_(weight.double(), alpha=share / total)
    for mean, weight in zip(means, tagger.parameters(), strict=True):
        weight.copy_(mean)


class Judge:
    """Scores taggers on held-out sentences."""

    def __init__(self, tagger: Tagger, dev: list[Sentence], held: list[Sentence]) -> None:
        self._tagger, self._dev, self._held = tagger, dev, held

    def merged(self, states: Sequence[State], shares: Sequence[float] | None = None) -> dict[str, float | None]:
        merge(self._tagger, states, shares)
        calibrate(self._tagger, self._dev)
        found = evaluate(self._tagger, self._held)
        return {"f1": found.total.f1, "ece": found.ece}

    def mixture(self, states: Sequence[State]) -> dict[str, float | None]:
        total: Any = 0.0
        for state in states:
            merge(self._tagger, [state])
            beliefs = form_beliefs(self._tagger, self._held, passes=0, seed=0, probabilities="plain")
            total = total + beliefs.probabilities / len(states)
        labels = best_valid(total, beliefs.starts, self._tagger.labels)
        names = np.array(self._tagger.labels)[labels]
        found = [names[begin:end].tolist() for begin, end in zip(beliefs.starts[:-1], beliefs.starts[1:], strict=True)]
        return {"f1": score_spans([s.tags or () for s in self._held], found).total.f1, "ece": None}


def ways(directory: RunDirectory, judge: Judge, rounds: int, teachers: int, first: int) -> dict[str, dict[str, float | None]]:
    """`first` is the place of the first teacher that dev likes best."""

    def state(round_: int, phase: str) -> State:
        done = directory.outcome(round_, phase)
        assert done is not None
        found: State = done["tagger"]
        return found

    taught = [state(round_, "retune") for round_ in range(1, rounds + 1)]
    student = state(rounds, "student")
    begun = [state(0, member_phase("teacher", number)) for number in range(teachers)]
    found = {"last": judge.merged(taught[-1:]), "first": judge.merged([begun[first]])}
    for count in range(2, rounds + 1):
        found[f"last {count}"] = judge.merged(taught[-count:])
        found[f"last {count}, together"] = judge.mixture(taught[-count:])
    for share in TOWARDS:
        found[f"towards {share}"] = judge.merged([student, taught[-1]], [1.0 - share, share])
    if teachers > 1:
        found |= {"first, merged": judge.merged(begun), "first, together": judge.mixture(begun)}
    return found


def one_run(options: Any, name: str, seed: int) -> dict[str, Any]:
    data = common.few_shot(name, seed, options.pool, options.test)
    with tempfile.TemporaryDirectory() as folder:
        result = train(
            data.labeled, Path(folder) / "run", dev=data.dev, unlabeled=data.pool, method=options.method,
            encoder=options.encoder, seed=seed, device=options.device, max_rounds=options.rounds, adapt=bool(options.adapt),
            transitions=0.0, abstain=False,
            ensemble={"teachers": options.teachers}, student={"min_steps": options.steps},
            teacher={"min_steps": options.teacher}, retune={"min_steps": options.retune},
            uncertainty={"passes": options.passes}, keep_rounds=True,
        )  # fmt: skip
        tagger = Tagger.from_encoder(options.encoder, labels_of(data.labeled), valid=True).to(options.device)
        begun, *rounds = result.summary["history"]
        judge, first = Judge(tagger, data.dev, data.held), begun.get("member", 1) - 1
        found = ways(RunDirectory.open(result.path), judge, len(rounds), options.teachers, first)
    return {"data": name, "seed": seed, "seconds": result.summary["seconds"], "ways": found}


def gains(runs: list[dict[str, Any]], figure: str) -> dict[str, dict[str, float | None]]:
    """Of every way, over that of one tagger; of what has no such figure none."""
    found = {}
    for way in (way for way in runs[0]["ways"] if all(way in run["ways"] for run in runs)):
        plain = "first" if way.startswith("first") else "last"
        pairs = [(run["ways"][way][figure], run["ways"][plain][figure]) for run in runs]
        each = [ours - theirs for ours, theirs in pairs if ours is not None and theirs is not None]
        if way != plain and each:
            found[way] = common.gain(each)
    return found


def main() -> None:
    parser = common.parser(
        __doc__, encoder="minilm", data="conll03", seeds="12", method="sequst", pool=1000, test=1000, rounds=4, steps=250,
        passes=10, teachers=3, adapt=0, teacher=600, retune=200, join="",
    )  # fmt: skip
    options = parser.parse_args()
    asked = ("encoder", "method", "pool", "test", "rounds", "steps", "passes", "teachers", "adapt", "teacher", "retune")
    found = common.runs_of(options, one_run, asked)
    found["gain"] = {figure: gains(found["runs"], figure) for figure in ("f1", "ece")}
    common.tell(found, options.json)


if __name__ == "__main__":
    main()
