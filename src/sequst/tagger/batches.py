"""Windows -> batches of tensors; `planning` says which windows go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from sequst.tagger.planning import padded
from sequst.tagger.windows import Window

PerWord = Sequence[Any] | NDArray[Any]
"""A value for each word of a sentence."""
IGNORED = -100
"""Label of words that do not count in a loss: padding, and words that another window owns."""


class Rows(NamedTuple):
    """Facts about the rows of a batch that a head needs."""

    words: Tensor  # (B, W) true where there is a word
    opens: Tensor  # (B,) true where the row begins with the first word of its sentence
    written: Tensor | None = None  # (B, W) the way in which each word is written, where that is to count: see capitals.py

    def repeated(self, copies: int) -> Rows:
        """The rows, repeated."""
        written = None if self.written is None else self.written.repeat(copies, 1)
        return Rows(self.words.repeat(copies, 1), self.opens.repeat(copies), written)


@dataclass(frozen=True)
class Batch:
    """B windows padded to the longest: L sub-words, W words."""

    input_ids: Tensor  # (B, L)
    attention_mask: Tensor  # (B, L)
    heads: Tensor  # (B, W) place of each word's first sub-word
    word_mask: Tensor  # (B, W) true where there is a word
    owned: Tensor  # (B, W) true where this window decides the word's tag
    labels: Tensor | None  # (B, W) label, IGNORED where not owned
    selected: Tensor  # (B, W) true where an owned word counts for the loss
    opens: Tensor  # (B,) true where a window begins its sentence
    windows: list[int]  # which windows these are
    lengths: list[int]  # words of each row
    sizes: list[int]  # sub-words of each row
    places: Tensor  # (N,) where the owned words are in a flat batch: row x W + word
    spelling: Tensor | None = None  # (B, W, M) characters of each word, 0 where there is none
    written: Tensor | None = None  # (B, W) the way in which each word is written, where that is to count
    weights: Tensor | None = None  # (B, W) how much the loss of a word counts; None where all count alike

    @property
    def rows(self) -> Rows:
        return Rows(self.word_mask, self.opens, self.written)

    def owned_of(self, values: Tensor) -> Tensor:
        """(N, ...): those of the owned words, row by row, from values of all words (B, W, ...); no GPU is waited for."""
        return values.flatten(0, 1)[self.places]

    def padded(self, rows: int, length: int, pad: int) -> Batch:
        """Padded to at least this many rows, sub-words and words. An added row has one word, which is not owned."""
        assert self.spelling is None
        assert self.written is None, "only what is learnt from is padded"
        more, longer = max(0, rows - len(self.input_ids)), max(0, length - self.input_ids.shape[1])
        wider = max(0, length - self.heads.shape[1])

        def grown(x: Tensor, by: int, value: float = 0) -> Tensor:
            return F.pad(x, (0, by, 0, more), value=value)

        mask, words = grown(self.attention_mask, longer), grown(self.word_mask, wider)
        owned = grown(self.owned, wider)
        if more:
            mask[-more:, 0], words[-more:, 0] = 1, True
        return replace(
            self,
            input_ids=grown(self.input_ids, longer, pad),
            attention_mask=mask,
            heads=grown(self.heads, wider),
            word_mask=words,
            owned=owned,
            labels=None if self.labels is None else grown(self.labels, wider, IGNORED),
            selected=grown(self.selected, wider),
            weights=None if self.weights is None else grown(self.weights, wider),
            opens=F.pad(self.opens, (0, more), value=True),
            lengths=[*self.lengths, *[1] * more],
            sizes=[*self.sizes, *[1] * more],
            places=owned.flatten().nonzero().flatten(),
        )

    def fill(self, other: Batch) -> None:
        """Copy another batch of the same shape into the memory of this one. `places` are kept."""
        for name, mine in self._tensors.items():
            if name != "places":
                new = getattr(other, name)
                mine.copy_(new.pin_memory() if mine.is_cuda else new, non_blocking=True)

    @property
    def _tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def to(self, device: torch.device) -> Batch:
        there: dict[str, Any] = {name: moved(each, device) for name, each in self._tensors.items()}
        return replace(self, **there)


def moved(x: Tensor, device: torch.device) -> Tensor:
    """The batch on the device. Copying to a GPU does not block."""
    return x.pin_memory().to(device, non_blocking=True) if device.type == "cuda" and not x.is_cuda else x.to(device)


def collate(
    windows: Sequence[Window],
    rows: list[int],
    pad: int,
    labels: Sequence[PerWord] | None = None,
    selected: Sequence[PerWord] | None = None,
    weights: Sequence[PerWord] | None = None,
    written: Sequence[list[int]] | None = None,
) -> Batch:
    """The batch of these rows of `windows`. `labels`, `selected`, `weights` and how words are `written` are per sentence;
    without `selected` all words count."""
    chosen = [windows[i] for i in rows]
    lengths = [len(window.heads) for window in chosen]
    input_ids, there = padded([window.ids for window in chosen], pad)
    heads, word_mask = padded([window.heads for window in chosen], 0)
    starts, ends = np.array([window.owned for window in chosen]).T[..., None]
    places = np.arange(heads.shape[1])
    owned = (starts <= places) & (places < ends)

    def of_owned(values: Sequence[PerWord], elsewhere: Tensor) -> Tensor:
        for row, window in enumerate(chosen):
            start, end = window.owned
            elsewhere[row, start:end] = torch.as_tensor(values[window.sentence][window.first + start : window.first + end])
        return elsewhere

    return Batch(
        input_ids=torch.from_numpy(input_ids),
        attention_mask=torch.from_numpy(there.astype(np.int64)),
        heads=torch.from_numpy(heads),
        word_mask=torch.from_numpy(word_mask),
        owned=torch.from_numpy(owned),
        labels=None if labels is None else of_owned(labels, torch.full(heads.shape, IGNORED)),
        selected=torch.from_numpy(owned.copy())
        if selected is None
        else of_owned(selected, torch.zeros(heads.shape, dtype=torch.bool)),
        opens=torch.tensor([window.first == 0 for window in chosen]),
        windows=rows,
        lengths=lengths,
        sizes=[len(window.ids) for window in chosen],
        places=torch.from_numpy(np.flatnonzero(owned)),
        spelling=_spellings(chosen, word_mask),
        written=None if written is None else torch.from_numpy(padded([window.of(written) for window in chosen], 0)[0]),
        weights=None if weights is None else of_owned(weights, torch.zeros(heads.shape)),
    )


def _spellings(windows: list[Window], word_mask: NDArray[np.bool_]) -> Tensor | None:
    if windows[0].spelling is None:
        return None
    letters, _ = padded([word for window in windows for word in window.spelling or ()], 0)
    found = np.zeros((*word_mask.shape, letters.shape[1]), dtype=np.int64)
    found[word_mask] = letters
    return torch.from_numpy(found)
