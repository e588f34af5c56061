"""The softmax head: standardise the hidden states, drop out, and one linear layer.

Encoders differ by an order of magnitude in the size of their hidden states, and a plain linear layer at the encoder's learning
rate hardly moves on small ones. So the head sees hidden states that are centred and scaled with fixed statistics of the
labelled data. Being affine, that step folds into the linear layer when the tagger is saved: what is saved is an ordinary
classifier.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SoftmaxHead(nn.Module):
    mean: Tensor
    scale: Tensor

    def __init__(self, hidden: int, labels: int, dropout: float, seed: int = 0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(hidden))
        self.register_buffer("scale", torch.ones(hidden))
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden, labels)
        with torch.no_grad():
            self.linear.weight.normal_(0.0, 0.02, generator=torch.Generator().manual_seed(seed))
            self.linear.bias.zero_()

    def standardise(self, mean: Tensor, spread: float) -> None:
        """Fix the centre of every feature (H,) and the scale that all share.

        States that do not differ, such as that of a single word, have no scale: they are left as they are.
        """
        if spread > 1e-6:
            self.mean.copy_(mean)
            self.scale.fill_(1.0 / spread)

    def forward(self, hidden: Tensor) -> Tensor:
        """Hidden states (..., H) -> log probabilities (..., C)."""
        return self._scored(self.dropout((hidden - self.mean) * self.scale))

    def without_dropout(self, hidden: Tensor) -> Tensor:
        """The same with no dropout here, whatever the mode: for predictions that are to be compared with one another."""
        return self._scored((hidden - self.mean) * self.scale)

    def _scored(self, states: Tensor) -> Tensor:
        return torch.log_softmax(self.linear(states).float(), dim=-1)

    def folded(self) -> nn.Linear:
        """The one linear layer that gives the same scores from plain hidden states."""
        plain = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            weight = self.linear.weight.double() * self.scale.double()
            plain.weight.copy_(weight)
            plain.bias.copy_(self.linear.bias.double() - weight @ self.mean.double())
        return plain.to(self.linear.weight.device)

    def unfold(self, plain: nn.Linear) -> None:
        """Take over a saved classifier: no standardisation, the same scores."""
        with torch.no_grad():
            self.mean.zero_()
            self.scale.fill_(1.0)
            self.linear.weight.copy_(plain.weight)
            self.linear.bias.copy_(plain.bias)
