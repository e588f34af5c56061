"""Cross-entropy of the words that count."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from sequst.tagger.batches import IGNORED


def cross_entropy(log_probs: Tensor, labels: Tensor) -> Tensor:
    """The mean of -log p(label) over the words whose label is not IGNORED; 0 where there is none.

    log_probs (B, W, C), labels (B, W).
    """
    total = F.nll_loss(log_probs.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / (labels != IGNORED).sum().clamp(min=1)
