"""What the confidences of entities mean: how far they are from how often entities are right, and whether they tell wrong ones.

python benchmarks/calibration.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--data conll03,mit_movie,snips]
    [--shots 10] [--seeds 12] [--test 1500] [--steps 400]

A tagger is fine-tuned on a few sentences of each type. What its dev set teaches is judged on `--test` sentences of the test
set, 0 for all, in three ways: the mean probability of an entity's words as it is; through a temperature and one logistic
function for all entities; and with a shift for every type as well, which is what training does. Data are benchmarks where
SEQUST_DATA names the folder, else the generated corpus.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import common

from sequst.corpus.generated import generate
from sequst.corpus.sampling import sample
from sequst.corpus.sentence import Sentence
from sequst.evaluation.calibration import expected_calibration_error, fit_trust, reliability
from sequst.evaluation.detection import auroc
from sequst.evaluation.evaluating import judged_entities
from sequst.experiments.benchmarks import read_part
from sequst.methods.running import train
from sequst.tagger.tagger import Tagger
from sequst.tagger.trust import AS_IT_IS
from sequst.uncertainty.temperature import fit_temperature

WAYS = ("as they are", "one function for all", "a shift for every type")


def measure(train_set: list[Sentence], test: list[Sentence], options: Any, seed: int) -> dict[str, Any]:
    split = sample(train_set, options.shots, seed=seed)
    test = test[:: max(1, len(test) // options.test)][: options.test] if options.test else test
    with tempfile.TemporaryDirectory() as place:
        run = train(
            split.labeled, Path(place) / "run", dev=split.dev, method="finetune", encoder=options.encoder, seed=seed,
            device=options.device, calibrate=False, teacher={"min_steps": options.steps},
        )  # fmt: skip
        tagger = Tagger.load(run.path / "model", options.device)
    found = {WAYS[0]: _told(tagger, test)}
    tagger.head.temper(fit_temperature(tagger, split.dev))
    dev = judged_entities(tagger, split.dev)
    for way, types in ((WAYS[1], ["all"] * len(dev.types)), (WAYS[2], dev.types)):
        tagger.trust = fit_trust(types, dev.confidences, dev.correct)
        found[way] = _told(tagger, test)
        tagger.trust = AS_IT_IS
    return {"seed": seed, "dev_entities": len(dev.types), "ways": found}


def _told(tagger: Tagger, sentences: list[Sentence]) -> dict[str, float | None]:
    judged = judged_entities(tagger, sentences)
    bins = reliability(judged.confidences, judged.correct)
    return {"ece": expected_calibration_error(bins), "auroc": auroc(judged.confidences, judged.correct)}


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
            way: {figure: statistics.fmean(run["ways"][way][figure] for run in runs) for figure in ("ece", "auroc")}
            for way in WAYS
        }
        results[name] = {"mean": means, "runs": runs}
    asked = {name: getattr(options, name) for name in ("encoder", "shots", "test", "steps", "seeds")}
    common.tell({"data": results, **asked, **common.machine(options.device)}, options.json)


if __name__ == "__main__":
    main()
