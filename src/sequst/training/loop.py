"""The training loop, for every phase of every method."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from sequst.tagger.accel.embedding import trained_rows
from sequst.tagger.accel.layers import Layers
from sequst.tagger.batches import Batch, collate
from sequst.tagger.planning import plan
from sequst.tagger.tagger import Tagger
from sequst.tagger.windows import Window
from sequst.training.noise import hide_words
from sequst.training.objective import Objective
from sequst.training.progress import Progress
from sequst.training.seeds import derive, seed_everything
from sequst.training.settings import PhaseSettings
from sequst.training.steps import StepResult, Steps

if TYPE_CHECKING:
    from sequst.tagger.batches import PerWord

MAX_TOKENS = 16384
"""Maximum number of sub-words in a training batch, to bound memory."""
MOST_EPOCHS = 150
"""Passes over the data that `min_steps` may ask for: tiny data are learnt long before."""
WARMUP = 0.1
"""Fraction of steps with a rising learning rate, as in the paper."""
WEIGHT_DECAY = 0.01
CRF_RATE = 5e-3
"""Peak learning rate of a CRF's transitions."""


class Examples(NamedTuple):
    """Windows, the labels of their sentences, selected words (None = all), and word weights (None = equal)."""

    windows: list[Window]
    labels: Sequence[PerWord]
    selected: Sequence[PerWord] | None = None
    weights: Sequence[PerWord] | None = None

    def collated(self, rows: list[int], pad: int) -> Batch:
        """The batch of these rows, on the CPU."""
        return collate(self.windows, rows, pad, self.labels, self.selected, self.weights)

    def batch(self, rows: list[int], tagger: Tagger) -> Batch:
        """The batch of these rows, on the tagger's device."""
        return self.collated(rows, tagger.pad_id).to(tagger.device)


@dataclass(frozen=True)
class PhaseSpec:
    """Description of a training phase."""

    name: str
    """Name of its group of settings, with a number if there are several."""
    round: int
    settings: PhaseSettings
    examples: Examples
    objective: Objective
    hide: float = 0.0
    """Fraction of words replaced by the mask token in each step."""
    scored: bool = True
    """Whether to score the dev set and keep the best weights. If not, the last are kept."""
    head_rate: float = 2.0
    evaluations: int = 5

    def __str__(self) -> str:
        return self.name if self.round == 0 else f"round {self.round}: {self.name}"


class Diverged(Exception):
    """The loss or a gradient is not finite."""


@dataclass
class Hooks:
    """Callbacks of a phase."""

    score: Callable[[Tagger], float] | None = None
    """Returns the dev F1 of the tagger. None = the last weights are kept."""
    record: Callable[[dict[str, Any]], None] = lambda line: None
    """Receives a line for metrics.jsonl."""
    save: Callable[[dict[str, Any]], None] | None = None
    """Receives a state to resume from."""
    save_every: float = 60.0
    progress: Progress = field(default_factory=Progress)


@dataclass
class PhaseResult:
    """The result of a phase."""

    steps: int
    loss: float
    best_step: int
    dev_f1: float | None
    seconds: float


def count_steps(phase: PhaseSettings, batches: int) -> int:
    """Steps of a phase whose data fill so many batches."""
    steps = max(math.ceil(phase.epochs * batches), min(phase.min_steps, MOST_EPOCHS * batches), 1)
    return min(steps, phase.max_steps or steps)


def fit(
    tagger: Tagger, spec: PhaseSpec, accelerator: Accelerator, seed: int, hooks: Hooks, state: dict[str, Any] | None = None
) -> PhaseResult:
    """Train the tagger in place. Every epoch has its own seed, so a phase that is resumed from a `state` gives the same
    weights."""
    tagger.to(accelerator.device)
    with _trained_words(tagger, spec):
        return _Loop(tagger, spec, accelerator, seed, hooks, state).run()


def _trained_words(tagger: Tagger, spec: PhaseSpec) -> contextlib.AbstractContextManager[None]:
    """Context in which only the embeddings of words of this phase are trained."""
    if not spec.objective.batch_only:
        return contextlib.nullcontext()
    ids = set(itertools.chain.from_iterable(window.ids for window in spec.examples.windows))
    return trained_rows(tagger.encoder, torch.tensor(list(ids), dtype=torch.int64))


