"""A tagger as a component of a spaCy pipeline: `nlp.add_pipe("sequst", config={"model": DIR})` sets the entities of a doc.

Its words are spaCy's tokens but for white space, its sentences those of the doc where it has any.
"""

# no `from __future__ import annotations`: spaCy checks a config by the types of the signature
import inspect
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError, said, shorten
from sequst.files import Scratch, atomic_folder, write_json
from sequst.integrations.annotator import Annotator, load_annotator, require_annotator
from sequst.integrations.onnx.folder import FACTS
from sequst.tagger.entity_calibration import UNCALIBRATED
from sequst.tagger.prediction import Prediction


@Language.factory("sequst", assigns=["doc.ents", "token.ent_iob", "token.ent_type"])
class SequstPipe:
    """The component. The model is loaded when it is first needed: a process that `nlp.pipe` forks loads its own."""

    def __init__(
        self, nlp: Language, name: str, model: str = "", uncertainty: bool = False, passes: int = 20, seed: int = 12,
        overwrite_ents: bool = True, device: str = "auto", min_confidence: float | None = None,
    ) -> None:  # fmt: skip
        if not model:
            raise UsageError('no model given; use nlp.add_pipe("sequst", config={"model": "run/model"})')
        if passes < 1:
            raise UsageError(f"passes={passes}: at least 1")
        UNCALIBRATED.asked_for(False, min_confidence)  # an error now where it is none
        self._folder, self._min_confidence, self._overwrite_ents = Path(model), min_confidence, overwrite_ents
        self._device, self._passes, self._seed = device, passes if uncertainty else 0, seed
        self._annotator: Annotator | None = None
        self._spool: Scratch | None = None
        if not _is_filled_later():
            require_annotator(self._folder, device, passes=self._passes)
        for attribute in ("confidence", "information_gain"):
            if not Span.has_extension(attribute):
                Span.set_extension(attribute, default=None)

    def __call__(self, doc: Doc) -> Doc:
        [done] = self._tag([doc])
        return done

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Docs in, docs out; the sentences of a whole batch are tagged at once."""
        for docs in minibatch(stream, batch_size):
            yield from self._tag(docs)

    def _tag(self, docs: Sequence[Doc]) -> Sequence[Doc]:
        if self._annotator is None:
            self._annotator = load_annotator(
                self._folder, device=self._device, min_confidence=self._min_confidence, passes=self._passes, seed=self._seed
            )
        parts = [_sentences(doc) for doc in docs]
        words = (tuple(token.text for token in tokens) for own in parts for tokens in own)
        predictions = iter(self._annotator.annotate(map(Sentence, words)))
        for doc, own in zip(docs, parts, strict=True):
            found = [span for tokens in own for span in _spans(doc, tokens, next(predictions))]
            if self._overwrite_ents:
                doc.set_ents(found)
            else:
                doc.set_ents([*doc.ents, *(span for span in found if not any(token.ent_type for token in span))])
        return docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """The folder of the model, copied, in place of a model that is there."""
        with atomic_folder(path, replaces=(FACTS,)) as temporary:
            shutil.copytree(self._required(), temporary, dirs_exist_ok=True)
            if not (temporary / FACTS).is_file():  # a model that another tool has made: next time it is to be known as ours
                write_json(temporary / FACTS, {})

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        self._folder, self._annotator = Path(path), None
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """All files of the model."""
        files = {file.name: file.read_bytes() for file in sorted(self._required().iterdir()) if file.is_file()}
        return srsly.msgpack_dumps(files)  # type: ignore[no-any-return]

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """They are kept in a temporary folder for as long as the component lives."""
        self._spool = Scratch()
        try:
            for name, content in srsly.msgpack_loads(data).items():
                (Path(self._spool.name) / Path(name).name).write_bytes(content)
        except Exception as error:  # damaged data ends in many kinds of error
            raise SequstError(f"not the bytes of a model, as to_bytes gives them ({said(error)})") from None
        return self.from_disk(self._spool.name)

    def _required(self) -> Path:
        if not self._folder.is_dir():
            raise UsageError(f"no model in {shorten(str(self._folder))}: there is no such folder, so it cannot be saved")
        return self._folder


def _is_filled_later() -> bool:
    """Whether spaCy is making a pipeline from a config, as `spacy.load` does: it then brings a model of its own, and the one
    that the config names may be gone. spaCy does not tell a component, so the calls that led here are looked at."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not Language.from_config.__func__.__code__:
        frame = frame.f_back
    return frame is not None


def _sentences(doc: Doc) -> list[list[Token]]:
    """The tokens of every sentence, or of the whole doc where it has none, without white space."""
    stretches = doc.sents if doc.has_annotation("SENT_START") else [doc]
    found = ([token for token in stretch if not token.is_space] for stretch in stretches)
    return [tokens for tokens in found if tokens]


def _spans(doc: Doc, tokens: Sequence[Token], prediction: Prediction) -> list[Span]:
    """The entities of a sentence, from its first token to its last; white space may lie between, and never at an edge."""
    gains: Sequence[float] = getattr(prediction, "information_gains", ())
    found = []
    for entity in prediction.entities:
        span = Span(doc, tokens[entity.start].i, tokens[entity.end - 1].i + 1, label=entity.type)
        span._.confidence = entity.confidence
        span._.information_gain = max(gains[entity.start : entity.end]) if gains else None
        found.append(span)
    return found


make = SequstPipe  # the entry point of pyproject.toml
