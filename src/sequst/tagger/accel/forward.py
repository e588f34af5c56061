"""The fastest forward without gradients that encoder and machine allow."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sequst.tagger.accel.cpu_forward import CpuForward
from sequst.tagger.accel.layers import Layers
from sequst.tagger.batches import Batch
from sequst.tagger.heads import Decoded
from sequst.tagger.precision import has_bf16
from sequst.tagger.tagger import Tagger

if TYPE_CHECKING:
    from sequst.tagger.accel.varlen_forward import VarlenForward


_PADDING = 4
"""How often the padding of a CPU's batch, which only attention sees, may be as much as its sub-words."""


class Forward:
    """Batches through a tagger in evaluation mode, without gradients."""

    def __init__(self, tagger: Tagger, keep: bool = False) -> None:
        """With `keep` what is made of the weights is there for the next forward of this tagger, as long as they stay as they
        are: for few sentences again and again, it takes longer to make than they do. A change through `.data` goes unseen."""
        self._tagger, self.kept = tagger, keep
        self.cpu: CpuForward | None = None
        self.varlen: VarlenForward | None = None
        dtype = _dtype_of_products() if tagger.device.type == "cpu" else None
        if keep and dtype is not None:
            self.cpu = _kept(tagger, dtype)
            return
        known = None if tagger.training else Layers.of(tagger.encoder)
        if known is not None and tagger.device.type != "cpu":
            from sequst.tagger.accel.varlen_forward import VarlenForward

            self.varlen = VarlenForward.of(known)
        elif known is not None and dtype is not None:
            self.cpu = CpuForward(known, dtype)

    @property
    def token_budget(self) -> int:
        """Sub-words in a batch: enough to fill the machine, few enough to stay in the caches of a CPU."""
        if self._tagger.device.type != "cpu":
            return 16384 if self.varlen is not None else 65536
        return self.cpu.token_budget if self.cpu is not None else 1024

    @property
    def padded_budget(self) -> int:
        """Sub-words and padding in a batch."""
        return self.token_budget * (_PADDING if self.cpu is not None else 1)

    @property
    def chunk(self) -> int | None:
        """Sentences to be cut into sub-words at a time, none for all: a GPU computes the first while the CPU cuts the next.
        Where batches are padded, all are sorted by length."""
        return 2048 if self.varlen is not None else None

    def hidden(self, batch: Batch) -> Tensor:
        """(B, W, H): the state of every word."""
        if self.varlen is not None:
            return self.varlen.hidden(batch)
        if self.cpu is not None:
            return self.cpu.finish(self.cpu.begin(batch))
        return self._tagger.hidden(batch)

    def decode(self, batch: Batch) -> Decoded:
        head = self._tagger.head
        return head.decode(head.scores(self.hidden(batch)), batch.rows)


_State = tuple[Any, ...]
_forwards: weakref.WeakKeyDictionary[Tagger, dict[torch.dtype, tuple[_State, CpuForward | None]]] = weakref.WeakKeyDictionary()


def _kept(tagger: Tagger, dtype: torch.dtype) -> CpuForward | None:
    """The forward of weights as they are now; None for an encoder that has none."""
    state = tuple((weight.data_ptr(), weight._version) for weight in tagger.encoder.parameters())
    forwards = _forwards.setdefault(tagger, {})
    if dtype not in forwards or forwards[dtype][0] != state:
        known = Layers.of(tagger.encoder)
        forwards[dtype] = state, None if known is None else CpuForward(known, dtype)
        if (made := forwards[dtype][1]) is not None:
            made.lay_out()
    return forwards[dtype][1]


def _dtype_of_products() -> torch.dtype | None:
    """On the CPU, in this thread; none for a precision that it has no instructions for, which torch's own forward emulates."""
    if not torch.is_autocast_enabled("cpu"):
        return torch.float32
    asked = torch.get_autocast_dtype("cpu")
    return asked if asked == torch.bfloat16 and has_bf16(torch.device("cpu")) else None


@contextlib.contextmanager
def forward_of(tagger: Tagger, keep: bool = False) -> Iterator[Forward]:
    """Context with the tagger in evaluation mode. `keep`: see `Forward`."""
    if not tagger.training:  # all of it, but for who is in between: there is a lot of it to be told
        yield Forward(tagger, keep)
        return
    tagger.eval()
    try:
        yield Forward(tagger, keep)
    finally:
        tagger.train()