class _Loop:
    """A running phase."""

    def __init__(
        self, tagger: Tagger, spec: PhaseSpec, accelerator: Accelerator, seed: int, hooks: Hooks, state: dict[str, Any] | None
    ) -> None:
        self._tagger, self._spec, self._seed, self._hooks = tagger, spec, seed, hooks
        phase, objective = spec.settings, spec.objective
        self._steps = count_steps(phase, len(self._plan(0)))
        self._score_at = {round(self._steps * (i + 1) / spec.evaluations) for i in range(spec.evaluations)} | {self._steps}
        objective.generator = torch.Generator(accelerator.device)
        self._learners = nn.ModuleDict({"tagger": tagger} | ({"nets": objective.nets} if objective.nets is not None else {}))
        self._learners.to(accelerator.device)
        recorded = tagger.device.type == "cuda" and Layers.of(tagger.encoder) is not None
        # not prepared by Accelerate, which would remember it, its state and the weights for as long as the run lasts
        self._optimizer = _optimizer(tagger, spec, recorded)
        self._at = _Position.restore(state, self._learners, self._optimizer)
        parts = (tagger, objective, self._learners, self._optimizer, accelerator)
        self._take = self._recorded(parts) if recorded else Steps(*parts).take
        self._begun = self._saved = time.perf_counter()

    def _recorded(self, parts: tuple[Any, ...]) -> Callable[[Batch], StepResult]:
        """Steps as CUDA graphs."""
        from sequst.training.accel.graphs import RecordedSteps

        most = min(self._spec.settings.batch_size, len(self._spec.examples.windows))
        return RecordedSteps(*parts, rows=most, tokens=MAX_TOKENS).take

    def run(self) -> PhaseResult:
        at = self._at
        self._hooks.progress.begin(str(self._spec), self._steps, at.step)
        while at.step < self._steps:
            self._epoch()
            at.epoch += 1
            at.look(self._steps)
            self._save()
        if at.best is not None:
            _put_back(self._tagger, at.best)
        scores = {} if at.best_f1 is None else {"dev F1": at.best_f1}
        self._hooks.progress.advance(0, loss=at.loss, **scores)
        self._tagger.eval()
        return PhaseResult(at.step, at.loss, at.best_step, at.best_f1, at.seconds + time.perf_counter() - self._begun)

    def _plan(self, epoch: int) -> list[list[int]]:
        lengths = [len(window.ids) for window in self._spec.examples.windows]
        seed = derive(self._seed, "order", epoch)
        return plan(lengths, max_rows=self._spec.settings.batch_size, max_tokens=MAX_TOKENS, seed=seed)

    def _epoch(self) -> None:
        at, spec, tagger = self._at, self._spec, self._tagger
        seed_everything(derive(self._seed, "epoch", at.epoch))
        spec.objective.generator.manual_seed(derive(self._seed, "objective", at.epoch))
        noise = torch.Generator().manual_seed(derive(self._seed, "hide", at.epoch))
        tagger.train()
        for rows in self._plan(at.epoch):
            batch = spec.examples.collated(rows, tagger.pad_id)
            if spec.hide:
                batch = hide_words(batch, spec.hide, tagger, noise)
            self._step(batch)
            if at.step == self._steps:
                break

    def _step(self, batch: Batch) -> None:
        at, tagger = self._at, self._tagger
        _set_rate(self._optimizer, _schedule(at.step, self._steps))
        self._spec.objective.begin_step(at.step, self._steps)
        at.took_step(self._take(batch))
        scores = at.step in self._score_at
        if scores or len(at.unseen) >= _look_every(tagger.device):
            at.look(self._steps)
        self._hooks.progress.advance(1, loss=at.loss)
        if scores:
            at.scored(self._hooks.score(tagger) if self._hooks.score is not None else None, tagger)
            rate = _schedule(at.step - 1, self._steps) * self._spec.settings.learning_rate
            self._hooks.record(at.line(rate, self._begun))
            tagger.train()

    def _save(self) -> None:
        now = time.perf_counter()
        if self._hooks.save is not None and self._at.step < self._steps and now - self._saved >= self._hooks.save_every:
            self._hooks.save(self._at.state(self._learners, self._optimizer, now - self._begun))
            self._saved = time.perf_counter()


