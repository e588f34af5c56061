"""Inputs and predictions of a tagger. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from sequst.corpus.sentence import Sentence, require_short, require_text, sentence_from_text
from sequst.corpus.tags import OUTSIDE, spans
from sequst.errors import Malformed, UsageError, shorten
from sequst.tagger.entity_calibration import UNCALIBRATED, EntityCalibration

CHUNK = 4096
"""Sentences held at once when streaming; batches are sorted by length within a chunk."""
NOT_FINITE = "the scores of the tagger are not finite: its weights are damaged; train it again"
NO_RAW_TAGS = "the tags of a CRF are the best path over all words of a sentence: it has no raw ones"

SHAPES = (
    "a text (str), the words of one sentence (a list or tuple of strings without spaces), a Sentence, "
    "or a list of texts, of lists of words or of Sentences"
)


def trial_sentence(max_length: int) -> Sentence:
    """Words of many kinds, as many as fill a window: a model that cannot tag them is refused when it is loaded."""
    words = ("a", "Oslo", "\u00e9\u00df", "\u4e2d", "\u2603", "1,000.5", "\U0001f44d", "!")
    return Sentence(words * (min(max_length, 512) // len(words) + 1))


class Entity(NamedTuple):
    """An entity: words start to end (exclusive), their text, and the confidence that it is right."""

    type: str
    start: int
    end: int
    text: str
    confidence: float


@dataclass(frozen=True)
class Prediction:
    """The tags of a sentence with their probabilities, and its entities."""

    sentence: Sentence
    tags: tuple[str, ...]
    confidences: tuple[float, ...]
    entity_calibration: EntityCalibration = UNCALIBRATED
    """Maps the probabilities of an entity's words to its confidence."""
    left_out: tuple[Entity, ...] = ()
    """Entities below the confidence cut. Their words are tagged O."""

    def cut(self) -> Self:
        """Without the entities below the threshold of its calibration, which are left out: their words are tagged O. The
        probability of O is then at most that of not being the tag, which is what stands for it."""
        threshold = self.entity_calibration.threshold
        left_out = tuple(entity for entity in self.entities if entity.confidence < threshold) if threshold > 0 else ()
        if not left_out:
            return self
        kept, sure = list(self.tags), list(self.confidences)
        for entity in left_out:
            for word in range(entity.start, entity.end):
                kept[word], sure[word] = OUTSIDE, 1.0 - sure[word]
        return replace(self, tags=tuple(kept), confidences=tuple(sure), left_out=left_out)

    @property
    def words(self) -> tuple[str, ...]:
        return self.sentence.words

    @property
    def entities(self) -> list[Entity]:
        confidence, text = self.entity_calibration.confidence, self.sentence.excerpt
        return [
            Entity(type_, start, end, text(start, end), confidence(self.confidences[start:end], type_))
            for type_, start, end in spans(self.tags)
        ]

    def as_task(self) -> tuple[Sentence, list[float]]:
        """The sentence with these tags, and the confidence of each entity, as annotation tools take them."""
        return replace(self.sentence, tags=self.tags), [round(entity.confidence, 6) for entity in self.entities]

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        from sequst.tagger.html import html

        return html(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `sequst predict` writes; character offsets are null where the input was words. Of a tagger that
        leaves entities out, these stand in a list of their own."""
        record: dict[str, Any] = {
            "id": self.sentence.id,
            "words": list(self.words),
            "tags": list(self.tags),
            "entities": [self._told(entity) for entity in self.entities],
        }
        if self.entity_calibration.threshold > 0:
            record["left_out"] = [self._told(entity) for entity in self.left_out]
        return record

    def _told(self, entity: Entity) -> dict[str, Any]:
        offsets = self.sentence.offsets
        return {
            "type": entity.type,
            "start": entity.start,
            "end": entity.end,
            "start_char": None if offsets is None else offsets[entity.start][0],
            "end_char": None if offsets is None else offsets[entity.end - 1][1],
            "text": entity.text,
            "confidence": round(entity.confidence, 6),
        }


def as_sentences(inputs: Any) -> tuple[list[Sentence], bool]:
    """(sentences, whether the input was a single one).

    A list of strings is one sentence of words where none of them holds white space, and a list of texts otherwise; a list of
    lists of words, or `Sentence` objects, leave no doubt.
    """
    if isinstance(inputs, str | tuple | Sentence) or _is_words(inputs):
        return [_whole(as_sentence(inputs, 1), 1)], True
    if isinstance(inputs, list):
        return [_whole(as_sentence(item, i), i) for i, item in enumerate(inputs, 1)], False
    raise UsageError(f"cannot tag {shorten(inputs)}; give {SHAPES}")


def as_sentence(item: Any, id_: int) -> Sentence:
    """A text, words, or a `Sentence`, which keeps its id. Lone surrogates are not checked for."""
    if isinstance(item, Sentence):
        return item
    if isinstance(item, str):
        return sentence_from_text(item, id_)
    if isinstance(item, list | tuple) and all(isinstance(word, str) and word for word in item):
        return Sentence(tuple(item), None, id_)
    raise UsageError(f"cannot tag {shorten(item)}; give {SHAPES}")


def _whole(sentence: Sentence, number: int) -> Sentence:
    try:
        require_short(sentence.words)
        for word in sentence.words:
            require_text(word)
    except Malformed as bad:
        raise UsageError(f"sentence {number}: found {bad.found}; expected {bad.expected}") from None
    return sentence


def _is_words(inputs: Any) -> bool:
    words = inputs if isinstance(inputs, list) else []
    return bool(words) and all(isinstance(word, str) and word and not any(map(str.isspace, word)) for word in words)
