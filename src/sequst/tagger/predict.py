"""Predict sentences: batched by length, streamed in chunks, in input order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError
from sequst.tagger.accel.forward import forward_of
from sequst.tagger.accel.parallel import on_all_cores
from sequst.tagger.batches import Batch, collate
from sequst.tagger.capitals import ways_of
from sequst.tagger.planning import plan
from sequst.tagger.prediction import CHUNK, NOT_FINITE, Prediction

if TYPE_CHECKING:
    from sequst.tagger.tagger import Tagger


class WordLabels(NamedTuple):
    """For all words of some sentences, one after the other: the label and its probability."""

    labels: NDArray[np.int64]
    confidences: NDArray[np.float32]
    starts: NDArray[np.int64]
    """First word of each sentence, and the end of the last."""
    probabilities: NDArray[np.float32] | None = None
    """(N, C): of every label, where they were asked for."""


class Words:
    """All words of some sentences, one after the other."""

    def __init__(self, tagger: Tagger, sentences: Sequence[Sentence]) -> None:
        self.starts = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
        self._tagger, self._sentences = tagger, sentences

    def __len__(self) -> int:
        return int(self.starts[-1])

    def batches(
        self, max_tokens: int, chunk: int | None = None, max_padded: int | None = None
    ) -> Iterator[tuple[Batch, NDArray[np.int64]]]:
        """(batch, the place among all words of each word that it owns, in the order of `batch.owned`), sorted by length among
        `chunk` sentences, or all. `max_padded`: see `plan`."""
        for begin in range(0, len(self._sentences), chunk or max(1, len(self._sentences))):
            some = self._sentences[begin : begin + chunk] if chunk else self._sentences
            windows = self._tagger.splitter.windows([sentence.words for sentence in some])
            lengths = [len(window.ids) for window in windows]
            counts = self._tagger.head.capitals is not None
            written = [ways_of(sentence.words) for sentence in some] if counts else None
            firsts = np.array([self.starts[begin + window.sentence] + window.first for window in windows], dtype=np.int64)
            for rows in plan(lengths, max_rows=len(lengths) or 1, max_tokens=max_tokens, max_padded=max_padded):
                batch = collate(windows, rows, self._tagger.pad_id, written=written)
                owned = batch.owned.numpy()
                places = (firsts[rows, None] + np.arange(owned.shape[1]))[owned]
                yield batch.to(self._tagger.device), places


class Gathered:
    """What batches say of their words, brought into the order of all words; one transfer at the end, so that a GPU never waits
    for the batch that the CPU prepares next."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._places: list[NDArray[np.int64]] = []
        self._found: dict[str, list[Tensor]] = {}

    def add(self, places: NDArray[np.int64], values: Mapping[str, Tensor | None]) -> None:
        """(N, ...) of each; what is not known is left out."""
        self._places.append(places)
        for name, value in values.items():
            if value is not None:
                self._found.setdefault(name, []).append(value)

    def arrays(self, empty: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Those of all words; `empty` says what there is when there are none."""
        if not self._places:
            return dict(empty)
        back = np.empty(self._count, dtype=np.int64)
        back[np.concatenate(self._places)] = np.arange(self._count)
        return {name: torch.cat(values).cpu().numpy()[back] for name, values in self._found.items()}


@torch.inference_mode()
def label_words(
    tagger: Tagger, sentences: Sequence[Sentence], probabilities: bool = False, keep_forward: bool = False
) -> WordLabels:
    """The label of each word, from the window that owns it. With `probabilities`, also those of all labels. `keep_forward`: see
    `Forward`."""
    words = Words(tagger, sentences)
    found = Gathered(len(words))
    with forward_of(tagger, keep_forward) as forward:

        def label(item: tuple[Batch, NDArray[np.int64]]) -> tuple[NDArray[np.int64], dict[str, Tensor | None]]:
            batch, places = item
            decoded = forward.decode(batch)
            return places, {
                "labels": batch.owned_of(decoded.labels),
                "confidences": batch.owned_of(decoded.confidences).float(),
                "probabilities": batch.owned_of(decoded.log_probs).exp().float() if probabilities else None,
            }

        batches = words.batches(forward.token_budget, forward.chunk, forward.padded_budget)
        for places, values in on_all_cores(tagger, forward, label, batches):
            found.add(places, values)
    nothing: dict[str, NDArray[Any]] = {"labels": np.zeros(0, dtype=np.int64), "confidences": np.zeros(0, dtype=np.float32)}
    if probabilities:
        nothing["probabilities"] = np.zeros((0, len(tagger.labels)), dtype=np.float32)
    arrays = found.arrays(nothing)
    if not np.isfinite(arrays["confidences"]).all():
        raise SequstError(NOT_FINITE)
    return WordLabels(starts=words.starts, **arrays)


@torch.inference_mode()
def sentence_vectors(tagger: Tagger, sentences: Sequence[Sentence]) -> NDArray[np.float64]:
    """(N, H): of every sentence the mean state of its words, without dropout; 0 for one without words. States are added up
    batch by batch, never held all at once."""
    words = Words(tagger, sentences)
    lengths = np.diff(words.starts)
    owner = np.repeat(np.arange(len(sentences)), lengths)
    sums = np.zeros((len(sentences), tagger.encoder.width))
    with forward_of(tagger) as forward:

        def states(item: tuple[Batch, NDArray[np.int64]]) -> tuple[NDArray[np.int64], Tensor]:
            batch, places = item
            return places, batch.owned_of(forward.hidden(batch)).double()

        batches = words.batches(forward.token_budget, forward.chunk, forward.padded_budget)
        for places, found in on_all_cores(tagger, forward, states, batches):
            np.add.at(sums, owner[places], found.cpu().numpy())
    vectors: NDArray[np.float64] = sums / np.maximum(lengths, 1)[:, None]
    return vectors


def annotate(
    tagger: Tagger, sentences: Iterable[Sentence], chunk: int = CHUNK, keep_forward: bool = False
) -> Iterator[Prediction]:
    """Predictions one by one, in order; holds `chunk` sentences at a time. `keep_forward`: see `Forward`."""
    stream = iter(sentences)
    while held := list(itertools.islice(stream, chunk)):
        found = label_words(tagger, held, keep_forward=keep_forward)
        tags = [tagger.labels[label] for label in found.labels.tolist()]
        confidences = found.confidences.tolist()
        for sentence, (start, end) in zip(held, itertools.pairwise(found.starts.tolist()), strict=True):
            own, sure = tuple(tags[start:end]), tuple(confidences[start:end])
            yield Prediction(sentence, own, sure, tagger.entity_calibration).cut()
