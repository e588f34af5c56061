"""A step of AdamW in three kernels of Triton, with the clipping of gradients before it and the copies of weights after it.

torch launches some thirty for the three, and reads gradients and weights several times. Weights, gradients and moments lie all
over the memory, so kernels go by tables of their addresses; every program takes a piece of one weight. A weight without a
gradient, whose address is 0, stays as it is. What is summed, is summed in the same order every time.

Importing this needs Triton, which torch brings where it knows a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

PIECE, BLOCK = 16384, 2048
"""Elements of a weight that a program takes, and those of them that it takes at once."""
_ALIGNED = 16
"""Bytes: addresses are multiples of it, so that four numbers are read at once."""


@triton.jit
def _at(address, place, TYPE: tl.constexpr):
    return tl.multiple_of(address.to(tl.pointer_type(TYPE)) + place, 16)


@triton.jit
def _squares(gradients, sizes, owners, begins, sums, PIECE: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of squares of a piece of a gradient."""
    owner, begin = tl.load(owners + tl.program_id(0)), tl.load(begins + tl.program_id(0))
    size, gradient = tl.load(sizes + owner), tl.load(gradients + owner)
    total = tl.zeros((BLOCK,), tl.float32)
    if gradient != 0:
        if begin + PIECE <= size:  # without a mask four are read at once
            for start in range(0, PIECE, BLOCK):
                each = tl.load(_at(gradient, begin + start + tl.arange(0, BLOCK), tl.float32))
                total += each * each
        else:
            for rest in range(0, (size - begin).to(tl.int32), BLOCK):
                place = begin + rest + tl.arange(0, BLOCK)
                each = tl.load(_at(gradient, place, tl.float32), mask=place < size, other=0.0)
                total += each * each
    tl.store(sums + tl.program_id(0), tl.sum(total))


