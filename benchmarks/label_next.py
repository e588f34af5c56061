"""What chosen sentences are worth: F1 after labelling 50, 100 and 200 more, chosen in different ways.

python benchmarks/label_next.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--data conll03,mit_restaurant]
    [--shots 5] [--counts 50,100,200] [--seeds 12,21,42] [--pool 0] [--test 0] [--passes 20] [--steps 600]
python benchmarks/label_next.py --join FILE... [--json FILE]

A tagger is fine-tuned on a few sentences of each type. It chooses the first 50 of the rest of the training set, whose labels
are then shown to a new one, which chooses the next 50, and so on: as somebody would who labels in rounds. All ways begin with
the same sentences and the same tagger, and are scored on the test set. `--pool` and `--test` are how many sentences to use of
each, 0 for all. Data are benchmarks where SEQUST_DATA names the folder, else the generated corpus. `--join` makes one of the
files of several seeds.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common

from sequst.annotation.next import choose_next
from sequst.api import train
from sequst.corpus.sampling import sample
from sequst.corpus.sentence import Sentence
from sequst.evaluation.evaluate import evaluate
from sequst.evaluation.paired import paired_test
from sequst.tagger.tagger import Tagger

WAYS: dict[str, dict[str, Any]] = {
    "random": {"strategy": "random"},
    "information gain, diverse": {"strategy": "information-gain"},
    "information gain": {"strategy": "information-gain", "diverse": False},
    "confidence, diverse": {"strategy": "confidence"},
    "confidence": {"strategy": "confidence", "diverse": False},
    "random, diverse": {"strategy": "random", "diverse": True},
}


def learnt(labeled: Sequence[Sentence], options: Any, seed: int) -> Tagger:
    phase = {"min_steps": options.steps, "epochs": options.epochs}
    with tempfile.TemporaryDirectory() as folder:
        run = train(
            labeled, Path(folder) / "run", encoder=options.encoder, device=options.device, seed=seed, teacher=phase
        )  # fmt: skip
        return Tagger.load(run.path / "model", options.device)


def chosen_by(
    way: dict[str, Any], tagger: Tagger, pool: Sequence[Sentence], count: int, options: Any, seed: int
) -> list[Sentence]:
    """So many of the pool, with the labels that they have there; the tagger does not see them."""
    rest = (sentence.without_tags() for sentence in pool)
    found = choose_next(tagger, rest, count, passes=options.passes, seed=seed, judging=0.0, **way)
    labels = {sentence.words: sentence for sentence in reversed(pool)}
    return [labels[each.sentence.words] for each in found]


def measure(train_set: list[Sentence], test: list[Sentence], options: Any, seed: int) -> dict[str, Any]:
    """F1 at each number of labelled sentences, of each way, and how long choosing took."""
    split = sample(train_set, options.shots, seed=seed)
    pool = common.every([*split.dev, *split.unlabeled], options.pool)
    start = learnt(split.labeled, options, seed)
    counts = [int(count) for count in options.counts.split(",")]
    begin = evaluate(start, test).total.f1
    found: dict[str, Any] = {"seed": seed, "labeled": len(split.labeled), "pool": len(pool), "start_f1": begin, "ways": {}}
    for name in options.ways.split(";"):
        tagger, labeled, rest, seconds, scores = start, list(split.labeled), list(pool), 0.0, {}
        for before, count in zip([0, *counts], counts, strict=False):
            begun = time.perf_counter()
            more = chosen_by(WAYS[name], tagger, rest, count - before, options, seed)
            seconds += time.perf_counter() - begun
            words = {sentence.words for sentence in more}
            labeled += more
            rest = [sentence for sentence in rest if sentence.words not in words]
            tagger = learnt(labeled, options, seed)
            scores[str(count)] = evaluate(tagger, test).total.f1
        found["ways"][name] = {"f1": scores, "labeled": len(labeled), "seconds_choosing": seconds}
    return found


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each way the mean F1 over the seeds, and what it is ahead of random choice, with the p value of that."""
    means: dict[str, Any] = {}
    for name, first in runs[0]["ways"].items():
        means[name] = {}
        for count in first["f1"]:
            scores = [run["ways"][name]["f1"][count] for run in runs]
            ahead = {}
            if name != "random" and "random" in runs[0]["ways"]:
                ahead = paired_test(scores, [run["ways"]["random"]["f1"][count] for run in runs])._asdict()
            means[name][count] = {"f1": statistics.fmean(scores), **({"over_random": ahead} if ahead else {})}
    return means


def joined(files: list[Path]) -> dict[str, Any]:
    """The results of several files with the same options as one."""
    parts = [json.loads(path.read_text()) for path in files]
    runs: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        for name, found in part["data"].items():
            runs.setdefault(name, []).extend(found["runs"])
    others = {name: value for name, value in parts[0].items() if name != "data"}
    if any({**part, "data": None} != {**others, "data": None} for part in parts):
        raise SystemExit("these files differ in more than their data and seeds")
    return {"data": {name: {"mean": summary(found), "runs": found} for name, found in runs.items()}, **others}


def main() -> None:
    given = {"encoder": "minilm", "data": "conll03,mit_restaurant", "counts": "50,100,200", "seeds": "12,21,42"}
    parser = common.parser(__doc__, **given, shots=5, pool=0, test=0, passes=20, steps=600, epochs=5.0)
    parser.add_argument("--ways", default=";".join(list(WAYS)[:4]), help="; ".join(WAYS))
    parser.add_argument("--join", type=Path, nargs="+", default=None)
    options = parser.parse_args()
    if options.join:
        common.tell(joined(options.join), options.json)
        return
    results = {}
    for name, train_set, test in {found[0]: found for found in map(common.benchmark, options.data.split(","))}.values():
        test = common.every(test, options.test)
        runs = [measure(train_set, test, options, int(seed)) for seed in options.seeds.split(",")]
        results[name] = {"mean": summary(runs), "runs": runs}
    asked = common.asked(options, "encoder", "shots", "counts", "passes", "steps", "epochs")
    common.tell({"data": results, **asked, **common.machine(options.device)}, options.json)


if __name__ == "__main__":
    main()
