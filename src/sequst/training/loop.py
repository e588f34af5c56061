"""The loop: every phase of every method is this one."""

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

from sequst.tagger.batches import Batch, collate
from sequst.tagger.planning import plan
from sequst.tagger.tagger import Tagger
from sequst.tagger.windows import Window
from sequst.training.averaging import Averaged
from sequst.training.noise import hide_words
from sequst.training.objective import Objective
from sequst.training.progress import Progress, Silent
from sequst.training.seeds import derive, seed_everything
from sequst.training.settings import Phase
from sequst.training.steps import ReplayedSteps, StepResult, Steps

if TYPE_CHECKING:
    from sequst.tagger.batches import Labels

MAX_TOKENS = 16384
"""Sub-words in a training batch at most, whatever its batch size, to bound memory."""


class Examples(NamedTuple):
    """Windows to learn from, the labels of their sentences, and which words of them count; without that, all do."""

    windows: list[Window]
    labels: Sequence[Labels]
    selected: list[list[bool]] | None = None

    def collated(self, rows: list[int], pad: int) -> Batch:
        """The batch of these rows, on the CPU."""
        return collate(self.windows, rows, pad, self.labels, self.selected)

    def batch(self, rows: list[int], tagger: Tagger) -> Batch:
        """The batch of these rows, where the tagger is."""
        return self.collated(rows, tagger.pad_id).to(tagger.device)


Renew = Callable[[int], Examples] | None
"""Gives the examples of an epoch after the first: the same windows, of which other words count, or others in their place."""


class Diverged(Exception):
    """The loss or a gradient is not finite. The tagger has been put back to weights whose loss was."""

    def __init__(self, what: str, step: int, steps: int, good_step: int) -> None:
        self.what, self.step, self.steps, self.good_step = what, step, steps, good_step
        super().__init__(f"{what} at step {step} of {steps}")


class OtherState(Exception):
    """A state to resume from that other weights were learnt with: of another version."""


@dataclass
class Hooks:
    """What a phase tells the outside, and asks of it."""

    score: Callable[[Tagger], float] | None = None
    """The dev F1 of the tagger; without it the last weights are kept."""
    record: Callable[[dict[str, Any]], None] = lambda line: None
    """Takes a line for metrics.jsonl."""
    save: Callable[[dict[str, Any]], None] | None = None
    """Takes a state to resume from."""
    save_every: float = 60.0
    progress: Progress = field(default_factory=Silent)
    name: str = "training"


@dataclass
class PhaseResult:
    """How a phase went."""

    steps: int
    loss: float
    best_step: int
    dev_f1: float | None
    seconds: float


def fit(
    tagger: Tagger, examples: Examples, objective: Objective, phase: Phase, accelerator: Accelerator, seed: int,
    hooks: Hooks, state: dict[str, Any] | None = None, chain_rate: float = 5e-3,
    renew: Renew = None,
) -> PhaseResult:  # fmt: skip
    """Train the tagger in place. Every epoch is seeded by itself, so a phase resumed at an epoch ends as it would have.

    Of the words it learns those that it meets; where they are known beforehand, the others take no time and no memory.
    """
    tagger.to(accelerator.device)
    known = objective.reads_batch_alone and renew is None
    with tagger.encoder.narrowed(_ids(examples)) if known else contextlib.nullcontext():
        return _fit(tagger, examples, objective, phase, accelerator, seed, hooks, state, chain_rate, renew)


def _ids(examples: Examples) -> Tensor:
    """All that occur."""
    return torch.tensor(list(set(itertools.chain.from_iterable(window.ids for window in examples.windows))), dtype=torch.int64)


