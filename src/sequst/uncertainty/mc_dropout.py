"""MC dropout: a tagger with its dropout on, and nothing else changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase


@contextlib.contextmanager
def mc_dropout(tagger: nn.Module, seed: int) -> Iterator[None]:
    """Within it every pass draws its own dropout masks, those of attention included; the seed decides them.

    Fused attention takes its dropout as a number that its module passes on only in training mode, so switching on `nn.Dropout`
    alone would leave it off. Therefore every module is put into training mode but those that do something else there:
    normalisation with running statistics, and stacks that skip layers. Modes and the random state are restored, whatever
    happens.
    """
    modes = {module: module.training for module in tagger.modules()}
    devices = {p.device for p in tagger.parameters() if p.device.type == "cuda"}
    try:
        for module in modes:
            module.training = not isinstance(module, _NormBase) and not getattr(module, "layerdrop", 0.0)
        with torch.random.fork_rng(devices=[device.index or 0 for device in devices]):
            torch.manual_seed(seed)
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
