"""What is lost, and what is gained, where only the last layers drop out in the passes of MC dropout.

python benchmarks/last_layers.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--sentences N] [--passes T]

A teacher is fine-tuned on 10 sentences of each type; then T passes go over sentences of the rest of the training set, the last
1, 2, ... layers dropping out, and all. For each: words a second; the rank correlation of the information gain with that of
all layers, to be held against `all, another seed`, which is what T passes leave to chance; and how well the information gain
tells wrong words from right ones (AUROC). Sentences are of CoNLL-03 where SEQUST_DATA names the benchmarks, else of the
generated corpus.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

from sequst.api import train
from sequst.corpus.sampling import sample
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import Beliefs, form_beliefs


def ranks(values: np.ndarray) -> np.ndarray:
    """From 0; equals share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]


def rank_correlation(one: np.ndarray, two: np.ndarray) -> float:
    return float(np.corrcoef(ranks(one), ranks(two))[0, 1])


def auroc(scores: np.ndarray, wrong: np.ndarray) -> float:
    """The chance that a wrong word has a higher score than a right one."""
    higher = ranks(scores)[wrong].sum() - wrong.sum() * (wrong.sum() - 1) / 2
    return float(higher / (wrong.sum() * (~wrong).sum()))


def measure(tagger: Tagger, sentences: list[Any], passes: int) -> dict[str, Any]:
    known = tagger.encoder.known_layers()
    assert known is not None
    truth = np.array([tag for sentence in sentences for tag in sentence.tags])
    form_beliefs(tagger, sentences[:8], 1, 1)

    def timed(seed: int, last: int) -> tuple[Beliefs, float]:
        begun = time.perf_counter()
        beliefs = form_beliefs(tagger, sentences, passes, seed, last_layers=last)
        return beliefs, len(beliefs) / (time.perf_counter() - begun)

    reference, speed = timed(1, 0)
    wrong = np.array(tagger.labels)[reference.labels] != truth
    found: dict[str, Any] = {"all": {"words_a_second": speed, "auroc": auroc(reference.information_gain, wrong)}}
    for name, last in [("all, another seed", 0), *((str(n), n) for n in range(1, len(known.layers)))]:
        beliefs, speed = timed(2, last)
        found[name] = {
            "words_a_second": speed,
            "rank_correlation": rank_correlation(beliefs.information_gain, reference.information_gain),
            "auroc": auroc(beliefs.information_gain, wrong),
        }
    return {"last_layers": found, "words": len(truth), "wrong_words_percent": float(100 * wrong.mean())}


def main() -> None:
    options = common.parser(__doc__, encoder="minilm", sentences=300, passes=20, seed=12).parse_args()
    data, corpus = common.sentences()
    split = sample(corpus, 10, seed=options.seed)
    rest = split.unlabeled[:: max(1, len(split.unlabeled) // options.sentences)][: options.sentences]
    with tempfile.TemporaryDirectory() as folder:
        run = train(
            split.labeled,
            Path(folder) / "run",
            dev=split.dev,
            encoder=options.encoder,
            device=options.device,
            seed=options.seed,
        )
        found = measure(run.tagger.to(options.device), rest, options.passes)
    more = {"sentences": len(rest), "passes": options.passes, "encoder": options.encoder, "data": data, "seed": options.seed}
    common.tell({**found, **more, **common.machine(options.device)}, options.json)


if __name__ == "__main__":
    main()
