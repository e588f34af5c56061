"""Self-training, Algorithm 1 of the paper: one loop that takes a selector, a loss and a regulariser.

teacher = fine-tuned on the labelled data; in each round the teacher labels the unlabelled words, a selector chooses those to
trust, a student fresh from the encoder's first weights learns them, and the student, fine-tuned on the labelled data again, is
the next teacher. The result is that of the last round whose dev F1 is not far below the best, or, with `choose: best`, of the
round with the best, of equals the later.
There may be several teachers and students (`ensemble`): the students of a round learn what its teachers believe on average.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from sequst.corpus.tags import OUTSIDE
from sequst.errors import SequstError
from sequst.evaluation.pseudo_labels import pseudo_label_error
from sequst.methods.finetune import LabelledWords, finetune, has_kernels
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import HuberisedCrossEntropy, WordLoss, masked_mean
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.loop import PhaseResult
from sequst.training.objective import Objective
from sequst.training.run import PhaseStopped, Run
from sequst.training.seeds import derive
from sequst.training.settings import Phase
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.labelling import Labelling
from sequst.uncertainty.selectors import Selector, believed_mentions

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEPT_PHASES = {"teacher": "retune", "student": "student"}
"""The phase that leaves what a round keeps, by `keep`."""
FAR_BELOW = 10.0
"""A student whose dev F1 is so many points below its teacher's has not learnt what it should, and a round so far below the
best has broken down."""


class WordLosses(NamedTuple):
    """What a tagger makes of a batch whose words are to be learnt."""

    hidden: Tensor  # (B, W, H)
    losses: Tensor  # (B, W)


class Weigher(Protocol):
    """Gives the selected words of a student's batch weights of its own making, in place of a plain mean."""

    @property
    def nets(self) -> nn.Module:
        """What it must remember to resume."""

    @property
    def exact(self) -> bool:
        """Whether it looks at differences that bf16 would round away."""

    @property
    def idle(self) -> bool:
        """Whether in the step that has begun it looks at nothing: all selected words weigh alike."""

    def begin_step(self, step: int, steps: int) -> None: ...

    def weighed(self, tagger: Tagger, batch: Batch, look: Callable[[], WordLosses]) -> tuple[Tensor, WordLosses]:
        """(B, W) weights of the words' losses, a sum of 1, and 0 where a word is not selected; and what `look` gives, which it
        may call as often as it takes to see how these losses come about."""


@dataclass(frozen=True)
class Parts:
    """What tells one method of self-training from another."""

    selector: Selector
    loss: WordLoss
    regulariser: Callable[[Tagger, int], GaussianConsistency] | None = None
    """Makes a fresh regulariser for a student, from a seed."""
    weigher: Callable[[Tagger, int], Weigher] | None = None
    """Makes a fresh weigher for a student, from a seed."""
    labels: str | None = None
    """Pseudo-labels of its own; without, those of the settings."""
    retune: Phase | None = None
    """How its students are re-tuned; without, as the settings have it."""


