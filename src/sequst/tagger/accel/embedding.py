"""Tables of embeddings: gradients that are the same every time on a GPU, and of a large table the rows alone that are in use.

torch's kernel for the gradient of a few thousand lookups writes over numbers that it still reads, and now and then a gradient
is wrong (pytorch/pytorch#187687). Lookups of fewer are not affected, and for more there is another kernel.

The gradient of a table is as large as the table, and so are AdamW's moments: half of a small encoder, and of a multilingual one
more, of which a phase of training has use for a tenth.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from sequst.tagger.encoders.base import Encoder

SAFE = 2 * 1024 - 32
"""The last thirty-two of the first thousand are read last: from so many lookups on they may be written over."""
MOST = 4096
"""Beyond it another kernel is taken; on some GPUs from 3,072 on."""
_FEW = 0.5
"""Above this fraction of used rows, train the whole table."""


class SafeEmbedding(nn.Embedding):
    """An embedding table that splits large lookups if a gradient is needed."""

    _whole: tuple[Tensor, Tensor] | None = None
    """While it is a part of a table: that table, and where each of its rows is in the part (V,); -1 where it is not."""

    def forward(self, input: Tensor) -> Tensor:
        if self._whole is None:
            return self._look(input)
        whole, rows = self._whole
        places = rows[input]
        if torch.is_grad_enabled():
            if not input.is_cuda and bool((places < 0).any()):  # on a GPU torch itself stops
                raise IndexError("a word to be learnt is none of the phase's: its objective reads more than the batch")
            return self._look(places)
        inside = F.embedding(places.clamp(min=0), self.weight)
        return torch.where((places >= 0).unsqueeze(-1), inside, F.embedding(input, whole))

    def _look(self, input: Tensor) -> Tensor:
        if input.is_cuda and torch.is_grad_enabled() and SAFE < input.numel() <= MOST:
            return self.in_parts(input)
        return super().forward(input)

    def in_parts(self, input: Tensor) -> Tensor:
        look = super().forward
        parts = input.flatten().chunk(-(-input.numel() // SAFE))
        return torch.cat([look(part) for part in parts]).view(*input.shape, self.embedding_dim)

    @contextlib.contextmanager
    def narrowed(self, rows: Tensor) -> Iterator[None]:
        """Within it these rows alone are its weight, to be learnt, saved and loaded; the others stay as they are. What looks up
        others is an error where a gradient is asked for, and else finds them."""
        whole, padding = self.weight, self.padding_idx
        places = torch.full((len(whole),), -1, device=whole.device)
        places[rows] = torch.arange(len(rows), device=whole.device)
        self.weight, self._whole = nn.Parameter(whole.detach()[rows], whole.requires_grad), (whole.detach(), places)
        if padding is not None:
            self.padding_idx = int(places[padding]) if places[padding] >= 0 else None
        try:
            yield
        finally:
            learnt = self.weight.detach()
            self.weight, self.padding_idx, self._whole = whole, padding, None
            with torch.no_grad():
                whole[rows] = learnt


def make_safe(model: nn.Module) -> None:
    """Let all its tables look up as `SafeEmbedding` does; what they hold stays as it is."""
    for module in model.modules():
        if type(module) is nn.Embedding:
            module.__class__ = SafeEmbedding


def trained_rows(encoder: Encoder, ids: Tensor) -> contextlib.AbstractContextManager[None]:
    """Within it only the word embeddings of these input ids are trained; learn from no others. Does nothing where most rows are
    used, or the table is shared with another part of the model."""
    model: Any = getattr(encoder, "model", None)
    table: Any = None if model is None else model.get_input_embeddings()
    weights = [weight for _, weight in encoder.named_parameters(remove_duplicate=False)]
    alone = isinstance(table, SafeEmbedding) and sum(weight is table.weight for weight in weights) == 1
    if not alone or not table.weight.requires_grad:
        return contextlib.nullcontext()
    always = [encoder.pad_id, encoder.mask_id] + ([] if table.padding_idx is None else [table.padding_idx])
    rows = torch.unique(torch.cat([ids, torch.tensor(always)]))
    rows = rows[rows < len(table.weight)]  # a tokenizer may know a mask that its encoder does not
    few = len(rows) <= _FEW * len(table.weight)
    return table.narrowed(rows.to(table.weight.device)) if few else contextlib.nullcontext()
