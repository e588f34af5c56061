"""Self-training, Algorithm 1 of the paper: one loop that takes a selector, a loss, a regulariser and weights.

teacher = fine-tuned on the labelled data; in each round the teacher labels the unlabelled words, a selector chooses those to
learn, a student fresh from the encoder's first weights learns them, and the student, re-tuned on the labelled data, is the next
teacher. The result is that of the last round whose dev F1 is not far below the best, or, with `choose: best`, of the round with
the best, of equals the later.
There may be several teachers and students (`ensemble`): the students of a round learn what its teachers believe on average.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from sequst.corpus.tags import OUTSIDE
from sequst.errors import SequstError
from sequst.evaluation.pseudo_labels import pseudo_label_error
from sequst.methods.finetune import LabelledWords, learn_labelled
from sequst.methods.pseudo_labels import Selected, believe, pseudo_examples, select
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import WordLoss, masked_loss, word_losses
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.loop import PhaseResult, PhaseSpec
from sequst.training.objective import Objective
from sequst.training.run import PhaseStopped, Run
from sequst.training.seeds import derive
from sequst.training.settings import PhaseSettings, Settings
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import Selector

KEPT_PHASES = {"teacher": "retune", "student": "student"}
"""The phase that leaves what a round keeps, by `keep`."""
FAR_BELOW = 10.0
"""A student whose dev F1 is so many points below its teacher's has not learnt what it should, and a round so far below the
best has broken down."""


class WordLosses(NamedTuple):
    """The states of a batch's words and the losses of their labels."""

    hidden: Tensor  # (B, W, H)
    losses: Tensor  # (B, W)


class Weigher(Protocol):
    """Weighs the words of a student's batch in each step."""

    @property
    def nets(self) -> nn.Module:
        """What it must remember to resume."""

    @property
    def needs_fp32(self) -> bool:
        """Whether it looks at differences that bf16 would round away."""

    @property
    def idle(self) -> bool:
        """Whether in the step that has begun all selected words weigh alike."""

    def begin_step(self, step: int, steps: int) -> None: ...

    def weighed(self, tagger: Tagger, batch: Batch, look: Callable[[], WordLosses]) -> tuple[Tensor, WordLosses]:
        """(weights (B, W) that sum to 1, 0 where a word is not selected; what `look` gives, which may be called again)."""


@dataclass(frozen=True)
class Parts:
    """What tells one method of self-training from another."""

    selector: Selector
    loss: WordLoss
    regulariser: Callable[[Tagger], GaussianConsistency] | None = None
    """Makes a fresh regulariser for a student."""
    weigher: Callable[[Tagger, int], Weigher] | None = None
    """Makes a fresh weigher for a student, from a seed."""
    sampled: bool = False
    """Draw pseudo-labels from the teachers' probabilities, in place of the best tags."""
    retune: PhaseSettings | None = None
    """How its students are re-tuned; None: as the settings have it."""


class PseudoLabelledWords(Objective):
    """The loss of the selected words, weighted where they have weights, plus what the regulariser adds (Eq. 15)."""

    def __init__(self, loss: WordLoss, regulariser: GaussianConsistency | None = None, weigher: Weigher | None = None) -> None:
        self._loss, self._regulariser, self._weigher = loss, regulariser, weigher
        self._tau = loss.tau_at(0.0)
        parts = {"regulariser": regulariser, "weigher": weigher}
        nets = {name: part.nets for name, part in parts.items() if part is not None}
        self.nets = nn.ModuleDict(nets) if nets else None
        self.batch_only = weigher is None
        self.needs_fp32 = weigher is not None and weigher.needs_fp32

    def begin_step(self, step: int, steps: int) -> None:
        self._tau = self._loss.tau_at(step / steps)
        if self._weigher is not None:
            self._weigher.begin_step(step, steps)

    def graph_key(self) -> Hashable | None:
        return self._tau if self._weigher is None or self._weigher.idle else None

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        values: dict[str, Tensor] = {}
        if self._weigher is None:
            hidden = tagger.hidden(batch)
            loss = masked_loss(tagger.head, hidden, batch, self._tau)
        else:
            weights, (hidden, losses) = self._weigher.weighed(tagger, batch, functools.partial(self._look, tagger, batch))
            loss = (weights * torch.where(batch.selected, losses, 0.0)).sum()
            values["weighed"] = (weights > 0).sum() / batch.selected.sum().clamp(min=1)
        if self._regulariser is not None:
            extra, more = self._regulariser(hidden, batch.owned, tagger.head, batch.rows, self.generator)
            loss, values = loss + extra, values | more
        return loss, values

    def _look(self, tagger: Tagger, batch: Batch) -> WordLosses:
        assert batch.labels is not None
        hidden = tagger.hidden(batch)
        return WordLosses(hidden, word_losses(tagger.log_probs(hidden, batch), batch.labels, self._tau))