class PseudoLabelledWords(Objective):
    """The loss of the selected words, a mean or weighed, plus what the regulariser adds (Eq. 15)."""

    fast_way = True

    def __init__(self, loss: WordLoss, regulariser: GaussianConsistency | None = None, weigher: Weigher | None = None) -> None:
        self._loss, self._regulariser, self._weigher = loss, regulariser, weigher
        self._done = 0.0
        parts = {"regulariser": regulariser, "weigher": weigher}
        nets = {name: part.nets for name, part in parts.items() if part is not None}
        self.nets = nn.ModuleDict(nets) if nets else None
        self.recordable = self.reads_batch_alone = weigher is None
        self.exact = weigher is not None and weigher.exact

    def begin_step(self, step: int, steps: int) -> None:
        self._done = step / steps
        self.stage = self._loss.stage(self._done)
        if self._weigher is not None:
            self._weigher.begin_step(step, steps)
            self.recordable = self._weigher.idle

    def begin_epoch(self, seed: int) -> None:
        if self._regulariser is not None:
            self._regulariser.begin_epoch(seed)
            self.generators = (self._regulariser.generator,)

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        assert batch.labels is not None
        if self._is_known and has_kernels(tagger, batch.labels):
            return self._fused(tagger, batch)
        values: dict[str, Tensor] = {}
        look = functools.partial(self._look, tagger, batch)
        if self._weigher is None:
            hidden, losses = look()
            loss = masked_mean(losses, batch.selected)
        else:
            weights, (hidden, losses) = self._weigher.weighed(tagger, batch, look)
            loss = (weights * torch.where(batch.selected, losses, 0.0)).sum()
            values["weighed"] = (weights > 0).sum() / batch.selected.sum().clamp(min=1)
        if self._regulariser is not None:
            predict = functools.partial(tagger.log_probs, batch=batch, dropout=False)
            extra, more = self._regulariser(hidden, batch.owned, batch.selected, predict)
            loss, values = loss + extra, values | more
        return loss, values

    def _look(self, tagger: Tagger, batch: Batch) -> WordLosses:
        assert batch.labels is not None
        hidden = tagger.hidden(batch)
        return WordLosses(hidden, self._loss(tagger.log_probs(hidden, batch), batch.labels, self._done))

    @property
    def _is_known(self) -> bool:
        """Whether there are kernels for all of its parts."""
        regular = self._regulariser is None or self._regulariser.fusable
        return self._weigher is None and regular and self._loss.tau_at(self._done) is not None

    def _fused(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The same by kernels of Triton."""
        from sequst.objectives import accel as fused

        tau = self._loss.tau_at(self._done)
        assert batch.labels is not None
        assert tau is not None
        hidden = tagger.hidden(batch)
        loss = fused.masked_loss(tagger.head.raw_scores(hidden), batch.labels, batch.selected, tau)
        if self._regulariser is None:
            return loss, {}
        extra, values = self._regulariser.fused(hidden, batch.owned, batch.selected, tagger.head)
        return loss + extra, values


def self_train(run: Run, parts: Parts) -> Tagger:
    names = [member_phase("teacher", number) for number in range(run.settings.ensemble.teachers)]
    teachers = [finetune(run, name) for name in names]
    scores = [run.dev_f1(teacher) if run.data.dev else None for teacher in teachers]
    first = _best(scores)
    best = [(0, names[first])]  # rounds and phases that were good enough when they ended: the last is kept
    best_f1 = teacher_f1 = scores[first]
    last_rise = 0
    run.end_round({"round": 0, "teacher_f1": teacher_f1, **_member(first, len(names))})
    before: Beliefs | None = None
    labelling = run.labelling(parts.labels, parts.selector.looks_at_beliefs)
    for round_ in range(1, run.settings.max_rounds + 1):
        beliefs = run.beliefs(teachers, round_, labelling, uncertain=parts.selector.looks_at_beliefs, before=before)
        teachers = []  # their memory is the student's
        selected = select_words(parts.selector, beliefs, run.settings.seed, round_)
        nothing = _nothing_to_learn(beliefs, selected | labelling.learns_rest, run.labels, round_)
        if nothing and round_ == 1:
            raise SequstError(nothing)
        if nothing:  # the student of the round before has broken down; what came before it is still good
            run.progress.note(f"warning: {nothing.splitlines()[0]}; stopping")
            best = [place for place in best if place[0] < round_ - 1]
            break
        weights = parts.selector.weights(beliefs)
        run.keep_selection(round_, beliefs, selected, weights)

        try:
            students = [
                _teach(run, parts, beliefs, weights, labelling, round_, number)
                for number in range(run.settings.ensemble.students)
            ]
        except PhaseStopped as stop:
            run.progress.note(f"warning: {stop}\nwhat came before it is kept")
            break
        teachers, previous_f1 = [student.tagger for student in students], teacher_f1
        chosen = _best([student.kept_f1(run.settings.keep) for student in students])
        learnt, teacher_f1 = students[chosen].learnt, students[chosen].teacher_f1
        told = {"round": round_, "student_f1": learnt.dev_f1, "teacher_f1": teacher_f1, **_member(chosen, len(students))}
        run.end_round({**told, **_diagnosis(run, beliefs, before, selected, weights)})
        _warn_of_a_weak_student(run, parts, learnt, previous_f1)

        before = beliefs
        f1 = students[chosen].kept_f1(run.settings.keep)
        if f1 is None or best_f1 is None or f1 > best_f1:
            last_rise = round_
        slack = FAR_BELOW if run.settings.choose == "last" else 0.0
        if f1 is None or best_f1 is None or f1 >= best_f1 - slack:
            best.append((round_, member_phase(KEPT_PHASES[run.settings.keep], chosen)))
        best_f1 = f1 if f1 is None or best_f1 is None else max(f1, best_f1)
        if round_ - last_rise >= run.settings.patience and run.settings.choose == "best":
            run.progress.note(f"no better {run.settings.keep} for {run.settings.patience} rounds: stopping")
            break
    run.kept_round = best[-1][0]
    return run.finished_tagger(*best[-1])


class _Student(NamedTuple):
    """A student that has learnt and been re-tuned, which makes it a teacher."""

    tagger: Tagger
    learnt: PhaseResult
    teacher_f1: float | None

    def kept_f1(self, keep: str) -> float | None:
        """The dev F1 of what a round keeps of it."""
        return self.learnt.dev_f1 if keep == "student" else self.teacher_f1


def _teach(
    run: Run,
    parts: Parts,
    beliefs: Beliefs,
    weights: NDArray[np.float64] | None,
    labelling: Labelling,
    round_: int,
    number: int,
) -> _Student:
    """A new student, the `number`th of its round, which learns the words selected for it, and is then re-tuned."""
    learning_phase, retuning_phase = (member_phase(phase, number) for phase in ("student", "retune"))

    def drawn(epoch: int) -> NDArray[np.bool_]:
        return select_words(parts.selector, beliefs, run.settings.seed, round_, number, epoch)

    student = run.new_tagger(round_, learning_phase)
    renewed = run.settings.selection.each_epoch and parts.selector.looks_at_beliefs and weights is None
    examples = run.pseudo_examples(student, beliefs, drawn(0), labelling, weights=weights, all_sentences=renewed)
    run.standardise(student, examples)
    noise, draws = (derive(run.settings.seed, round_, member_phase(part, number)) for part in ("regulariser", "weigher"))
    regulariser = parts.regulariser(student, noise) if parts.regulariser is not None else None
    weigher = parts.weigher(student, draws) if parts.weigher is not None else None
    learning = PseudoLabelledWords(parts.loss, regulariser, weigher)
    renew = (lambda epoch: run.renewed(examples, beliefs, drawn(epoch), labelling)) if renewed else None
    learnt = run.train(student, examples, learning, run.settings.student, round_, learning_phase, renew=renew)
    labelled = run.examples(student, run.data.labeled)
    retune = parts.retune or run.settings.retune
    found = believed_mentions(beliefs, run.data.unlabeled, run.labels, parts.selector)
    swap = run.swapping(student, retune, round_, retuning_phase, found if run.settings.swap_from == "text" else ())
    outcome = run.train(student, labelled, LabelledWords(), retune, round_, retuning_phase, renew=swap)
    return _Student(student, learnt, outcome.dev_f1)


def member_phase(phase: str, number: int) -> str:
    """The phase of one of several taggers, counted from 0: the first has the plain name."""
    return phase if number == 0 else f"{phase}-{number + 1}"


def _member(number: int, count: int) -> dict[str, int]:
    """What a round's line says of which of several it is about."""
    return {"member": number + 1} if count > 1 else {}


def _best(scores: Sequence[float | None]) -> int:
    """The place of the highest dev F1, of equals the first; the first where there is none."""
    return max(range(len(scores)), key=lambda place: (scores[place] or 0.0, -place))


def select_words(
    selector: Selector, beliefs: Beliefs, seed: int, round_: int, number: int = 0, epoch: int = 0
) -> NDArray[np.bool_]:
    """The words that a student learns; what is drawn at random depends on the seed, the round, the student's number and, where
    it is drawn anew for it, the epoch."""
    place = (number, epoch) if number or epoch else ()
    selected = selector.select(beliefs, np.random.default_rng(derive(seed, round_, "selection", *place)))
    return selected if beliefs.doubtful is None else selected & ~beliefs.doubtful


def _nothing_to_learn(beliefs: Beliefs, learnt: NDArray[np.bool_], names: list[str], round_: int) -> str:
    """Why a round has nothing to learn from, and what to do; empty where it has."""
    if not learnt.any():
        doubted = "--set selection.doubtful=kept, " if beliefs.doubtful is not None else ""
        return (
            f"round {round_}: no word was selected, for the teacher is certain of none\n"
            f"Use --set selection.selector=all, {doubted}or label more sentences"
        )
    if not (beliefs.best != names.index(OUTSIDE)).any():
        return (
            f"round {round_}: the teacher labels every unlabelled word O, so there is nothing to learn from it\n"
            "Label more sentences, or train the teacher longer (--set teacher.min_steps=1200)"
        )
    return ""


def _diagnosis(
    run: Run, beliefs: Beliefs, before: Beliefs | None, selected: NDArray[np.bool_], weights: NDArray[np.float64] | None
) -> dict[str, Any]:
    """Words selected, agreement with the labels of the round before, and the error where the truth is known; in percent."""
    agreement = None if before is None else float(100.0 * (beliefs.best == before.best).mean())
    errors = pseudo_label_error(beliefs.labels, run.labels, run.data.hidden_tags, selected, weights)
    return {"selected": float(100.0 * selected.mean()), "agreement": agreement, **errors}


def _warn_of_a_weak_student(run: Run, parts: Parts, student: PhaseResult, teacher_f1: float | None) -> None:
    if student.dev_f1 is None or teacher_f1 is None or student.dev_f1 >= teacher_f1 - FAR_BELOW:
        return
    causes = f"it was trained too briefly ({student.steps} steps; student.epochs, student.min_steps, student.max_steps)"
    if isinstance(parts.loss, HuberisedCrossEntropy):
        causes += f", or robust.tau or robust.warmup is too small for {len(run.labels)} tags"
    run.progress.note(
        f"warning: the student's dev F1 of {student.dev_f1:.1f} is far below its teacher's {teacher_f1:.1f}; likely {causes}"
    )