def _fit(
    tagger: Tagger, examples: Examples, objective: Objective, phase: Phase, accelerator: Accelerator, seed: int,
    hooks: Hooks, state: dict[str, Any] | None, chain_rate: float, renew: Renew,
) -> PhaseResult:  # fmt: skip
    def epoch_plan(epoch: int) -> list[list[int]]:
        lengths = [len(window.ids) for window in examples.windows]
        return plan(lengths, max_rows=phase.batch_size, max_tokens=MAX_TOKENS, seed=derive(seed, "order", epoch))

    steps = max(math.ceil(phase.epochs * len(epoch_plan(0))), phase.min_steps, 1)
    steps = min(steps, phase.max_steps or steps)
    score_at = {round(steps * (i + 1) / phase.evaluations) for i in range(phase.evaluations)} | {steps}
    learners = nn.ModuleDict({"tagger": tagger} | ({"nets": objective.nets} if objective.nets is not None else {}))
    learners.to(accelerator.device)
    recorded = ReplayedSteps.fit(tagger)
    # not prepared by Accelerate, which would remember it, its state and the weights for as long as the run lasts
    optimizer = _optimizer(tagger, objective, phase, chain_rate, recorded)
    at = _Position.restore(state, learners, optimizer)
    averaged = Averaged(tagger, phase.average) if phase.average else None
    if averaged is not None and state is not None:
        averaged.restore(state["averaged"])
    parts = (tagger, objective, learners, optimizer, accelerator, phase.max_gradient_norm)
    most = min(phase.batch_size, len(examples.windows))
    take = ReplayedSteps(*parts, rows=most, tokens=MAX_TOKENS).take if recorded else Steps(*parts).take
    look_every = _look_every(tagger.device)
    begun = saved = time.perf_counter()
    hooks.progress.begin(hooks.name, steps, at.step)

    while at.step < steps:
        seed_everything(derive(seed, "epoch", at.epoch))
        objective.begin_epoch(derive(seed, "objective", at.epoch))
        if renew is not None and at.epoch:
            examples = renew(at.epoch)
        noise = torch.Generator().manual_seed(derive(seed, "hide", at.epoch))
        tagger.train()
        for rows in epoch_plan(at.epoch):
            batch = examples.collated(rows, tagger.pad_id)
            if phase.hide:
                batch = hide_words(batch, phase.hide, tagger, noise)
            _set_rate(optimizer, _schedule(at.step, steps, phase.warmup))
            objective.begin_step(at.step, steps)
            if (at.good is None and at.promised is None) or at.step + 1 in score_at:
                at.look(tagger, steps)
                at.promise(tagger)
            at.took_step(take(batch))
            if averaged is not None:
                averaged.took_step()
            if at.step in score_at or len(at.unseen) >= look_every:
                at.look(tagger, steps)
            hooks.progress.advance(1, loss=at.loss)
            if at.step in score_at:
                with contextlib.nullcontext() if averaged is None else averaged.in_place():
                    at.scored(hooks.score(tagger) if hooks.score is not None else None, tagger)
                hooks.record(at.line(_schedule(at.step - 1, steps, phase.warmup) * phase.learning_rate, begun))
                tagger.train()
            if at.step == steps:
                break
        at.epoch += 1
        at.look(tagger, steps)
        if hooks.save is not None and at.step < steps and time.perf_counter() - saved >= hooks.save_every:
            own = {} if averaged is None else {"averaged": averaged.state()}
            hooks.save({**at.state(learners, optimizer, time.perf_counter() - begun), **own})
            saved = time.perf_counter()

    if at.best is not None:
        _put_back(tagger, at.best)
    elif averaged is not None:
        averaged.settle()
    tagger.eval()
    return PhaseResult(at.step, at.loss, at.best_step, at.best_f1, at.seconds + time.perf_counter() - begun)