@dataclass
class _Position:
    """The position within a phase."""

    step: int = 0
    epoch: int = 0
    loss: float = 0.0
    """The mean of the steps since the last score."""
    best_step: int = 0
    best_f1: float | None = None
    last_f1: float | None = None
    means: dict[str, float] = field(default_factory=dict)
    best: dict[str, Tensor] | None = None
    unseen: list[StepResult] = field(default_factory=list)
    """Steps whose losses have not been read yet."""
    seconds: float = 0.0
    total: float = 0.0
    count: int = 0
    values: dict[str, tuple[float, int]] = field(default_factory=dict)
    """(sum, count) of each value that the objective has reported since the last score."""

    def took_step(self, taken: StepResult) -> None:
        self.step += 1
        self.unseen.append(taken)

    def look(self, steps: int) -> None:
        """Wait for the steps taken, and read their losses."""
        first = self.step - len(self.unseen) + 1
        found = torch.cat([taken.values for taken in self.unseen]).tolist() if self.unseen else []
        for step, (names, values) in enumerate(self.unseen, first):
            loss, norm, *told = found[: len(values)]
            del found[: len(values)]
            for name, value in zip(("the loss", "a gradient", *names), (loss, norm, *told), strict=True):
                if not math.isfinite(value):
                    raise Diverged(f"{name} is not finite at step {step} of {steps}")
            self.total, self.count = self.total + loss, self.count + 1
            self.loss = self.total / self.count
            for name, value in zip(names, told, strict=True):
                total, times = self.values.get(name, (0.0, 0))
                self.values[name] = total + value, times + 1
        self.unseen.clear()

    def scored(self, f1: float | None, tagger: Tagger) -> None:
        """Keep the weights if they are the best so far; on ties, the later."""
        self.means = {name: total / times for name, (total, times) in self.values.items()}
        self.total, self.count, self.values = 0.0, 0, {}
        self.last_f1 = f1
        if f1 is None:
            self.best_step = self.step
        elif self.best_f1 is None or f1 >= self.best_f1:
            self.best_step, self.best_f1 = self.step, f1
            self.best = _copy(tagger)

    def line(self, rate: float, begun: float) -> dict[str, Any]:
        return {
            "step": self.step,
            "epoch": self.epoch,
            "loss": self.loss,
            "learning_rate": rate,
            "dev_f1": self.last_f1,
            **self.means,
            "seconds": self.seconds + time.perf_counter() - begun,
        }

    _KEPT = ("step", "epoch", "loss", "best_step", "best_f1", "best", "total", "count", "values")

    def state(self, learners: nn.Module, optimizer: Any, seconds: float) -> dict[str, Any]:
        position = {name: getattr(self, name) for name in self._KEPT}
        return {
            "position": {**position, "seconds": self.seconds + seconds},
            "learners": learners.state_dict(),
            "optimizer": optimizer.state_dict(),
        }

    @classmethod
    def restore(cls, state: dict[str, Any] | None, learners: nn.Module, optimizer: Any) -> _Position:
        if state is None:
            return cls()
        learners.load_state_dict(state["learners"])
        here = [{name: group[name] for name in ("lr", "capturable")} for group in optimizer.param_groups]
        optimizer.load_state_dict(state["optimizer"])
        for group, own in zip(optimizer.param_groups, here, strict=True):
            group.update(own)  # those of the machine that goes on: a rate is set before every step
        return cls(**state["position"])


def _copy(tagger: Tagger) -> dict[str, Tensor]:
    """A copy of the weights, on the GPU if it has plenty of room, else on the CPU."""
    weights = tagger.state_dict()
    size = sum(value.nbytes for value in weights.values())
    roomy = tagger.device.type == "cpu" or torch.cuda.mem_get_info(tagger.device)[0] > 8 * size
    return {name: value.to(value.device if roomy else "cpu", copy=True) for name, value in weights.items()}


@torch.no_grad()
def _put_back(tagger: Tagger, weights: dict[str, Tensor]) -> None:
    """Restore the copied weights."""
    for name, value in tagger.state_dict().items():
        value.copy_(weights[name])


def _optimizer(tagger: Tagger, spec: PhaseSpec, recorded: bool) -> torch.optim.Optimizer:
    """AdamW; the head has its own rate, a CRF's transitions theirs, and biases, normalisation weights and transitions no decay.

    Of steps that are `recorded`, rates are tensors, so that a replay sees them change.
    """
    rate, objective = spec.settings.learning_rate, spec.objective
    rates = [(tagger.encoder, rate), (tagger.head.linear, spec.head_rate * rate)]
    if objective.nets is not None:
        rates.append((objective.nets, objective.nets_rate or rate))
    chain = list(tagger.head.parameters(recurse=False))
    groups = [{"params": chain, "lr": CRF_RATE, "peak": CRF_RATE, "weight_decay": 0.0}]
    for module, rate in rates:
        decayed, plain = _by_decay(module)
        groups.append({"params": decayed, "lr": rate, "peak": rate, "weight_decay": WEIGHT_DECAY})
        groups.append({"params": plain, "lr": rate, "peak": rate, "weight_decay": 0.0})
    groups = [group for group in groups if group["params"]]
    if recorded:
        groups = [{**group, "lr": torch.tensor(group["lr"], device=tagger.device)} for group in groups]
    return torch.optim.AdamW(groups, fused=True, capturable=recorded)


def _by_decay(module: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """(weights of matrices, biases and normalisation weights)."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return [p for p in trained if p.ndim > 1], [p for p in trained if p.ndim <= 1]


def _schedule(step: int, steps: int) -> float:
    """The fraction of the peak rate: rising over the first `WARMUP` of the steps, then falling to zero."""
    rising = max(1, round(WARMUP * steps))
    if step < rising:
        return (step + 1) / (rising + 1)
    return (steps - step) / max(1, steps - rising)


def _look_every(device: torch.device) -> int:
    """Number of steps after which losses are read. On a GPU reading means waiting."""
    return 1 if device.type == "cpu" else 20


def _set_rate(optimizer: Any, factor: float) -> None:
    for group in optimizer.param_groups:
        rate = group["peak"] * factor
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def batches_of(examples: Examples, tagger: Tagger, max_tokens: int = MAX_TOKENS) -> Iterator[Batch]:
    """All examples once, sorted by length, for evaluation."""
    lengths = [len(window.ids) for window in examples.windows]
    for rows in plan(lengths, max_rows=len(lengths), max_tokens=max_tokens):
        yield examples.batch(rows, tagger)
