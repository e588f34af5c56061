"""Self-training, Algorithm 1 of the paper: one loop that takes a selector, a loss and a regulariser.

teacher = fine-tuned on the labelled data; in each round the teacher labels the unlabelled words, a selector chooses those to
trust, a student fresh from the pretrained weights learns them, and the student, fine-tuned on the labelled data again, is the
next teacher. The result is the teacher of the round with the best dev F1, of equals the later; without a dev set, the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from sequst.errors import SequstError
from sequst.evaluation.pseudo_labels import pseudo_label_error
from sequst.methods.finetune import LabelledWords, finetune
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import masked_cross_entropy
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.objective import Objective
from sequst.training.run import Run
from sequst.training.seeds import derive
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import Selector

if TYPE_CHECKING:
    from numpy.typing import NDArray

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(log probabilities, labels, mask of the selected words) -> the loss of a batch."""

FAR_BELOW = 10.0
"""A student whose dev F1 is so many points below its teacher's has not learnt what it should."""


@dataclass(frozen=True)
class Parts:
    """What tells one method of self-training from another."""

    selector: Selector
    loss: Loss
    warmup: float = 0.0
    """Share of a student's steps that learn with cross-entropy before the loss takes over. A loss that is bounded on words with
    a small probability hardly pulls at any entity while a new student still takes all words for O."""
    regulariser: Callable[[Tagger, int], GaussianConsistency] | None = None
    """Makes a fresh regulariser for a student, from a seed."""


class PseudoLabelledWords(Objective):
    """The loss of the selected words, plus what the regulariser adds (Eq. 15)."""

    def __init__(self, loss: Loss, warmup: float, regulariser: GaussianConsistency | None) -> None:
        self._loss, self._warmup, self._regulariser = loss, warmup, regulariser
        self._now: Loss = masked_cross_entropy
        self.nets = None if regulariser is None else regulariser.nets

    def begin_step(self, done: float) -> None:
        self._now = masked_cross_entropy if done < self._warmup else self._loss

    def begin_epoch(self, seed: int) -> None:
        if self._regulariser is not None:
            self._regulariser.begin_epoch(seed)

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        assert batch.labels is not None
        hidden = tagger.hidden(batch)
        log_probs = tagger.log_probs(hidden)
        loss = self._now(log_probs, batch.labels, batch.selected)
        if self._regulariser is None:
            return loss, {}
        extra, values = self._regulariser(hidden, log_probs, batch.owned, batch.selected, tagger.log_probs)
        return loss + extra, values


def self_train(run: Run, parts: Parts) -> Tagger:
    teacher = finetune(run)
    best_round, best_phase = 0, "teacher"
    best_f1 = teacher_f1 = run.dev_f1(teacher) if run.data.dev else None
    run.end_round({"round": 0, "teacher_f1": teacher_f1})
    kept_phase = {"teacher": "retune", "student": "student"}[run.settings.keep]
    before: Beliefs | None = None
    for round_ in range(1, run.settings.max_rounds + 1):
        beliefs = run.beliefs(teacher, round_, uncertain=parts.selector.looks_at_beliefs)
        selected = parts.selector.select(beliefs, np.random.default_rng(derive(run.settings.seed, round_, "selection")))
        _require_something_to_learn(beliefs, selected, run.labels, round_)
        run.pseudo_labels = beliefs, selected

        student = run.new_tagger(round_, "student")
        examples = run.pseudo_examples(student, beliefs, selected)
        run.standardise(student, examples)
        noise = derive(run.settings.seed, round_, "regulariser")
        regulariser = parts.regulariser(student, noise) if parts.regulariser is not None else None
        learning = PseudoLabelledWords(parts.loss, parts.warmup, regulariser)
        student_f1 = run.train(student, examples, learning, run.settings.student, round_, "student").dev_f1

        teacher, previous_f1 = student, teacher_f1
        labelled = run.examples(teacher, run.data.labeled)
        teacher_f1 = run.train(teacher, labelled, LabelledWords(), run.settings.retune, round_, "retune").dev_f1
        scores = {"student_f1": student_f1, "teacher_f1": teacher_f1}
        run.end_round({"round": round_, **scores, **_diagnosis(run, beliefs, before, selected)})
        _warn_of_a_weak_student(run, student_f1, previous_f1)

        before = beliefs
        f1 = scores[f"{run.settings.keep}_f1"]
        if f1 is None or best_f1 is None or f1 >= best_f1:
            best_round, best_phase, best_f1 = round_, kept_phase, f1
        elif round_ - best_round >= run.settings.patience:
            run.progress.note(
                f"no better {run.settings.keep} for {run.settings.patience} rounds: stopping; round {best_round} is the best"
            )
            break
    return run.finished_tagger(best_round, best_phase)


def _require_something_to_learn(beliefs: Beliefs, selected: NDArray[np.bool_], names: list[str], round_: int) -> None:
    if not selected.any():
        raise SequstError(
            f"round {round_}: no word was selected, for the teacher is certain of none; use --set selection.selector=all, "
            "or more labelled sentences"
        )
    outside = names.index("O")
    if not (beliefs.labels != outside).any():
        raise SequstError(
            f"round {round_}: the teacher labels every unlabelled word O, so there is nothing to learn from it; "
            "label more sentences, or train the teacher longer (--set teacher.min_steps=1200)"
        )


def _diagnosis(run: Run, beliefs: Beliefs, before: Beliefs | None, selected: NDArray[np.bool_]) -> dict[str, Any]:
    """Words selected, agreement with the labels of the round before, and the error where the truth is known; in percent."""
    agreement = None if before is None else float(100.0 * (beliefs.labels == before.labels).mean())
    errors = pseudo_label_error(beliefs.labels, run.labels, run.data.hidden_tags, selected)
    return {"selected": float(100.0 * selected.mean()), "agreement": agreement, **errors}


def _warn_of_a_weak_student(run: Run, student_f1: float | None, teacher_f1: float | None) -> None:
    if student_f1 is None or teacher_f1 is None or student_f1 >= teacher_f1 - FAR_BELOW:
        return
    run.progress.note(
        f"warning: the student's dev F1 of {student_f1:.1f} is far below its teacher's {teacher_f1:.1f}; likely it was trained "
        f"too briefly (student.epochs {run.settings.student.epochs:g}) or robust.tau is too small for {len(run.labels)} tags"
    )
