"""How to re-tune a student: one student of SeqUST's first round, re-tuned in several ways, and the F1 of each.

python benchmarks/retuning.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--data conll03,snips] [--seeds 12,21]
    [--pool 1000] [--test 600] [--steps 300] [--passes 10]
python benchmarks/retuning.py --join ONE.json,OTHER.json --json FILE

- none: as the defaults have it; long: twice as long
- labelled: other labelled entities in the place of half of the labelled ones, in every epoch after the first
- text: entities that the teacher finds in the text too, each as likely as another; trusted: the surer the likelier
- long, text: both

10-shot, one round, tags decoded without transitions. F1 is of sentences of the training set that are neither labelled, nor
dev, nor in the pool. The benchmarks are read from the folder that SEQUST_DATA names; without, the generated corpus stands in.
`--join` puts the runs of several files together.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import common

from sequst.api import train
from sequst.corpus.mentions import Mention
from sequst.corpus.sentence import Sentence
from sequst.evaluation.evaluate import evaluate
from sequst.methods.sequst import parts_of
from sequst.tagger.tagger import Tagger
from sequst.training.loop import Examples, PhaseResult
from sequst.training.objective import Objective
from sequst.training.run import Run
from sequst.training.settings import Phase
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import AllWords, believed_mentions

LONG = {"epochs": 10.0, "min_steps": 400}
SWAP = {"swap": 0.5}


class Retuned(Run):
    """A run that re-tunes its student in all ways before it does so as its settings have it."""

    held: list[Sentence]
    found: dict[str, float]
    _beliefs: Beliefs

    def pseudo_examples(self, tagger: Tagger, beliefs: Beliefs, *rest: Any, **more: Any) -> Examples:
        self._beliefs = beliefs
        return super().pseudo_examples(tagger, beliefs, *rest, **more)

    def ways(self) -> dict[str, tuple[dict[str, Any], Iterable[Mention]]]:
        """(what is changed in the phase, the entities of the text)."""

        def of_text(selector: Any) -> Iterable[Mention]:
            return believed_mentions(self._beliefs, self.data.unlabeled, self.labels, selector)

        return {
            "labelled": (SWAP, ()),
            "text": (SWAP, of_text(AllWords())),
            "trusted": (SWAP, of_text(parts_of(self).selector)),
            "long": (LONG, ()),
            "long, text": (LONG | SWAP, of_text(AllWords())),
        }

    def train(
        self, tagger: Tagger, examples: Examples, objective: Objective, phase: Phase, round_: int, name: str, *rest: Any,
        **more: Any,
    ) -> PhaseResult:  # fmt: skip
        if name == "retune":
            student = {key: value.clone() for key, value in tagger.state_dict().items()}
            self.found["student"] = evaluate(tagger, self.held).total.f1
            for number, (way, (changes, entities)) in enumerate(self.ways().items(), 2):
                changed = dataclasses.replace(phase, **changes)
                renew = self.swapping(tagger, changed, round_, name, entities)
                super().train(tagger, examples, objective, changed, round_, f"{name}-{number}", renew=renew)
                self.found[way] = evaluate(tagger, self.held).total.f1
                tagger.load_state_dict(student)
        outcome = super().train(tagger, examples, objective, phase, round_, name, *rest, **more)
        if name == "retune":
            self.found["none"] = evaluate(tagger, self.held).total.f1
        return outcome


def one_run(options: Any, name: str, seed: int) -> dict[str, Any]:
    data = common.few_shot(name, seed, options.pool, options.test)
    found: dict[str, float] = {}
    own = {"held": data.held, "found": found}
    with tempfile.TemporaryDirectory() as folder, mock.patch("sequst.api.Run", type("Own", (Retuned,), own)):
        train(
            data.labeled, Path(folder) / "run", dev=data.dev, unlabeled=data.pool, method="sequst", encoder=options.encoder,
            seed=seed, device=options.device, max_rounds=1, transitions=0.0, abstain=False,
            student={"min_steps": options.steps}, uncertainty={"passes": options.passes},
        )  # fmt: skip
    return {"data": name, "seed": seed, "f1": found}


def main() -> None:
    parser = common.parser(
        __doc__, encoder="minilm", data="conll03", seeds="12", pool=1000, test=600, steps=300, passes=10, join=""
    )
    options = parser.parse_args()
    found = common.runs_of(options, one_run, ("encoder", "pool", "test", "steps", "passes"))
    found["gain"] = {
        way: common.gain([run["f1"][way] - run["f1"]["none"] for run in found["runs"]])
        for way in found["runs"][0]["f1"]
        if way != "none"
    }
    common.tell(found, options.json)


if __name__ == "__main__":
    main()
