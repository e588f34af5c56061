"""What the confidences of entities mean: how far they are from how often entities are right, and whether they tell wrong ones.

python benchmarks/calibration.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--data conll03,mit_movie,snips]
    [--shots 10] [--seeds 12] [--test 1500] [--steps 400]

A tagger is fine-tuned on a few sentences of each type. What its dev set teaches is judged on `--test` sentences of the test
set, 0 for all, in three ways: the mean probability of an entity's words as it is; through a temperature and one logistic
function for all entities; and with a shift for every type as well, which is what training does, less the shift. To see what
limits the last, it is learnt from other sentences too: another dev set of the same kind, which chose no weights; as many
sentences drawn at random; a thousand of them. `chance` is the error that a tagger whose confidences are right would show, by
chance, on so many entities in so many bins. Data are benchmarks where SEQUST_DATA names the folder, else the generated
corpus.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np

from sequst.api import train
from sequst.calibration.calibrate import fit_temperature
from sequst.calibration.entities import entity_outcomes, fit_entity_calibration
from sequst.calibration.reliability import expected_calibration_error, reliability
from sequst.corpus.generated import generate
from sequst.corpus.sampling import sample
from sequst.corpus.sentence import Sentence
from sequst.evaluation.detection import auroc
from sequst.experiments.benchmarks import read_part
from sequst.tagger.entity_calibration import UNCALIBRATED
from sequst.tagger.predict import annotate, label_words
from sequst.tagger.tagger import Tagger

WAYS = ("as they are", "one function for all", "a shift for every type")
OTHERS = ("another dev set", "random sentences", "1,000 random sentences")


def measure(train_set: list[Sentence], test: list[Sentence], options: Any, seed: int) -> dict[str, Any]:
    split = sample(train_set, options.shots, seed=seed)
    test = test[:: max(1, len(test) // options.test)][: options.test] if options.test else test
    with tempfile.TemporaryDirectory() as place:
        run = train(
            split.labeled, Path(place) / "run", dev=split.dev, method="finetune", encoder=options.encoder, seed=seed,
            device=options.device, calibrate=False, transitions=0.0, teacher={"min_steps": options.steps},
        )  # fmt: skip
        tagger = Tagger.load(run.path / "model", options.device)
    found = {WAYS[0]: _told(tagger, test)}
    _temper(tagger, split.dev)
    dev = entity_outcomes(annotate(tagger, split.dev))
    tagger.entity_calibration = fit_entity_calibration(["all"] * len(dev.types), dev.confidences, dev.correct)
    found[WAYS[1]] = _told(tagger, test)
    drawn = random.Random(seed).sample(split.unlabeled, len(split.unlabeled))
    others = (sample(split.unlabeled, options.shots, seed=seed).dev, drawn[: len(split.dev)], drawn[:1000])
    entities = {}
    for way, sentences in zip((WAYS[2], *OTHERS), (split.dev, *others), strict=True):
        tagger.entity_calibration = UNCALIBRATED
        _temper(tagger, sentences)
        known = entity_outcomes(annotate(tagger, sentences))
        tagger.entity_calibration = fit_entity_calibration(*known)
        found[way], entities[way] = _told(tagger, test), len(known.types)
    return {"seed": seed, "entities": entities, "ways": found}


def _temper(tagger: Tagger, dev: list[Sentence]) -> None:
    probabilities, tags = label_words(tagger, dev, probabilities=True).probabilities, [tag for s in dev for tag in s.tags or ()]
    assert probabilities is not None
    tagger.head.temper(fit_temperature(probabilities, tags, tagger.labels))


def _told(tagger: Tagger, sentences: list[Sentence]) -> dict[str, float | None]:
    judged = entity_outcomes(annotate(tagger, sentences))
    bins = reliability(judged.confidences, judged.correct)
    return {
        "ece": expected_calibration_error(bins),
        "auroc": auroc(judged.confidences, judged.correct),
        "chance": _by_chance(judged.confidences),
    }


def _by_chance(confidences: list[float]) -> float:
    """The error of entities that are right as often as these confidences say, drawn twenty times."""
    rng = np.random.default_rng(1)
    sure = np.asarray(confidences)
    drawn = [expected_calibration_error(reliability(sure.tolist(), list(rng.random(len(sure)) < sure))) for _ in range(20)]
    return statistics.fmean(error for error in drawn if error is not None)


def main() -> None:
    parser = common.parser(__doc__, encoder="minilm", data="conll03,mit_movie,snips", shots=10, test=1500, steps=400)
    parser.add_argument("--seeds", default="12")
    options = parser.parse_args()
    folder = os.environ.get("SEQUST_DATA")
    results: dict[str, Any] = {}
    for name in options.data.split(",") if folder else ["generated"]:
        corpus = None if folder else generate()
        train_set = read_part(Path(folder), name, "train") if folder else corpus.pool
        test = read_part(Path(folder), name, "test") if folder else corpus.test
        runs = [measure(train_set, test, options, int(seed)) for seed in options.seeds.split(",")]
        means = {
            way: {figure: statistics.fmean(run["ways"][way][figure] for run in runs) for figure in ("ece", "auroc", "chance")}
            for way in (*WAYS, *OTHERS)
        }
        results[name] = {"mean": means, "runs": runs}
    asked = {name: getattr(options, name) for name in ("encoder", "shots", "test", "steps", "seeds")}
    common.tell({"data": results, **asked, **common.machine(options.device)}, options.json)


if __name__ == "__main__":
    main()