def self_train(run: Run, parts: Parts) -> Tagger:
    names = [member_phase("teacher", number) for number in range(run.settings.ensemble.teachers)]
    first = [learn_labelled(run, lambda tagger: LabelledWords(), name=name) for name in names]
    teachers, scores = [tagger for tagger, _ in first], [result.dev_f1 for _, result in first]
    best = _best(scores)
    kept, teacher_f1 = _Kept(run.settings, scores[best], [(0, names[best])]), scores[best]
    run.end_round({"round": 0, "teacher_f1": teacher_f1, **_member(best, len(names))})
    before: Beliefs | None = None
    for round_ in range(1, run.settings.max_rounds + 1):
        beliefs = believe(run, teachers, round_, uncertain=parts.selector.looks_at_beliefs, sampled=parts.sampled)
        teachers = []  # their memory is the student's
        selected = select(parts.selector, beliefs, run.settings.seed, round_)
        nothing = _nothing_to_learn(beliefs, selected, run.labels, round_)
        if nothing and round_ == 1:
            raise SequstError(nothing)
        if nothing:
            run.progress.note(f"warning: {nothing.splitlines()[0]}; stopping")
            kept.drop(round_ - 1)  # its student has broken down; what came before it is still good
            break
        run.last_selection = beliefs, selected.counts
        run.directory.keep_selection(round_, selected.words)
        try:
            students = [
                _teach(run, parts, beliefs, selected, round_, number) for number in range(run.settings.ensemble.students)
            ]
        except PhaseStopped as stop:
            run.progress.note(f"warning: {stop}\nwhat came before it is kept")
            break
        best = _best([student.kept_f1(run.settings.keep) for student in students])
        student = students[best]
        _tell(run, round_, student, _member(best, len(students)), _diagnosis(run, beliefs, before, selected))
        _warn_of_a_weak_student(run, parts, student.learnt, teacher_f1)
        teachers, teacher_f1, before = [each.tagger for each in students], student.teacher_f1, beliefs
        kept.consider(round_, member_phase(KEPT_PHASES[run.settings.keep], best), student.kept_f1(run.settings.keep))
        if kept.is_stale(round_):
            run.progress.note(f"no better {run.settings.keep} for {run.settings.patience} rounds: stopping")
            break
    run.kept_round, phase = kept.places[-1]
    return run.finished_tagger(run.kept_round, phase)


@dataclass
class _Kept:
    """Which round's tagger to keep."""

    settings: Settings
    best_f1: float | None
    places: list[tuple[int, str]] = field(default_factory=list)
    """Rounds and phases that were good enough when they ended: the last is kept."""
    last_rise: int = 0

    def consider(self, round_: int, phase: str, f1: float | None) -> None:
        if f1 is None or self.best_f1 is None or f1 > self.best_f1:
            self.last_rise = round_
        slack = FAR_BELOW if self.settings.choose == "last" else 0.0
        if f1 is None or self.best_f1 is None or f1 >= self.best_f1 - slack:
            self.places.append((round_, phase))
        self.best_f1 = f1 if f1 is None or self.best_f1 is None else max(f1, self.best_f1)

    def drop(self, round_: int) -> None:
        """Forget this round and what came after it."""
        self.places = [place for place in self.places if place[0] < round_]

    def is_stale(self, round_: int) -> bool:
        return self.settings.choose == "best" and round_ - self.last_rise >= self.settings.patience


