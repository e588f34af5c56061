"""Self-training, Algorithm 1 of the paper: one loop that takes a selector, a loss, a regulariser or, in place of both, weights.

teacher = fine-tuned on the labelled data; in each round the teacher labels the unlabelled words, a selector chooses those to
learn, a student fresh from the encoder's first weights learns them, and the student, re-tuned on the labelled data, is the next
teacher. The result is that of the last round whose dev F1 is not far below the best, or, with `choose: best`, of the round with
the best, of equals the later.
There may be several teachers and students (`ensemble`): the students of a round learn what its teachers believe on average.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from sequst.corpus.tags import OUTSIDE
from sequst.errors import SequstError
from sequst.evaluation.pseudo_labels import pseudo_label_error
from sequst.methods.finetune import LabelledWords, learn_labelled
from sequst.methods.pseudo_labels import believe, pseudo_examples, select
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import CROSS_ENTROPY, WordLoss, masked_loss
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.loop import PhaseResult, PhaseSpec
from sequst.training.objective import Objective
from sequst.training.run import PhaseStopped, Run
from sequst.training.seeds import derive
from sequst.training.settings import PhaseSettings
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import Selector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT_PHASES = {"teacher": "retune", "student": "student"}
"""The phase whose tagger a round keeps, by `keep`."""
FAR_BELOW = 10.0
"""A student this many points of dev F1 below its teacher is warned about. A round this far below the best has broken down."""


@dataclass(frozen=True)
class Parts:
    """The parts that distinguish methods of self-training."""

    selector: Selector
    loss: WordLoss = CROSS_ENTROPY
    regulariser: Callable[[Tagger], GaussianConsistency] | None = None
    """Makes a new regulariser for a student."""
    weighed: Callable[[Tagger, int], Objective] | None = None
    """Makes the objective of a student, from a seed, if words are weighted in each step. Replaces the two above."""
    sampled: bool = False
    """Draw pseudo-labels from the teachers' probabilities, in place of the best tags."""
    retune: PhaseSettings | None = None
    """Settings of re-tuning; None = those of the run."""


class PseudoLabelledWords(Objective):
    """The loss of the selected words, weighted where they have weights, plus what the regulariser adds (Eq. 15)."""

    batch_only = True

    def __init__(self, loss: WordLoss, regulariser: GaussianConsistency | None = None) -> None:
        self._loss, self._regulariser = loss, regulariser
        self._tau = loss.tau_at(0.0)
        self.nets = None if regulariser is None else regulariser.nets

    def begin_step(self, step: int, steps: int) -> None:
        self._tau = self._loss.tau_at(step / steps)

    def graph_key(self) -> Hashable | None:
        return self._tau

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        hidden = tagger.hidden(batch)
        loss = masked_loss(tagger.head, hidden, batch, self._tau)
        if self._regulariser is None:
            return loss, {}
        extra, values = self._regulariser(hidden, batch.owned, tagger.head, batch.rows, self.generator)
        return loss + extra, values


def self_train(run: Run, parts: Parts) -> Tagger:
    settings, seed = run.settings, run.settings.seed
    teachers, teacher_f1, kept = _first_teachers(run)
    before: Beliefs | None = None
    for round_ in range(1, settings.max_rounds + 1):
        beliefs = believe(run, teachers, round_, uncertain=parts.selector.looks_at_beliefs, sampled=parts.sampled)
        teachers = []  # their memory is the student's
        weights = select(parts.selector, beliefs, seed, round_)
        if nothing := _nothing_to_learn(beliefs, weights, run.labels, round_):
            if round_ == 1:
                raise SequstError(nothing)
            run.progress.note(f"warning: {nothing.splitlines()[0]}; stopping")
            kept.drop(round_ - 1)  # its student has broken down; what came before it is still good
            break
        pool = run.pool(round_)
        agreement = _agreement(beliefs, before) if len(pool.sentences) == len(run.data.unlabeled) else None
        if agreement == 100.0:
            run.progress.note(f"round {round_}: no label of the text has changed, so there is nothing new to learn: stopping")
            break
        run.last_selection = pool, beliefs, weights
        run.directory.keep_selection(round_, weights > 0)
        try:
            students = [_teach(run, parts, beliefs, weights, round_, number) for number in range(settings.ensemble.students)]
        except PhaseStopped as stop:
            run.progress.note(f"warning: {stop}\nthe rounds before it are kept")
            break
        best, kept_f1 = _best([student.kept_f1(settings.keep) for student in students])
        student = students[best]
        told = {"round": round_, "student_f1": student.learnt.dev_f1, "teacher_f1": student.teacher_f1}
        shown = {"selected": float(100.0 * (weights > 0).mean()), "agreement": agreement}
        errors = pseudo_label_error(beliefs.labels, run.labels, pool.tags, weights)
        run.end_round({**told, **_member(best, students), **shown, **errors})
        _warn_of_a_weak_student(run, parts, student.learnt, teacher_f1)
        teachers, teacher_f1, before = [each.tagger for each in students], student.teacher_f1, beliefs
        place = round_, member_phase(KEPT_PHASES[settings.keep], best)
        # without a dev set what comes later counts as better
        kept.consider(place, float(round_) if kept_f1 is None else kept_f1, FAR_BELOW if settings.choose == "last" else 0.0)
        if settings.choose == "best" and round_ - kept.last_rise >= settings.patience:
            run.progress.note(f"no better {settings.keep} for {settings.patience} rounds: stopping")
            break
    run.kept_round, phase = kept.places[-1]
    return run.finished_tagger(run.kept_round, phase)


