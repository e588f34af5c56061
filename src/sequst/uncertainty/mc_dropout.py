"""MC dropout: a tagger with dropout on and nothing else changed; and repeatable dropout."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase


@contextlib.contextmanager
def mc_dropout(tagger: nn.Module, seed: int, parts: Iterable[nn.Module] | None = None) -> Iterator[None]:
    """Within it every pass draws its own dropout masks, those of attention included; the seed decides them. With `parts`, only
    these drop out.

    Fused attention takes its dropout as a number that its module passes on only in training mode, so switching on `nn.Dropout`
    alone would leave it off. Therefore every module is put into training mode but those that do something else there:
    normalisation with running statistics, and stacks that skip layers. Modes and the random state are restored, whatever
    happens.
    """
    modes = {module: module.training for module in tagger.modules()}
    dropping = modes.keys() if parts is None else {module for part in parts for module in part.modules()}
    try:
        for module in modes:
            plain = not isinstance(module, _NormBase) and not getattr(module, "layerdrop", 0.0)
            module.training = plain and module in dropping
        with same_dropout(tagger, seed):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextlib.contextmanager
def same_dropout(tagger: nn.Module, seed: int) -> Iterator[None]:
    """Context in which dropout draws the same masks for the same seed. The outer random stream is restored."""
    gpus = sorted({parameter.device.index or 0 for parameter in tagger.parameters() if parameter.device.type == "cuda"})
    with torch.random.fork_rng(devices=gpus):
        # not `torch.manual_seed`, which asks all kinds of devices, and writes the stack down for those that are not there
        for generator in (torch.default_generator, *(torch.cuda.default_generators[gpu] for gpu in gpus)):
            generator.manual_seed(seed)
        yield
