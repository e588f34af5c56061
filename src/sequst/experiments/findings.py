"""What there is to see in the run of a cell beside its score: its rounds, its calibration, its pseudo-labels, its words.

Every kind of finding is a list of lines, which go to NAME.KIND.jsonl beside the results. They are taken when training has
ended: that known tags are looked at here decides nothing in it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, cast

import numpy as np

from sequst.api import Result
from sequst.calibration.calibrate import calibrate
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import OUTSIDE, spans
from sequst.evaluation.detection import auroc, risk_coverage
from sequst.evaluation.evaluate import Evaluation, evaluate
from sequst.evaluation.pseudo_labels import pseudo_label_error
from sequst.experiments.results import STRATEGIES, Lines
from sequst.methods.pseudo_labels import select
from sequst.methods.registry import find_method
from sequst.methods.self_training import member_phase
from sequst.tagger.entity_calibration import UNCALIBRATED
from sequst.tagger.tagger import Tagger
from sequst.training.data import load_data
from sequst.training.directory import RunDirectory
from sequst.training.settings import Settings
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import AllWords, Scores, Selector, selector_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Finished:
    """A run that has ended, with its rounds kept, and what it is looked at with."""

    result: Result
    settings: Settings
    dev: Sequence[Sentence]
    sentences: Sequence[Sentence]
    """Those that the cell is scored on."""
    evaluation: Evaluation

    @property
    def directory(self) -> RunDirectory:
        return RunDirectory(self.result.path)

    @property
    def truth(self) -> list[tuple[str, ...]]:
        """The known tags of the unlabelled sentences of the first round."""
        pool = load_data(self.directory.files(), self.settings).pool(1, self.settings.round_size)
        return [tags or () for tags in pool.tags]

    @property
    def beliefs(self) -> Beliefs | None:
        """Of the first teachers together, where the method selects words by them."""
        path = self.directory.beliefs(1)
        selects = "selection" not in find_method(self.settings.method).unused
        return Beliefs.from_file(path) if selects and path.is_file() else None


def rounds(run: Finished) -> Lines:
    """The history of the run, with the F1 of every round's teacher on what the cell is scored on, had the run ended with it."""
    tagger, lines = Tagger.load(run.result.path / "model"), []
    calibration = run.result.summary["calibration"]
    for line in run.result.summary["history"]:
        phase = member_phase("retune" if line["round"] else "teacher", line.get("member", 1) - 1)
        done = run.directory.outcome(line["round"], phase)
        assert done is not None
        if calibration is not None:  # which is of another round's
            tagger.head.temper(1.0 / calibration["temperature"])
        tagger.load_state_dict(done["tagger"])
        tagger.entity_calibration = UNCALIBRATED
        if run.dev and run.settings.calibrate:
            calibration = calibrate(tagger.eval(), run.dev, run.settings.calibration_shift, run.settings.abstain)
        lines.append({**line, "f1": evaluate(tagger.eval(), run.sentences).total.f1})
    return lines


def reliability(run: Finished) -> Lines:
    """How the confidences of the predicted entities compare with how many of them are right."""
    return [{"ece": run.evaluation.ece, "bins": [dataclasses.asdict(each) for each in run.evaluation.reliability]}]


def selection(run: Finished) -> Lines:
    """How wrong the words are that the first round selects, with each strategy on the same beliefs; of methods that select."""
    beliefs = run.beliefs
    if beliefs is None:
        return []
    truth, lines, names = run.truth, [], run.result.tagger.labels
    for strategy in STRATEGIES:
        asked, by = run.settings.selection, cast(Scores, strategy)
        selector: Selector = AllWords() if strategy == "none" else selector_of(asked.selector, asked.share, asked.power, by)
        weights = select(selector, beliefs, run.settings.seed, 1)
        selected, wrong = weights > 0, pseudo_label_error(beliefs.labels, names, truth, weights)
        is_entity = beliefs.labels != names.index(OUTSIDE)
        errors = {"error": wrong["selected_error"], "entity_error": wrong["selected_entity_error"]}
        shares = {"selected": _percent(selected), "selected_of_entity_words": _percent(selected[is_entity])}
        lines.append({"strategy": strategy, **shares, **errors})
    return lines


def detection(run: Finished) -> Lines:
    """How well each score of the first teachers tells their right words and entities from their wrong ones, on the pool, whose
    tags are known here. The score of an entity is the mean, or the lowest, of its words'."""
    beliefs = run.beliefs
    if beliefs is None:
        return []
    names, tags = run.result.tagger.labels, run.truth
    kept = {
        "plain confidence": beliefs.plain_confidence,
        "confidence": beliefs.confidence,
        "certainty": beliefs.certainty,
        "confidence x certainty": beliefs.confidence * beliefs.certainty,
    }
    if run.settings.ensemble.teachers > 1:  # what they believe together is what their passes say
        del kept["plain confidence"]
    right = np.array([names[label] for label in beliefs.labels], dtype=object) == np.array([*chain(*tags)], dtype=object)
    lines = [{"of": "words", "score": score, **_told_apart(values, right)} for score, values in kept.items()]
    entities, correct = [], []
    for begin, end, truth in zip(beliefs.starts[:-1], beliefs.starts[1:], tags, strict=True):
        known = set(spans(truth))
        for span in spans([names[label] for label in beliefs.labels[begin:end]]):
            entities.append(slice(begin + span.start, begin + span.end))
            correct.append(span in known)
    for summary, of in (("mean", np.mean), ("lowest", np.min)):
        for score, values in kept.items():
            found = [of(values[words].astype(np.float64)) for words in entities]
            lines.append({"of": "entities", "score": f"{summary} {score}", **_told_apart(found, correct)})
    return lines


def _told_apart(scores: ArrayLike, right: ArrayLike) -> dict[str, float | int | None]:
    wrong = ~np.asarray(right, dtype=np.bool_)
    found = {"auroc": auroc(scores, right), "risk_coverage": risk_coverage(scores, right)}
    return {**found, "count": len(wrong), "wrong": int(wrong.sum())}


def _percent(mask: NDArray[np.bool_]) -> float | None:
    return float(100.0 * mask.mean()) if len(mask) else None


KINDS: dict[str, Callable[[Finished], Lines]] = {
    "rounds": rounds, "reliability": reliability, "selection": selection, "detection": detection,
}  # fmt: skip


def look_into(run: Finished) -> Iterator[tuple[str, Lines]]:
    """What every cell keeps. A kind that fails is left out, with a warning: it is not worth a run."""
    for kind, find in KINDS.items():
        try:
            yield kind, find(run)
        except Exception as error:
            log.warning("%s: nothing is kept of this cell (%s: %s)", kind, type(error).__name__, error)
