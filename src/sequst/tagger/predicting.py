"""Sentences in, tags and entities out: sorted into full batches, streamed in chunks, in the order they came."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sequst.corpus.plain import sentence_from_text
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans
from sequst.errors import UsageError, shorten
from sequst.tagger.batches import Batch, collate, plan
from sequst.tagger.cores import on_all_cores
from sequst.tagger.forward import forward_of
from sequst.tagger.trust import AS_IT_IS, Trust

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequst.tagger.tagger import Tagger

CHUNK = 4096
"""Sentences held at once when streaming; batches are sorted by length within a chunk."""

SHAPES = (
    "a text (str), the words of one sentence (a list or tuple of strings without spaces), a Sentence, "
    "or a list of texts, of lists of words or of Sentences"
)


class Entity(NamedTuple):
    """Words start to end (exclusive) of a sentence, their text, and how likely the tagger thinks it is right."""

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
    trust: Trust = AS_IT_IS
    """What the confidence of an entity is made with."""

    @property
    def words(self) -> tuple[str, ...]:
        return self.sentence.words

    @property
    def entities(self) -> list[Entity]:
        return [
            Entity(type_, start, end, self.sentence.excerpt(start, end), self.trust.confidence(self.confidences[start:end]))
            for type_, start, end in spans(self.tags)
        ]

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from sequst.tagger.drawing import html

        return html(self)

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
    """All words of some sentences, one after the other."""

    def __init__(self, tagger: Tagger, sentences: Sequence[Sentence]) -> None:
        self.starts = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
        self._tagger, self._sentences = tagger, sentences

    def __len__(self) -> int:
        return int(self.starts[-1])

    def batches(self, max_tokens: int, chunk: int | None = None) -> Iterator[tuple[Batch, NDArray[np.int64]]]:
        """(batch, the place among all words of each word that it owns, in the order of `batch.owned`), sorted by length among
        `chunk` sentences, or all."""
        for begin in range(0, len(self._sentences), chunk or max(1, len(self._sentences))):
            some = self._sentences[begin : begin + chunk] if chunk else self._sentences
            windows = self._tagger.splitter.windows([sentence.words for sentence in some])
            lengths = [len(window.ids) for window in windows]
            firsts = np.array([self.starts[begin + window.sentence] + window.first for window in windows], dtype=np.int64)
            for rows in plan(lengths, max_rows=len(lengths) or 1, max_tokens=max_tokens):
                batch = collate(windows, rows, self._tagger.pad_id)
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
def label_words(tagger: Tagger, sentences: Sequence[Sentence]) -> WordLabels:
    """Every word's label, each from the window that owns it."""
    words = Words(tagger, sentences)
    found = Gathered(len(words))
    with forward_of(tagger) as forward:

        def label(item: tuple[Batch, NDArray[np.int64]]) -> tuple[NDArray[np.int64], dict[str, Tensor | None]]:
            batch, places = item
            decoded = forward.decode(batch)
            return places, {
                "labels": batch.owned_of(decoded.labels),
                "confidences": batch.owned_of(decoded.confidences).float(),
            }

        for places, values in on_all_cores(tagger, forward, label, words.batches(forward.token_budget, forward.chunk)):
            found.add(places, values)
    arrays = found.arrays({"labels": np.zeros(0, dtype=np.int64), "confidences": np.zeros(0, dtype=np.float32)})
    return WordLabels(arrays["labels"], arrays["confidences"], words.starts)


def annotate(tagger: Tagger, sentences: Iterable[Sentence], chunk: int = CHUNK) -> Iterator[Prediction]:
    """Predictions one by one, in order; holds `chunk` sentences at a time."""
    stream = iter(sentences)
    while held := list(itertools.islice(stream, chunk)):
        found = label_words(tagger, held)
        tags = [tagger.labels[label] for label in found.labels.tolist()]
        confidences = found.confidences.tolist()
        for sentence, (start, end) in zip(held, itertools.pairwise(found.starts.tolist()), strict=True):
            yield Prediction(sentence, tuple(tags[start:end]), tuple(confidences[start:end]), tagger.trust)


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