def _first_teachers(run: Run) -> tuple[list[Tagger], float | None, _Kept]:
    """(fine-tuned taggers, dev F1 of the best, which is kept so far)."""
    names = [member_phase("teacher", number) for number in range(run.settings.ensemble.teachers)]
    first = [learn_labelled(run, lambda tagger: LabelledWords(), name=name) for name in names]
    best, f1 = _best([result.dev_f1 for _, result in first])
    run.end_round({"round": 0, "teacher_f1": f1, **_member(best, first)})
    return [tagger for tagger, _ in first], f1, _Kept([(0, names[best])], f1 or 0.0)


@dataclass
class _Kept:
    """Which round's tagger to keep."""

    places: list[tuple[int, str]]
    """Rounds and phases that were good enough when they ended: the last is kept."""
    best_f1: float
    last_rise: int = 0

    def consider(self, place: tuple[int, str], f1: float, slack: float) -> None:
        if f1 > self.best_f1:
            self.best_f1, self.last_rise = f1, place[0]
        if f1 >= self.best_f1 - slack:
            self.places.append(place)

    def drop(self, round_: int) -> None:
        """Forget this round and later ones."""
        self.places = [place for place in self.places if place[0] < round_]


class _Student(NamedTuple):
    """A student after re-tuning, which is the next teacher."""

    tagger: Tagger
    learnt: PhaseResult
    teacher_f1: float | None

    def kept_f1(self, keep: str) -> float | None:
        """Dev F1 of the tagger that the round keeps."""
        return self.learnt.dev_f1 if keep == "student" else self.teacher_f1


def _teach(run: Run, parts: Parts, beliefs: Beliefs, weights: NDArray[np.float64], round_: int, number: int) -> _Student:
    """Train the `number`th student of a round on its selected words, and re-tune it."""
    settings, learning = run.settings, member_phase("student", number)
    if number:
        weights = select(parts.selector, beliefs, settings.seed, round_, number)
    student = run.new_tagger(round_, learning)
    examples = pseudo_examples(run.pool(round_).sentences, student, beliefs, weights)
    run.standardise(student, examples)
    if parts.weighed is not None:
        objective = parts.weighed(student, derive(settings.seed, round_, member_phase("weigher", number)))
    else:
        objective = PseudoLabelledWords(parts.loss, None if parts.regulariser is None else parts.regulariser(student))
    hide = settings.student.hide
    learnt = run.train(student, PhaseSpec(learning, round_, settings.student, examples, objective, hide=hide))
    labelled = run.examples(student, run.data.labeled)
    retuning, retune = member_phase("retune", number), parts.retune or settings.retune
    retuned = run.train(student, PhaseSpec(retuning, round_, retune, labelled, LabelledWords()))
    return _Student(student, learnt, retuned.dev_f1)


def member_phase(phase: str, number: int) -> str:
    """Name of the phase of the `number`th tagger, counted from 0; the first has no number."""
    return phase if number == 0 else f"{phase}-{number + 1}"


def _member(number: int, members: Sequence[object]) -> dict[str, int]:
    """The number of the tagger that a round's line is about, if there are several."""
    return {"member": number + 1} if len(members) > 1 else {}


def _best(scores: Sequence[float | None]) -> tuple[int, float | None]:
    """(index of the highest dev F1, that F1); the first on ties, or if there is none."""
    place = max(range(len(scores)), key=lambda place: scores[place] or 0.0)
    return place, scores[place]


def _nothing_to_learn(beliefs: Beliefs, weights: NDArray[np.float64], names: list[str], round_: int) -> str:
    """Error message if a round has nothing to learn from, else empty."""
    if not weights.any():
        return (
            f"round {round_}: no word was selected, for the teacher is certain of none\n"
            "Use --set selection.selector=all, or label more sentences"
        )
    if not (beliefs.best != names.index(OUTSIDE)).any():
        return (
            f"round {round_}: the teacher labels every unlabelled word O, so there is nothing to learn from it\n"
            "Label more sentences, or train the teacher longer (--set teacher.min_steps=1200)"
        )
    return ""


def _agreement(beliefs: Beliefs, before: Beliefs | None) -> float | None:
    """Percentage of labels equal to those of the round before, which were of the same words."""
    return None if before is None else float(100.0 * (beliefs.best == before.best).mean())


def _warn_of_a_weak_student(run: Run, parts: Parts, student: PhaseResult, teacher_f1: float | None) -> None:
    if student.dev_f1 is None or teacher_f1 is None or student.dev_f1 >= teacher_f1 - FAR_BELOW:
        return
    causes = f"it was trained too briefly ({student.steps} steps; student.epochs, student.min_steps, student.max_steps)"
    if parts.loss.tau_at(1.0) < float("inf"):
        causes += f", or robust.tau or robust.warmup is too small for {len(run.labels)} tags"
    run.progress.note(
        f"warning: the student's dev F1 of {student.dev_f1:.1f} is far below its teacher's {teacher_f1:.1f}; likely {causes}"
    )