class _Student(NamedTuple):
    """A student that has learnt and been re-tuned, which makes it a teacher."""

    tagger: Tagger
    learnt: PhaseResult
    teacher_f1: float | None

    def kept_f1(self, keep: str) -> float | None:
        """The dev F1 of what a round keeps of it."""
        return self.learnt.dev_f1 if keep == "student" else self.teacher_f1


def _teach(run: Run, parts: Parts, beliefs: Beliefs, selected: Selected, round_: int, number: int) -> _Student:
    """A new student, the `number`th of its round, which learns the words selected for it, and is then re-tuned."""
    learning, retuning = (member_phase(phase, number) for phase in ("student", "retune"))
    if number:
        selected = select(parts.selector, beliefs, run.settings.seed, round_, number)
    student = run.new_tagger(round_, learning)
    examples = pseudo_examples(run, student, beliefs, selected)
    run.standardise(student, examples)
    regulariser = parts.regulariser(student) if parts.regulariser is not None else None
    seed = derive(run.settings.seed, round_, member_phase("weigher", number))
    weigher = parts.weigher(student, seed) if parts.weigher is not None else None
    objective = PseudoLabelledWords(parts.loss, regulariser, weigher)
    settings = run.settings.student
    learnt = run.train(student, PhaseSpec(learning, round_, settings, examples, objective, hide=settings.hide))
    labelled = run.examples(student, run.data.labeled)
    retune = parts.retune or run.settings.retune
    retuned = run.train(student, PhaseSpec(retuning, round_, retune, labelled, LabelledWords()))
    return _Student(student, learnt, retuned.dev_f1)


def member_phase(phase: str, number: int) -> str:
    """The phase of one of several taggers, counted from 0: the first has the plain name."""
    return phase if number == 0 else f"{phase}-{number + 1}"


def _member(number: int, count: int) -> dict[str, int]:
    """What a round's line says of which of several it is about."""
    return {"member": number + 1} if count > 1 else {}


def _best(scores: Sequence[float | None]) -> int:
    """The place of the highest dev F1, of equals the first; the first where there is none."""
    return max(range(len(scores)), key=lambda place: (scores[place] or 0.0, -place))


def _nothing_to_learn(beliefs: Beliefs, selected: Selected, names: list[str], round_: int) -> str:
    """Why a round has nothing to learn from, and what to do; empty where it has."""
    if not selected.words.any():
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


def _tell(run: Run, round_: int, student: _Student, member: dict[str, int], diagnosis: dict[str, Any]) -> None:
    told = {"round": round_, "student_f1": student.learnt.dev_f1, "teacher_f1": student.teacher_f1}
    run.end_round({**told, **member, **diagnosis})


def _diagnosis(run: Run, beliefs: Beliefs, before: Beliefs | None, selected: Selected) -> dict[str, Any]:
    """Words selected, agreement with the labels of the round before, and the error where the truth is known; in percent."""
    agreement = None if before is None else float(100.0 * (beliefs.best == before.best).mean())
    errors = pseudo_label_error(beliefs.labels, run.labels, run.data.hidden_tags, selected.counts)
    return {"selected": float(100.0 * selected.words.mean()), "agreement": agreement, **errors}


def _warn_of_a_weak_student(run: Run, parts: Parts, student: PhaseResult, teacher_f1: float | None) -> None:
    if student.dev_f1 is None or teacher_f1 is None or student.dev_f1 >= teacher_f1 - FAR_BELOW:
        return
    causes = f"it was trained too briefly ({student.steps} steps; student.epochs, student.min_steps, student.max_steps)"
    if parts.loss.tau_at(1.0) < float("inf"):
        causes += f", or robust.tau or robust.warmup is too small for {len(run.labels)} tags"
    run.progress.note(
        f"warning: the student's dev F1 of {student.dev_f1:.1f} is far below its teacher's {teacher_f1:.1f}; likely {causes}"
    )
