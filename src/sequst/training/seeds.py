"""Seeds for every place, derived from one: a restarted phase draws the same numbers."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch


def derive(seed: int, *path: object) -> int:
    """The seed of a place, e.g. derive(12, round, 'teacher', 'epoch', 3); places do not share a stream."""
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def seed_everything(seed: int) -> None:
    """Set the generators that dropout and initialisation draw from."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # seeds every GPU as well