@dataclass
class _Position:
    """Where a phase stands."""

    step: int = 0
    epoch: int = 0
    loss: float = 0.0
    """The mean of the steps since the last score."""
    best_step: int = 0
    best_f1: float | None = None
    last_f1: float | None = None
    means: dict[str, float] = field(default_factory=dict)
    best: dict[str, Tensor] | None = None
    good_step: int = 0
    good: dict[str, Tensor] | None = None
    """Weights from before a step whose loss and gradients were finite, renewed as often as the dev set is scored."""
    promised: tuple[int, dict[str, Tensor]] | None = None
    """The step and the weights from before it, which are good if it was."""
    unseen: list[StepResult] = field(default_factory=list)
    """The last steps, of which the losses have not been looked at."""
    seconds: float = 0.0
    total: float = 0.0
    count: int = 0
    values: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Of what the objective reports since the last score: its sum, and how often it did."""

    def promise(self, tagger: Tagger) -> None:
        self.promised = self.step, _copy(tagger)

    def took_step(self, taken: StepResult) -> None:
        self.step += 1
        self.unseen.append(taken)

    def look(self, tagger: Tagger, steps: int) -> None:
        """Wait for the steps that were taken and see what they brought."""
        first = self.step - len(self.unseen) + 1
        found = torch.cat([taken.values for taken in self.unseen]).tolist() if self.unseen else []
        for step, (names, values) in enumerate(self.unseen, first):
            loss, norm, *told = found[: len(values)]
            del found[: len(values)]
            if not (math.isfinite(loss) and math.isfinite(norm)):
                if self.good is not None:
                    _put_back(tagger, self.good)
                raise Diverged("the loss" if not math.isfinite(loss) else "a gradient", step, steps, self.good_step)
            if self.promised is not None and self.promised[0] == step - 1:
                (self.good_step, self.good), self.promised = self.promised, None
            self.total, self.count = self.total + loss, self.count + 1
            self.loss = self.total / self.count
            for name, value in zip(names, told, strict=True):
                total, times = self.values.get(name, (0.0, 0))
                self.values[name] = total + value, times + 1
        self.unseen.clear()

    def scored(self, f1: float | None, tagger: Tagger) -> None:
        """Keep the weights if they are the best so far; of equals the later."""
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
        if any(kept["exp_avg"].shape != weight.shape for weight, kept in optimizer.state.items()):
            raise OtherState
        return cls(**state["position"])


def _copy(tagger: Tagger) -> dict[str, Tensor]:
    """The weights as they are: on a GPU that has room for many more of them there, which takes no time, else on the CPU."""
    weights = _weights(tagger)
    size = sum(value.nbytes for value in weights.values())
    roomy = tagger.device.type == "cpu" or torch.cuda.mem_get_info(tagger.device)[0] > 8 * size
    return {name: value.detach().to(value.device if roomy else "cpu", copy=True) for name, value in weights.items()}


def _weights(tagger: Tagger) -> dict[str, Tensor]:
    """What a state has, as it is within the phase: of a table the part that is learnt."""
    beside = {f"{prefix}.{name}" for prefix, module in tagger.named_modules() for name in module._non_persistent_buffers_set}
    named = itertools.chain(tagger.named_parameters(), tagger.named_buffers())
    return {name: value for name, value in named if name not in beside}


@torch.no_grad()
def _put_back(tagger: Tagger, weights: dict[str, Tensor]) -> None:
    """Undo all that happened since they were copied."""
    for name, value in _weights(tagger).items():
        value.copy_(weights[name])


def _optimizer(tagger: Tagger, objective: Objective, phase: Phase, chain_rate: float, recorded: bool) -> torch.optim.Optimizer:
    """AdamW; the head has its own rate, the scores of a chain theirs, and biases, normalisation weights and chains no decay.

    Of steps that are `recorded`, rates are tensors, so that a replay sees them change.
    """
    rates = [(tagger.encoder, phase.learning_rate), (tagger.head.linear, phase.head_learning_rate)]
    if objective.nets is not None:
        rates.append((objective.nets, objective.nets_rate or phase.learning_rate))
    chain = list(tagger.head.parameters(recurse=False))
    groups = [{"params": chain, "lr": chain_rate, "peak": chain_rate, "weight_decay": 0.0}]
    for module, rate in rates:
        decayed, plain = _by_decay(module)
        groups.append({"params": decayed, "lr": rate, "peak": rate, "weight_decay": phase.weight_decay})
        groups.append({"params": plain, "lr": rate, "peak": rate, "weight_decay": 0.0})
    groups = [group for group in groups if group["params"]]
    if recorded:
        groups = [{**group, "lr": torch.tensor(group["lr"], device=tagger.device)} for group in groups]
    return torch.optim.AdamW(groups, fused=True, capturable=recorded)


def _by_decay(module: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """(weights of matrices, biases and normalisation weights)."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return [p for p in trained if p.ndim > 1], [p for p in trained if p.ndim <= 1]


def _schedule(step: int, steps: int, warmup: float) -> float:
    """The share of the peak rate: rising over the first `warmup` of the steps, then falling to zero."""
    rising = max(1, round(warmup * steps)) if warmup > 0 else 0
    if step < rising:
        return (step + 1) / (rising + 1)
    return (steps - step) / max(1, steps - rising)


def _look_every(device: torch.device) -> int:
    """After how many steps their losses are looked at: on a GPU to look is to wait for them."""
    return 1 if device.type == "cpu" else 20


def _set_rate(optimizer: Any, factor: float) -> None:
    for group in optimizer.param_groups:
        rate = group["peak"] * factor
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def batches_of(examples: Examples, tagger: Tagger, max_tokens: int = MAX_TOKENS) -> Iterator[Batch]:
    """All examples once, without learning: sorted by length."""
    lengths = [len(window.ids) for window in examples.windows]
    for rows in plan(lengths, max_rows=len(lengths), max_tokens=max_tokens):
        yield examples.batch(rows, tagger)
