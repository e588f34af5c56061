"""Training steps as CUDA graphs: recorded once for every shape, then replayed.

A step of few sentences is a thousand small kernels, and the CPU takes longer to launch them than the GPU to run them. A CUDA
graph launches all at once. It needs fixed shapes, so batches are padded to a few.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from sequst.tagger.accel.fused_encoder import FusedEncoder
from sequst.tagger.batches import Batch, moved
from sequst.training.steps import MAX_GRADIENT_NORM, StepResult, Steps

if TYPE_CHECKING:
    from sequst.training.accel.adamw import FusedAdamW

log = logging.getLogger(__name__)

_PRECISIONS = {"no": torch.float32, "bf16": torch.bfloat16}


class _Recorded(NamedTuple):
    graph: torch.cuda.CUDAGraph
    batch: Batch
    result: StepResult
    table: Tensor | None
    """Where its gradients lie, for the kernels that go by it."""


class RecordedSteps(Steps):
    """Steps of few kernels, one CUDA graph for every shape of batch and key of the objective."""

    def __init__(self, *parts: Any, rows: int, tokens: int) -> None:
        """Batches have `rows` at most, and `tokens` sub-words with their padding."""
        super().__init__(*parts)
        self._rows, self._tokens = rows, tokens
        self._recorded: dict[Any, _Recorded] = {}
        self._seen: set[Any] = set()
        self._pool = torch.cuda.graph_pool_handle()
        self._works, self._settled = True, False
        self._fused: FusedAdamW | None = None
        self._states = 0
        self._table: Tensor | None = None
        self._addresses: Tensor | None = None
        precision = _PRECISIONS.get("no" if self._objective.needs_fp32 else self._accelerator.mixed_precision)
        self._encoder = None if precision is None else FusedEncoder.of(self._tagger.encoder, precision)
        self._know_state()

    def take(self, batch: Batch) -> StepResult:
        if (own := self._objective.graph_key()) is None:
            return super().take(batch)
        batch = self._padded(batch)
        key = (batch.input_ids.shape, own)
        if not self._works or key not in self._seen:  # the first may build kernels and state, which no recording can
            taken = super().take(batch)
            if self._settled:
                self._seen.add(key)
            return taken
        if key not in self._recorded:
            try:
                self._recorded[key] = self._record(batch.to(self._tagger.device))
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                torch.cuda.synchronize()  # an error that is not the recording's own comes again
                log.warning("training continues without CUDA graphs: %s", str(error).splitlines()[0])
                self._works = False
                self._recorded.clear()
                self._optimizer.zero_grad(set_to_none=True)  # what a recording left there was never computed
                return super().take(batch)
        else:
            self._recorded[key].batch.fill(batch)
        graph, _, result, _ = self._recorded[key]
        graph.replay()
        return result._replace(values=result.values.clone())  # the next replay writes over them

    def _take(self, batch: Batch) -> StepResult:
        with self._encoder or contextlib.nullcontext():
            return super()._take(batch)

    def _padded(self, batch: Batch) -> Batch:
        """To one of a few shapes. Something is always padding: without any, transformers takes another way when it is not
        recorded, and a run that was resumed would not end as it would have."""
        length = min(rounded(batch.input_ids.shape[1]), self._tagger.max_length)
        rows = max(len(batch.sizes), min(self._rows, self._tokens // length))
        full = len(batch.sizes) >= rows and min(batch.sizes) >= length
        return batch.padded(rows + full, length, self._tagger.pad_id)

    def _update(self) -> Tensor:
        """With few kernels, where they know the state of every weight that has a gradient; the first step makes it."""
        addresses = None if self._fused is None else self._fused.gradients()
        if self._fused is None or addresses is None:
            before = self._fused
            norm = super()._update()
            if self._encoder is not None:
                self._encoder.refresh()
            self._know_state()
            self._settled = self._fused is before  # else the next step goes by kernels that are not built yet
            return norm
        self._settled = True
        if torch.cuda.is_current_stream_capturing():
            self._addresses = addresses  # nothing can be sent while a step is recorded
        else:
            self._table = moved(addresses, self._tagger.device)
        assert self._table is not None
        return self._fused(self._table)

    def _know_state(self) -> None:
        """Let the kernels know of the optimizer's state, when there is more of it than before."""
        if self._encoder is None or len(self._optimizer.state) == self._states:
            return
        from sequst.training.accel.adamw import FusedAdamW

        self._states = len(self._optimizer.state)
        fused = FusedAdamW(self._optimizer, self._encoder.copies, MAX_GRADIENT_NORM)
        self._fused = fused if fused.fits else None
        self._recorded.clear()  # they count steps where nobody looks any more
        self._seen.clear()  # what goes by this state may need kernels that are not built yet
        self._pool = torch.cuda.graph_pool_handle()  # the last one went with them

    def _record(self, batch: Batch) -> _Recorded:
        graph = torch.cuda.CUDAGraph()
        generators = [torch.cuda.default_generators[self._tagger.device.index or 0], self._objective.generator]
        before = [generator.clone_state() for generator in generators]
        graph.register_generator_state(self._objective.generator)
        self._table = table = None if self._fused is None else self._fused.table()
        stream = _stream(self._tagger.device)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            try:
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    taken = self._take(batch)
                finally:
                    graph.capture_end()
            except RuntimeError:
                for generator, state in zip(generators, before, strict=True):
                    generator.graphsafe_set_state(state)  # one that a recording was broken off with draws no more
                raise
        torch.cuda.current_stream().wait_stream(stream)
        if table is not None and self._addresses is not None:
            table.copy_(self._addresses)
            self._addresses = None
        return _Recorded(graph, batch, taken, table)


@functools.cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """The stream that steps are recorded on. One for all phases: libraries reserve memory for every stream."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def rounded(length: int) -> int:
    """The length to pad to, one of a few: recording a step takes as long as ten steps, padding hardly any time."""
    return next((bound for bound in (16, 24, 32, 48) if length <= bound), -(-length // 64) * 64)
