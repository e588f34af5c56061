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


class Forward:
    """Batches through a tagger in evaluation mode, without gradients."""

    def __init__(self, tagger: Tagger, keep: bool = False) -> None:
        """With `keep` what is made of the weights is there for the next forward of this tagger, as long as they stay as they
        are: for few sentences again and again, it takes longer to make than they do. A change through `.data` goes unseen."""
        self._tagger, self.kept = tagger, keep
        known = None if tagger.training else Layers.of(tagger.encoder)
        self.cpu: CpuForward | None = None
        self.varlen: VarlenForward | None = None
        if known is not None and tagger.device.type != "cpu":
            from sequst.tagger.accel.varlen_forward import VarlenForward

            self.varlen = VarlenForward.of(known)
        elif known is not None and (dtype := _dtype_of_products()) is not None:
            self.cpu = _kept(tagger, known, dtype) if keep else CpuForward(known, dtype)

    @property
    def token_budget(self) -> int:
        """Sub-words in a batch: enough to fill the machine, few enough to stay in the caches of a CPU."""
        if self._tagger.device.type != "cpu":
            return 16384 if self.varlen is not None else 65536
        return self.cpu.token_budget if self.cpu is not None else 1024

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
_forwards: weakref.WeakKeyDictionary[Tagger, dict[torch.dtype, tuple[_State, CpuForward]]] = weakref.WeakKeyDictionary()


def _kept(tagger: Tagger, known: Layers, dtype: torch.dtype) -> CpuForward:
    """The forward of weights as they are now."""
    state = tuple((weight.data_ptr(), weight._version) for weight in tagger.encoder.parameters())
    forwards = _forwards.setdefault(tagger, {})
    if dtype not in forwards or forwards[dtype][0] != state:
        forwards[dtype] = state, CpuForward(known, dtype)
        forwards[dtype][1].lay_out()
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
    was_training = tagger.training
    tagger.eval()
    try:
        yield Forward(tagger, keep)
    finally:
        tagger.train(was_training)
