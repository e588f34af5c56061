"""A tagger as a component of a spaCy pipeline: `nlp.add_pipe("sequst", config={"model": DIR})` sets the entities of a doc.

Its words are spaCy's tokens but for white space, its sentences those of the doc where it has any.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError, shorten
from sequst.files import atomic_folder, write_json
from sequst.integrations.onnx.folder import FACTS, is_exported
from sequst.tagger.entity_calibration import UNCALIBRATED
from sequst.tagger.prediction import Prediction

Annotate = Callable[[Iterable[Sentence]], Iterable[Prediction]]


class Part(NamedTuple):
    """A sentence of a doc, or all of it."""

    sentence: Sentence
    tokens: Sequence[int]
    """Which of the doc's tokens its words are."""


def parts_of(doc: Doc) -> list[Part]:
    """The sentences of the doc, or all of it where it has none; white space is left out, and what is nothing else."""
    stretches = doc.sents if doc.has_annotation("SENT_START") else [doc]
    found = []
    for stretch in stretches:
        tokens = [token for token in stretch if not token.is_space]
        if tokens:
            found.append(Part(Sentence(tuple(token.text for token in tokens)), [token.i for token in tokens]))
    return found


class SequstPipe:
    """The component. The model is loaded when it is first needed: a process that `nlp.pipe` forks loads its own."""

    def __init__(
        self, model: str, uncertainty: bool, passes: int, seed: int, overwrite_ents: bool, device: str,
        min_confidence: float | None = None,
    ) -> None:  # fmt: skip
        if not model:
            raise UsageError('no model is named: nlp.add_pipe("sequst", config={"model": "run/model"})')
        if passes < 1:
            raise UsageError(f"passes={passes}: at least 1")
        UNCALIBRATED.asked_for(False, min_confidence)  # an error now where it is none
        self._folder, self._min_confidence = Path(model), min_confidence
        self._uncertainty, self._passes, self._seed, self._device = uncertainty, passes, seed, device
        self._overwrite_ents = overwrite_ents
        self._annotate: Annotate | None = None
        self._spool: tempfile.TemporaryDirectory[str] | None = None
        if not _is_filled_later():
            self._require_model()
        for name in ("confidence", "information_gain"):
            if not Span.has_extension(name):
                Span.set_extension(name, default=None)

    def __call__(self, doc: Doc) -> Doc:
        [done] = self._tag([doc])
        return done

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Docs in, docs out; the sentences of a whole batch are tagged at once."""
        for docs in minibatch(stream, batch_size):
            yield from self._tag(docs)

    def _tag(self, docs: Sequence[Doc]) -> Sequence[Doc]:
        parts = [parts_of(doc) for doc in docs]
        predictions = iter(self._annotated(part.sentence for own in parts for part in own))
        for doc, own in zip(docs, parts, strict=True):
            found = [span for part in own for span in _spans(doc, part.tokens, next(predictions))]
            if self._overwrite_ents:
                doc.set_ents(found)
            else:
                doc.set_ents([*doc.ents, *(span for span in found if not any(token.ent_type for token in span))])
        return docs

    def _annotated(self, sentences: Iterable[Sentence]) -> Iterable[Prediction]:
        if self._annotate is None:
            self._annotate = self._load()
        return self._annotate(sentences)

    def _require_model(self) -> None:
        """An error now, and not with the first doc, where the model is not there or cannot do what is asked."""
        if not is_exported(self._folder):
            from sequst.tagger.save import require_model
            from sequst.tagger.tagger import pick_device

            require_model(self._folder)
            pick_device(self._device)
        elif self._device not in ("auto", "cpu"):
            raise UsageError(f"device {self._device!r}: {self._folder} is an export, which is run on the CPU; use auto or cpu")
        elif self._uncertainty:
            raise UsageError(f"uncertainty needs dropout, and {self._folder} is an export; name the model it was made from")

    def _load(self) -> Annotate:
        self._require_model()
        if is_exported(self._folder):
            from sequst.integrations.onnx.tagger import OnnxTagger

            return OnnxTagger.load(self._folder, min_confidence=self._min_confidence).annotate
        from sequst.tagger.predict import annotate
        from sequst.tagger.tagger import Tagger
        from sequst.uncertainty.predict import annotate_with_uncertainty

        tagger = Tagger.load(self._folder, self._device, min_confidence=self._min_confidence)
        if self._uncertainty:
            return lambda sentences: annotate_with_uncertainty(tagger, sentences, self._passes, self._seed)
        return lambda sentences: annotate(tagger, sentences)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """The folder of the model, copied, in place of a model that is there."""
        with atomic_folder(path, replaces=(FACTS,)) as temporary:
            shutil.copytree(self._required(), temporary, dirs_exist_ok=True)
            if not (temporary / FACTS).is_file():  # a model that another tool has made: next time it is to be known as ours
                write_json(temporary / FACTS, {})

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> SequstPipe:
        self._folder, self._annotate = Path(path), None
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """All files of the model."""
        files = {file.name: file.read_bytes() for file in sorted(self._required().iterdir()) if file.is_file()}
        return srsly.msgpack_dumps(files)  # type: ignore[no-any-return]

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> SequstPipe:
        """They are kept in a temporary folder for as long as the component lives."""
        self._spool = tempfile.TemporaryDirectory(prefix="sequst-")
        for name, content in srsly.msgpack_loads(data).items():
            (Path(self._spool.name) / Path(name).name).write_bytes(content)
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


def _spans(doc: Doc, tokens: Sequence[int], prediction: Prediction) -> list[Span]:
    """The entities of a sentence, from its first token to its last; white space may lie between, and never at an edge."""
    gains: Sequence[float] = getattr(prediction, "information_gains", ())
    found = []
    for entity in prediction.entities:
        span = Span(doc, tokens[entity.start], tokens[entity.end - 1] + 1, label=entity.type)
        span._.confidence = entity.confidence
        span._.information_gain = max(gains[entity.start : entity.end]) if gains else None
        found.append(span)
    return found


def make(
    nlp: Language,
    name: str,
    model: str,
    uncertainty: bool,
    passes: int,
    seed: int,
    overwrite_ents: bool,
    device: str,
    min_confidence: float | None,
) -> SequstPipe:
    """What spaCy calls to make the component."""
    return SequstPipe(model, uncertainty, passes, seed, overwrite_ents, device, min_confidence)


Language.factory(
    "sequst",
    func=make,
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={
        "model": "",
        "uncertainty": False,
        "passes": 20,
        "seed": 12,
        "overwrite_ents": True,
        "device": "auto",
        "min_confidence": None,
    },
)
