"""An exported tagger: the same predictions by onnxruntime, on the CPU, without torch."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import types_of
from sequst.errors import SequstError, UsageError, said, shorten
from sequst.extras import needed
from sequst.inputs import require_regular_files
from sequst.integrations.onnx.checking import require_known
from sequst.integrations.onnx.decoding import Transitions, decode
from sequst.integrations.onnx.folder import GRAPH, TOKENIZER, TRANSITIONS, Facts, is_exported
from sequst.tagger.capitals import capital_scores, ways_of
from sequst.tagger.planning import padded, plan
from sequst.tagger.prediction import CHUNK, NO_RAW_TAGS, NOT_FINITE, Prediction, as_sentences, trial_sentence
from sequst.tagger.windows import BackendSplitter, Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOKENS = 2048
"""Sub-words in a batch."""


class OnnxTagger:
    """Loads what `sequst export` wrote; `predict` takes what that of `Tagger` takes."""

    def __init__(self, facts: Facts, graph: Graph, splitter: BackendSplitter, transitions: Transitions | None) -> None:
        self.labels, self.entity_calibration = list(facts.labels), facts.entity_calibration
        self.precision = facts.precision
        self._marginal = facts.head == "crf"
        self._pad, self._graph, self._splitter, self._transitions = facts.pad, graph, splitter, transitions
        self._capitals = capital_scores(facts.capitals, facts.labels) if facts.capitals else None

    @classmethod
    def load(cls, folder: str | Path, raw_tags: bool = False, min_confidence: float | None = None) -> OnnxTagger:
        """From its folder; nothing in it is executed but the graph. `raw_tags`, `min_confidence`: see `Tagger.load`."""
        folder = Path(folder)
        require_regular_files(folder)
        if not is_exported(folder):
            raise UsageError(f"no exported model in {shorten(str(folder))}: it has no {GRAPH}; make one with `sequst export`")
        facts, graph = Facts.load(folder), Graph(folder / GRAPH)
        if raw_tags and facts.head == "crf":
            raise UsageError(NO_RAW_TAGS)
        try:
            backend = needed("tokenizers", "onnx").Tokenizer.from_file(str(folder / TOKENIZER))
            splitter = BackendSplitter(backend, facts.special, facts.max_length, facts.overlap)
            transitions = Transitions.load(folder / TRANSITIONS, len(facts.labels)) if facts.transitions else None
            if raw_tags:
                facts, transitions = dataclasses.replace(facts, capitals={}), None
            tagger = cls(facts, graph, splitter, transitions)
            tagger._label([trial_sentence(facts.max_length)])
        except (SequstError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # each library has its own, and panics of Rust are no Exceptions
            reason = said(error)
            raise SequstError(f"cannot load the model in {folder}: {reason}; export it again") from error
        tagger.entity_calibration = tagger.entity_calibration.asked_for(raw_tags, min_confidence)
        return tagger

    @property
    def types(self) -> list[str]:
        return types_of([self.labels])

    @overload
    def predict(self, inputs: str | tuple[str, ...] | Sentence) -> Prediction: ...
    @overload
    def predict(self, inputs: list[Any]) -> Prediction | list[Prediction]: ...
    def predict(self, inputs: Any) -> Prediction | list[Prediction]:
        """Tag a text, a list of words, a `Sentence`, or a list of any of them; see `sequst.tagger.prediction.as_sentences`."""
        sentences, single = as_sentences(inputs)
        predictions = list(self.annotate(sentences))
        return predictions[0] if single else predictions

    def annotate(self, sentences: Iterable[Sentence], chunk: int = CHUNK) -> Iterator[Prediction]:
        """Predictions one by one, in order; holds `chunk` sentences at a time."""
        stream = iter(sentences)
        while held := list(itertools.islice(stream, chunk)):
            for sentence, labels, confidences in zip(held, *self._label(held), strict=True):
                tags = [self.labels[label] for label in labels]
                yield Prediction(sentence, tuple(tags), tuple(confidences.tolist()), self.entity_calibration).cut()

    def _label(self, sentences: Sequence[Sentence]) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float32]]]:
        """For each sentence the labels of its words and their probabilities, each from the window that owns the word."""
        labels = [np.zeros(len(sentence), dtype=np.int64) for sentence in sentences]
        confidences = [np.zeros(len(sentence), dtype=np.float32) for sentence in sentences]
        windows = self._splitter.windows([sentence.words for sentence in sentences])
        lengths = [len(window.ids) for window in windows]
        written = [ways_of(sentence.words) for sentence in sentences] if self._capitals is not None else []
        for rows in plan(lengths, max_rows=len(lengths) or 1, max_tokens=TOKENS):
            chosen = [windows[i] for i in rows]
            scores, words = self._graph.scores(chosen, self._pad)
            if self._capitals is not None:
                scores += self._capitals[padded([window.of(written) for window in chosen], 0)[0]]
            opens = np.array([window.first == 0 for window in chosen])
            found, sure = decode(scores, words, opens, self._transitions, self._marginal)
            for row, window in enumerate(chosen):
                start, stop = window.owned
                place = slice(window.first + start, window.first + stop)
                labels[window.sentence][place] = found[row, start:stop]
                confidences[window.sentence][place] = sure[row, start:stop]
        if not all(np.isfinite(each).all() for each in confidences):
            raise SequstError(NOT_FINITE)
        return labels, confidences


def _most_memory() -> int:
    """Bytes that all graphs together may take: three quarters of the machine's, so that one that asks for more is an error."""
    return 3 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4


@functools.cache
def _limited(runtime: Any) -> bool:
    """Limit the memory of all graphs of this process. False where that cannot be done."""
    try:
        place = runtime.OrtMemoryInfo("Cpu", runtime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, runtime.OrtMemType.DEFAULT)
        as_asked = {"max_mem": _most_memory(), "arena_extend_strategy": 1}
        runtime.create_and_register_allocator(place, runtime.OrtArenaCfg(as_asked))
    except Exception:  # there is no sysconf, or somebody has set a limit already
        return False
    return True


class Graph:
    """model.onnx, opened by onnxruntime."""

    def __init__(self, path: Path) -> None:
        runtime = needed("onnxruntime", "onnx")
        require_known(path)
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # errors; its warnings are about its own affairs
        if _limited(runtime):
            options.add_session_config_entry("session.use_env_allocators", "1")
        options.add_session_config_entry("optimization.constant_folding_max_output_size_in_bytes", str(100 * 2**20))
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # it has exceptions of its own, one for every way to fail
            raise SequstError(f"cannot load {path}: {said(error)}; export the model again") from error

    def scores(self, windows: Sequence[Window], pad: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(the scores (B, W, C) of the words of these windows, where there is a word (B, W))."""
        ids, there = padded([window.ids for window in windows], pad)
        heads, words = padded([window.heads for window in windows], 0)
        inputs = {"input_ids": ids, "attention_mask": there.astype(np.int64), "heads": heads}
        try:
            [scores] = self._session.run(["scores"], inputs)
        except Exception as error:  # e.g. a tokenizer of another model, whose ids the graph does not know
            raise SequstError(f"the graph does not fit its tokenizer ({said(error)}); export the model again") from error
        return scores, words
