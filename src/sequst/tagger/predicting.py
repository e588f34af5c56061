"""Sentences in, tags and entities out: sorted into full batches, streamed in chunks, in the order they came."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from sequst.corpus.plain import sentence_from_text
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans
from sequst.errors import UsageError, shorten
from sequst.tagger.batches import Batch, collate, plan
from sequst.tagger.cores import on_all_cores
from sequst.tagger.forward import forward_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequst.tagger.tagger import Tagger

CHUNK = 2048
"""Sentences held at once when streaming; batches are sorted by length within a chunk."""

SHAPES = (
    "a text (str), the words of one sentence (a list or tuple of strings without spaces), a Sentence, "
    "or a list of texts, of lists of words or of Sentences"
)


class Entity(NamedTuple):
    """Words start to end (exclusive) of a sentence, their text, and how sure the tagger is of the least sure of them."""

    type: str
    start: int
    end: int
    text: str
    confidence: float


@dataclass(frozen=True)
class Prediction:
    """The tags of a sentence, the probability of each, and the entities read from them leniently."""

    sentence: Sentence
    tags: tuple[str, ...]
    confidences: tuple[float, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return self.sentence.words

    @property
    def entities(self) -> list[Entity]:
        return [
            Entity(type_, start, end, self.sentence.excerpt(start, end), min(self.confidences[start:end]))
            for type_, start, end in spans(self.tags)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `sequst predict` writes; character offsets are null where the input was words."""
        offsets = self.sentence.offsets
        return {
            "id": self.sentence.id,
            "words": list(self.words),
            "tags": list(self.tags),
            "entities": [
                {
                    "type": entity.type,
                    "start": entity.start,
                    "end": entity.end,
                    "start_char": offsets[entity.start][0] if offsets is not None else None,
                    "end_char": offsets[entity.end - 1][1] if offsets is not None else None,
                    "text": entity.text,
                    "confidence": round(entity.confidence, 6),
                }
                for entity in self.entities
            ],
        }


class WordLabels(NamedTuple):
    """For all words of some sentences, one after the other: the label and its probability."""

    labels: NDArray[np.int64]
    confidences: NDArray[np.float32]
    starts: NDArray[np.int64]
    """Where each sentence begins, and the end of the last."""


class Words:
    """All words of some sentences, cut into windows once, to be passed through the tagger as often as needed."""

    def __init__(self, tagger: Tagger, sentences: Sequence[Sentence]) -> None:
        self.starts = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
        self._tagger = tagger
        self._windows = tagger.splitter.windows([s.words for s in sentences])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def batches(self, max_tokens: int) -> Iterator[tuple[Batch, NDArray[np.int64]]]:
        """(batch, the place among all words of each word that it owns, in the order of `batch.owned`)."""
        lengths = [len(window.ids) for window in self._windows]
        firsts = np.array([self.starts[window.sentence] + window.first for window in self._windows], dtype=np.int64)
        for rows in plan(lengths, max_rows=len(lengths) or 1, max_tokens=max_tokens):
            batch = collate(self._windows, rows, self._tagger.pad_id)
            owned = batch.owned.numpy()
            places = (firsts[rows, None] + np.arange(owned.shape[1]))[owned]
            yield batch.to(self._tagger.device), places


@torch.inference_mode()
def label_words(tagger: Tagger, sentences: Sequence[Sentence]) -> WordLabels:
    """Every word's label, each from the window that owns it."""
    words = Words(tagger, sentences)
    labels = np.zeros(len(words), dtype=np.int64)
    confidences = np.zeros(len(words), dtype=np.float32)
    with forward_of(tagger) as forward:

        def label(item: tuple[Batch, NDArray[np.int64]]) -> None:
            batch, places = item
            decoded = forward.decode(batch)
            labels[places] = decoded.labels[batch.owned].cpu().numpy()
            confidences[places] = decoded.confidences[batch.owned].float().cpu().numpy()

        for _ in on_all_cores(tagger, forward, label, words.batches(forward.token_budget)):
            pass
    return WordLabels(labels, confidences, words.starts)


def annotate(tagger: Tagger, sentences: Iterable[Sentence], chunk: int = CHUNK) -> Iterator[Prediction]:
    """Predictions one by one, in order; holds `chunk` sentences at a time."""
    stream = iter(sentences)
    while held := list(itertools.islice(stream, chunk)):
        found = label_words(tagger, held)
        tags = [tagger.labels[label] for label in found.labels.tolist()]
        confidences = found.confidences.tolist()
        for sentence, (start, end) in zip(held, itertools.pairwise(found.starts.tolist()), strict=True):
            yield Prediction(sentence, tuple(tags[start:end]), tuple(confidences[start:end]))


def as_sentences(inputs: Any) -> tuple[list[Sentence], bool]:
    """(sentences, whether the input was a single one).

    A list of strings is one sentence of words where none of them holds white space, and a list of texts otherwise; a list of
    lists of words, or `Sentence` objects, leave no doubt.
    """
    if isinstance(inputs, str | tuple | Sentence) or _is_words(inputs):
        return [_as_sentence(inputs, 1)], True
    if isinstance(inputs, list):
        return [_as_sentence(item, i) for i, item in enumerate(inputs, 1)], False
    raise UsageError(f"cannot tag {shorten(inputs)}; give {SHAPES}")


def _as_sentence(item: Any, id_: int) -> Sentence:
    if isinstance(item, Sentence):
        return item
    if isinstance(item, str):
        return sentence_from_text(item, id_)
    if isinstance(item, list | tuple) and all(isinstance(word, str) and word for word in item):
        return Sentence(tuple(item), None, id_)
    raise UsageError(f"cannot tag {shorten(item)}; give {SHAPES}")


def _is_words(inputs: Any) -> bool:
    return (
        isinstance(inputs, list)
        and bool(inputs)
        and all(isinstance(word, str) and word and not any(map(str.isspace, word)) for word in inputs)
    )