@triton.jit(do_not_specialize=["pieces", "count"])
def _prepare(
    gradients, sums, steps, logarithms, told, corrections, pieces, count, max_norm,
    BLOCK: tl.constexpr, ALL: tl.constexpr,
):  # fmt: skip
    """The norm of all gradients and what they are scaled by; of every weight its steps, and what corrects its moments."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, pieces, BLOCK):
        place = start + tl.arange(0, BLOCK)
        total += tl.load(sums + place, mask=place < pieces, other=0.0)
    norm = tl.sqrt(tl.sum(total))
    tl.store(told, norm)
    tl.store(told + 1, tl.minimum(max_norm / (norm + 1e-6), 1.0))
    each = tl.arange(0, ALL)
    known = each < count
    moves = tl.load(gradients + each, mask=known, other=0) != 0
    step = tl.load(steps + each, mask=known, other=1.0) + moves.to(tl.float32)
    tl.debug_barrier()  # where there are fewer weights than threads, several read the same
    tl.store(steps + each, step, mask=known)
    exact = step.to(tl.float64)  # of a thousandth in fp32 little would be left when 1 is taken away
    tl.store(corrections + each, (1.0 - tl.exp(exact * tl.load(logarithms))).to(tl.float32), mask=known)
    second = 1.0 - tl.exp(exact * tl.load(logarithms + 1))
    tl.store(corrections + count + each, tl.sqrt(second.to(tl.float32)), mask=known)


@triton.jit
def _moved(gradient, weight, first, second, scale, rate, decay, one, two, BETA1: tl.constexpr, BETA2: tl.constexpr, epsilon):
    """The weight and its moments after a step."""
    gradient = gradient * scale
    first += (gradient - first) * (1.0 - BETA1)
    second = second * BETA2 + gradient * gradient * (1.0 - BETA2)
    weight = weight * (1.0 - rate * decay) - rate / one * first / (tl.sqrt(second) / two + epsilon)
    return weight, first, second


@triton.jit(do_not_specialize=["count"])
def _update(
    gradients, weights, firsts, seconds, copies, sizes, rates, decays, told, corrections, owners, begins, count, epsilon,
    BETA1: tl.constexpr, BETA2: tl.constexpr, PIECE: tl.constexpr, BLOCK: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    owner, begin = tl.load(owners + tl.program_id(0)), tl.load(begins + tl.program_id(0))
    size, gradient = tl.load(sizes + owner), tl.load(gradients + owner)
    copied: tl.constexpr = tl.bfloat16 if HALF else tl.float32
    if gradient != 0:
        weight, first, second = tl.load(weights + owner), tl.load(firsts + owner), tl.load(seconds + owner)
        copy = tl.load(copies + owner)
        scale = tl.load(told + 1)
        rate = tl.load(tl.load(rates + owner).to(tl.pointer_type(tl.float32)))
        decay = tl.load(decays + owner)
        one, two = tl.load(corrections + owner), tl.load(corrections + count + owner)
        if begin + PIECE <= size:
            for start in range(0, PIECE, BLOCK):
                place = begin + start + tl.arange(0, BLOCK)
                new, mean, square = _moved(
                    tl.load(_at(gradient, place, tl.float32)), tl.load(_at(weight, place, tl.float32)),
                    tl.load(_at(first, place, tl.float32)), tl.load(_at(second, place, tl.float32)),
                    scale, rate, decay, one, two, BETA1, BETA2, epsilon,
                )  # fmt: skip
                tl.store(_at(weight, place, tl.float32), new)
                tl.store(_at(first, place, tl.float32), mean)
                tl.store(_at(second, place, tl.float32), square)
                if copy != 0:
                    tl.store(_at(copy, place, copied), new.to(copied))
        else:
            for rest in range(0, (size - begin).to(tl.int32), BLOCK):
                place = begin + rest + tl.arange(0, BLOCK)
                known = place < size
                new, mean, square = _moved(
                    tl.load(_at(gradient, place, tl.float32), mask=known), tl.load(_at(weight, place, tl.float32), mask=known),
                    tl.load(_at(first, place, tl.float32), mask=known), tl.load(_at(second, place, tl.float32), mask=known),
                    scale, rate, decay, one, two, BETA1, BETA2, epsilon,
                )  # fmt: skip
                tl.store(_at(weight, place, tl.float32), new, mask=known)
                tl.store(_at(first, place, tl.float32), mean, mask=known)
                tl.store(_at(second, place, tl.float32), square, mask=known)
                if copy != 0:
                    tl.store(_at(copy, place, copied), new.to(copied), mask=known)


class FusedAdamW:
    """The step of an existing AdamW. The state remains the optimizer's."""

    def __init__(self, optimizer: torch.optim.Optimizer, copies: Mapping[Tensor, Tensor], max_norm: float) -> None:
        """`copies` in bf16 or fp32 are kept of some weights. Rates are tensors on the device of the weights."""
        self._max_norm = max_norm
        self.weights: list[Tensor] = []
        self._stateless: list[Tensor] = []
        groups: list[dict[str, Any]] = []
        for group in optimizer.param_groups:
            for weight in group["params"]:
                if weight in optimizer.state:
                    self.weights.append(weight)
                    groups.append(group)
                else:
                    self._stateless.append(weight)
        self._betas, self._epsilon = optimizer.param_groups[-1]["betas"], optimizer.param_groups[-1]["eps"]
        device = self.weights[0].device
        self._firsts, self._seconds = self._adopt([optimizer.state[weight] for weight in self.weights], device)
        self._rates, self._copies = [group["lr"] for group in groups], [copies.get(weight) for weight in self.weights]
        self._half = any(copy is not None and copy.dtype == torch.bfloat16 for copy in self._copies)
        tables = (self.weights, self._firsts, self._seconds, self._copies, self._rates)  # none of them to be freed
        self._tables = [_addresses(table).to(device) for table in tables]
        self._decays = torch.tensor([group["weight_decay"] for group in groups], device=device, dtype=torch.float32)
        self._corrections = torch.empty(2, len(groups), device=device)
        self._logarithms = torch.tensor([math.log(beta) for beta in self._betas], device=device, dtype=torch.float64)
        self._cut(device)

    def _cut(self, device: torch.device) -> None:
        """Cut every weight into pieces, one for each program."""
        sizes = [weight.numel() for weight in self.weights]
        self._sizes = torch.tensor(sizes, device=device)
        pieces = [(owner, begin) for owner, size in enumerate(sizes) for begin in range(0, size, PIECE)]
        self._owners, self._begins = torch.tensor(pieces, device=device).t().contiguous()
        self._sums = torch.empty(len(pieces), device=device)

    def _adopt(self, states: list[dict[str, Tensor]], device: torch.device) -> tuple[list[Tensor], list[Tensor]]:
        """The moments of all weights; their counts of steps become parts of one tensor."""
        self._steps = torch.stack([state["step"] for state in states]).to(device, torch.float32)
        for state, step in zip(states, self._steps, strict=True):
            state["step"] = step
        return [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]

    @property
    def fits(self) -> bool:
        """Whether the kernels support these weights and copies."""
        copied = torch.bfloat16 if self._half else torch.float32
        return all(map(_fits, (*self.weights, *self._firsts, *self._seconds))) and all(
            copy is None or _fits(copy, copied) for copy in self._copies
        )

    def table(self) -> Tensor:
        """Room for the addresses of gradients."""
        return torch.zeros(len(self.weights), device=self._sums.device, dtype=torch.int64)

    def gradients(self) -> Tensor | None:
        """Where they are now, on the CPU; None where a weight without state has one, or one is not as the kernels take it."""
        if any(weight.grad is not None for weight in self._stateless):
            return None
        found = [weight.grad for weight in self.weights]
        return _addresses(found) if all(each is None or _fits(each) for each in found) else None

    def __call__(self, table: Tensor) -> Tensor:
        """Take a step with the gradients at these addresses; returns their norm."""
        told = torch.empty(2, device=table.device)
        weights, firsts, seconds, copies, rates = self._tables
        count, pieces = len(self.weights), len(self._owners)
        _squares[(pieces,)](table, self._sizes, self._owners, self._begins, self._sums, PIECE=PIECE, BLOCK=BLOCK)
        _prepare[(1,)](
            table, self._sums, self._steps, self._logarithms, told, self._corrections, pieces, count, self._max_norm,
            BLOCK=1024, ALL=triton.next_power_of_2(count),
        )  # fmt: skip
        _update[(pieces,)](
            table, weights, firsts, seconds, copies, self._sizes, rates, self._decays, told, self._corrections, self._owners,
            self._begins, count, self._epsilon, BETA1=self._betas[0], BETA2=self._betas[1], PIECE=PIECE, BLOCK=BLOCK,
            HALF=self._half,
        )  # fmt: skip
        return told[0]


def _fits(tensor: Tensor, dtype: torch.dtype = torch.float32) -> bool:
    return tensor.is_contiguous() and tensor.dtype == dtype and tensor.data_ptr() % _ALIGNED == 0


def _addresses(tensors: list[Tensor] | list[Tensor | None]) -> Tensor:
    return torch.tensor([0 if tensor is None else tensor.data_ptr() for tensor in tensors], dtype=torch.int64)
