"""How long a run takes on this machine: phases are begun on a sample and broken off, and the rest is arithmetic."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from pathlib import Path
from typing import NamedTuple

import torch

from sequst.corpus.sentence import Sentence
from sequst.evaluation.evaluate import evaluate
from sequst.files import Scratch
from sequst.methods.adapt import NAME as ADAPTATION
from sequst.methods.adapt import adapt
from sequst.methods.registry import Method
from sequst.methods.self_training import member_phase
from sequst.tagger.tagger import Tagger
from sequst.training.configure import EFFORTS, from_dict, layered, of_effort
from sequst.training.directory import RunDirectory
from sequst.training.loop import Examples, Hooks, PhaseResult, PhaseSpec, count_steps, fit
from sequst.training.progress import Planned, Progress, Tracker, duration
from sequst.training.run import Run
from sequst.training.settings import Ensemble, PhaseSettings, Settings, to_dict

SAMPLE = 128
"""Sentences of each file that are rehearsed with."""
STEPS, SECONDS = 4, 0.4
"""A phase is rehearsed for at least so many steps, and so long."""
SHORTER = 0.7
"""An effort is worth a mention if it takes less than this fraction of the time."""


def foretell(run: Run, method: Method) -> None:
    """Tell the run's progress what is to come, and how long it takes; shorter efforts are named. Nothing on a GPU, whose first
    steps are unlike the others."""
    if not run.progress.plans or run.accelerator.device.type != "cpu":
        return
    try:
        costs = rehearse(run, method)
    except Exception as error:  # a forecast is not worth a run
        run.progress.note(f"no forecast could be made ({type(error).__name__}: {error})", detail=True)
        return
    planned = [each for each in costs.plan(run.settings) if not _is_done(run, each.phase)]
    run.progress.expect(planned)
    total = sum(each.seconds for each in planned)
    others = {effort: sum(each.seconds for each in costs.plan(with_effort(run.settings, effort))) for effort in EFFORTS}
    run.progress.forecast(others)
    shorter = [f"--effort {name}: {duration(seconds)}" for name, seconds in others.items() if seconds < SHORTER * total]
    told = f"training takes about {duration(total)} here"
    run.progress.note(f"{told} ({', '.join(shorter)})" if shorter else told, detail=total < 60)


def _is_done(run: Run, phase: str) -> bool:
    """Whether an earlier process ended the phase."""
    round_, _, name = phase.rpartition(": ")
    folder = run.directory.phase(int(round_.removeprefix("round ") or 0), name)
    return any((folder / file).is_file() for file in ("done.pt", "beliefs.npz"))


def with_effort(settings: Settings, effort: str) -> Settings:
    return from_dict(layered(to_dict(settings), of_effort(effort)))


class _Cost(NamedTuple):
    """What a phase costs."""

    settings: PhaseSettings
    windows: float
    """Windows of a sentence of its data."""
    step: float
    """Seconds a step."""
    score: float
    """Seconds of scoring the dev set, as often as the phase does."""
    sentence: float
    """Seconds before the first step for every sentence: standardising."""
    once: float
    """Seconds before the first step: a new tagger."""

    def seconds(self, sentences: int, factor: float = 1.0) -> float:
        """With so many sentences; `factor` times the steps that its settings ask for."""
        batches = math.ceil(self.windows * sentences / self.settings.batch_size)
        return self.once + self.sentence * sentences + self.score + factor * self.step * count_steps(self.settings, batches)


@dataclasses.dataclass
class Costs:
    """What was measured, and of which run."""

    settings: Settings
    labelled: int
    unlabelled: int
    phases: dict[str, _Cost]
    belief: float = 0.0
    """Seconds for beliefs about a sentence."""

    def plan(self, settings: Settings) -> list[Planned]:
        """The phases of a run with these settings and their seconds, in order."""
        rounds = settings.max_rounds if "student" in self.phases else 0
        teachers, students = (settings.ensemble.teachers, settings.ensemble.students) if rounds else (1, 1)
        pool = min(self.unlabelled, settings.round_size or self.unlabelled)
        found = []
        if settings.adapt and ADAPTATION in self.phases:
            found.append(Planned(ADAPTATION, self.phases[ADAPTATION].seconds(self.labelled + self.unlabelled)))
        found += [
            Planned(member_phase("teacher", i), self._seconds("teacher", self.labelled, settings)) for i in range(teachers)
        ]
        for round_ in range(1, rounds + 1):
            members = teachers if round_ == 1 else students
            found.append(Planned(f"round {round_}: beliefs", members * pool * self.belief))
            for number in range(students):
                for name, sentences in (("student", pool), ("retune", self.labelled)):
                    seconds = self._seconds(name, sentences, settings)
                    found.append(Planned(f"round {round_}: {member_phase(name, number)}", seconds))
        return found

    def _seconds(self, name: str, sentences: int, settings: Settings) -> float:
        """A method may take more steps than the settings say; so it does with others."""
        cost, batches = self.phases[name], math.ceil(self.phases[name].windows * sentences)
        own, other = (getattr(each, name) for each in (self.settings, settings))
        steps = [count_steps(each, math.ceil(batches / each.batch_size)) for each in (own, other)]
        return cost.seconds(sentences, steps[1] / steps[0])


def rehearse(run: Run, method: Method) -> Costs:
    """Begin every phase of a round on a sample, and break it off. The run itself is not touched."""
    with Scratch() as folder:
        rehearsal = _Rehearsal(run, Path(folder), "retune" if "retune" in method.uses else "teacher")
        with contextlib.suppress(_Over):
            if run.settings.adapt and method.unlabeled:
                with contextlib.suppress(_Adapted):
                    adapt(rehearsal)
            method.load()(rehearsal)
    return rehearsal.costs


class _Enough(Exception):
    """A phase was rehearsed for long enough."""


class _Adapted(Exception):
    """The encoder would be adapted by now."""


class _Over(Exception):
    """The last phase was rehearsed."""


class _Watch(Progress):
    """Breaks a phase off, and tells how long a step took; the first is not counted, since it warms up."""

    def __init__(self) -> None:
        self.begun = self.first = self.last = 0.0
        self.steps = 0
        self.beliefs = 0.0

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self.begun = self.first = self.last = time.perf_counter()
        self.steps = 0

    def advance(self, steps: int = 1, **values: float) -> None:
        if not values:  # of beliefs, which are formed to the end
            return
        self.last = time.perf_counter()
        self.steps += steps
        if self.steps == 1:
            self.first = self.last
        elif self.steps > STEPS and self.last - self.first > SECONDS:
            raise _Enough

    def end(self) -> None:
        self.beliefs = time.perf_counter() - self.begun

    @property
    def per_step(self) -> float:
        return (self.last - self.first) / (self.steps - 1) if self.steps > 1 else self.last - self.begun


class _Rehearsal(Run):
    """A run on a sample whose phases break off."""

    def __init__(self, run: Run, folder: Path, last: str) -> None:
        self.__dict__.update(run.__dict__)
        self._of, self._last, self._watch = run, last, _Watch()
        self.directory, self.progress, self.tracker, self.history = RunDirectory(folder), self._watch, Tracker(), []
        self.settings = dataclasses.replace(run.settings, max_rounds=1, round_size=0, ensemble=Ensemble())
        self.data = dataclasses.replace(
            run.data, labeled=_some(run.data.labeled), dev=_some(run.data.dev), unlabeled=_some(run.data.unlabeled),
            hidden_tags=[None] * min(SAMPLE, len(run.data.unlabeled)),
        )  # fmt: skip
        if run.encoder is not None:  # a BiLSTM has the vocabulary of all of the text
            self.text = [sentence.words for sentence in (*self.data.labeled, *self.data.unlabeled)]
        self.costs = Costs(run.settings, len(run.data.labeled), len(run.data.unlabeled), {})
        self._standardising, self._score = 0.0, 0.0
        self._ended = time.perf_counter()

    def train(self, tagger: Tagger, spec: PhaseSpec) -> PhaseResult:
        once = time.perf_counter() - self._ended - self._standardising
        with contextlib.suppress(_Enough):
            fit(tagger, self._completed(spec), self.accelerator, 0, Hooks(progress=self._watch))
        count = len({window.sentence for window in spec.examples.windows})
        score = self._of_scoring(tagger) * self.settings.evaluations if spec.scored else 0.0
        windows = len(spec.examples.windows) / count
        self.costs.phases[spec.name] = _Cost(
            spec.settings, windows, self._watch.per_step, score, self._standardising / count, once
        )
        if spec.name == ADAPTATION:
            raise _Adapted
        if spec.name == self._last:
            raise _Over
        with torch.no_grad():  # so that its labels are of all kinds: a teacher that has hardly learnt may find no entity
            tagger.head.linear.weight.normal_(0.0, 10.0)
            tagger.head.linear.bias.zero_()
        self._standardising, self._ended = 0.0, time.perf_counter()
        return PhaseResult(self._watch.steps, 0.0, 0, None, 0.0)

    def _of_scoring(self, tagger: Tagger) -> float:
        """Seconds that the dev set takes; measured once."""
        if self.data.dev and not self._score:
            begun = time.perf_counter()
            evaluate(tagger, self.data.dev)
            self._score = (time.perf_counter() - begun) * len(self._of.data.dev) / len(self.data.dev)
        return self._score

    def standardise(self, tagger: Tagger, examples: Examples, fp32: bool = False) -> None:
        if self._watch.beliefs:
            self.costs.belief = self._watch.beliefs / len(self.data.unlabeled)
        begun = time.perf_counter()
        super().standardise(tagger, examples, fp32)
        self._standardising = time.perf_counter() - begun


def _some(items: list[Sentence]) -> list[Sentence]:
    """At most `SAMPLE` of them, from all over."""
    return [items[i * len(items) // SAMPLE] for i in range(SAMPLE)] if len(items) > SAMPLE else items
