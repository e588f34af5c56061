"""From probabilities to tags: how much the transitions of tags should count, and what leaving out doubtful entities brings.

python benchmarks/decoding.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--data conll03,snips] [--seeds 12,21]
    [--test 1500] [--steps 600] [--method finetune] [--pool 1000] [--more "setting=value setting=value"]
python benchmarks/decoding.py --join ONE.json,OTHER.json --json FILE

One tagger is trained, 10-shot, without transitions, and its probabilities of held-out words are decoded with every strength of
them, counted in the labelled sentences; then entities are left out whose confidence, learnt on the dev set, says that they cost
F1. F1 is of sentences of the training set that are neither labelled, nor dev, nor in the pool. The benchmarks are read from the
folder that SEQUST_DATA names; without, the generated corpus stands in. `--join` puts the runs of several files together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import common
import numpy as np
from sequst.uncertainty.leaving_out import doubtful_words, judged_beliefs, outside

from sequst.api import train
from sequst.calibration.calibrate import calibrate_entities, count_entities
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import OUTSIDE
from sequst.evaluation.spans import score_spans
from sequst.tagger.tagger import Tagger
from sequst.tagger.transitions import count_transitions
from sequst.training.configure import load_settings
from sequst.uncertainty.beliefs import Beliefs, form_beliefs
from sequst.uncertainty.labelling import best_valid

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)


class Seen(NamedTuple):
    """What a tagger thinks of every word of some tagged sentences."""

    probabilities: NDArray[np.float32]
    starts: NDArray[np.int64]
    sentences: Sequence[Sentence]


def seen(tagger: Tagger, sentences: Sequence[Sentence]) -> Seen:
    beliefs = form_beliefs(tagger, sentences, passes=0, seed=0, probabilities="plain")
    assert beliefs.probabilities is not None
    return Seen(beliefs.probabilities, beliefs.starts, sentences)


def decoded(labels: list[str], some: Seen, transitions: dict[str, float]) -> Beliefs:
    best = best_valid(some.probabilities, some.starts, labels, transitions)
    sure = np.take_along_axis(some.probabilities, best[:, None], -1)[:, 0]
    return Beliefs(best, sure, sure, np.zeros_like(sure), some.starts)


def f1_of(labels: list[str], beliefs: Beliefs, sentences: Sequence[Sentence]) -> float:
    tags = np.array(labels)[beliefs.labels]
    bounds = zip(beliefs.starts[:-1], beliefs.starts[1:], strict=True)
    return score_spans((s.tags or () for s in sentences), (tuple(tags[a:b].tolist()) for a, b in bounds)).total.f1


def judged(
    labels: list[str], labeled: Sequence[Sentence], dev: Seen, held: Seen, calibration_shift: float
) -> dict[str, dict[str, float]]:
    """{strength: F1 of all entities, F1 of those that are not left out, and below which confidence they are}."""
    counted = count_transitions((sentence.tags or () for sentence in labeled), labels)
    found = {}
    for strength in STRENGTHS:
        transitions = {kind: strength * score for kind, score in counted.items()}
        of_dev, of_held = decoded(labels, dev, transitions), decoded(labels, held, transitions)
        known = judged_beliefs(of_dev, labels, [sentence.tags or () for sentence in dev.sentences])
        trust = calibrate_entities(known, calibration_shift, count_entities(dev.sentences))
        settled = outside(of_held, doubtful_words(of_held, labels, trust), labels.index(OUTSIDE))
        found[f"{strength:g}"] = {
            "all": f1_of(labels, of_held, held.sentences),
            "abstaining": f1_of(labels, settled, held.sentences),
            "threshold": trust.threshold,
        }
    return found


def one_run(options: Any, name: str, seed: int) -> dict[str, Any]:
    data = common.few_shot(name, seed, options.pool, options.test)
    settings = load_settings(
        None,
        [
            f"method={options.method}", f"encoder={options.encoder}", f"device={options.device}", "calibrate=false",
            "transitions=0", f"teacher.min_steps={options.steps}", *options.more.split(),
        ],
        seed=seed,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        unlabeled = data.pool if options.method != "finetune" else None
        result = train(data.labeled, Path(folder) / "run", dev=data.dev, unlabeled=unlabeled, settings=settings)
        tagger = result.tagger
    dev, held = seen(tagger, data.dev), seen(tagger, data.held)
    return {"data": name, "seed": seed, "f1": judged(tagger.labels, data.labeled, dev, held, settings.calibration_shift)}


def gains(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of every strength over none; and of leaving out over not, with that strength."""
    return {
        strength: {
            "over none": common.gain([run["f1"][strength]["all"] - run["f1"]["0"]["all"] for run in runs]),
            "of abstaining": common.gain([run["f1"][strength]["abstaining"] - run["f1"][strength]["all"] for run in runs]),
        }
        for strength in runs[0]["f1"]
    }


def main() -> None:
    parser = common.parser(
        __doc__, encoder="minilm", data="conll03", seeds="12", pool=1000, test=1500, steps=600, method="finetune", more="",
        join="",
    )  # fmt: skip
    options = parser.parse_args()
    found = common.runs_of(options, one_run, ("encoder", "pool", "test", "steps", "method", "more"))
    found["gain"] = gains(found["runs"])
    common.tell(found, options.json)


if __name__ == "__main__":
    main()
