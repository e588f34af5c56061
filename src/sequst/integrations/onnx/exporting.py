"""Write a tagger as a folder for onnxruntime, in fp32 or with weights of eight bits."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from sequst.corpus.generated import generate
from sequst.errors import SequstError, UsageError, said
from sequst.extras import needed
from sequst.files import as_folder, as_path, atomic_folder
from sequst.integrations.onnx.decoding import Transitions
from sequst.integrations.onnx.folder import FACTS, GRAPH, TOKENIZER, TRANSITIONS, Facts
from sequst.integrations.onnx.tagger import Graph
from sequst.tagger.batches import Batch, Rows, collate
from sequst.tagger.encoders.pretrained import quiet
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.heads import CrfHead, Head, SoftmaxHead
from sequst.tagger.tagger import Tagger
from sequst.tagger.windows import SubwordSplitter

OPSET = 17
FAR = 1e-3
"""Scores that differ by more than this, relative to the largest, are others."""
_BOUND = "this model cannot be exported: its graph holds for the example alone from which it was made"


class _Scores(nn.Module):
    """What the graph computes: from the arrays of a batch the scores of its words."""

    def __init__(self, tagger: Tagger, like: Batch) -> None:
        super().__init__()
        self._tagger, self._like = tagger, like

    def forward(self, input_ids: Tensor, attention_mask: Tensor, heads: Tensor) -> Tensor:
        batch = dataclasses.replace(self._like, input_ids=input_ids, attention_mask=attention_mask, heads=heads)
        return self._tagger.head.scores(self._tagger.hidden(batch))


def export(tagger: Tagger, folder: str | Path) -> None:
    """Write the folder, in place of an earlier export. The graph is compared with the tagger before it is kept."""
    needed("onnxruntime", "onnx")
    needed("onnx", "onnx")
    encoder, splitter = tagger.encoder, tagger.splitter
    if not isinstance(encoder, Transformer) or not isinstance(splitter, SubwordSplitter):
        raise UsageError(f"a tagger on a {encoder.kind} cannot be exported to ONNX; only those on a transformer can")
    transitions = _transitions(tagger.head)
    facts = Facts(
        labels=tagger.labels,
        head=tagger.head.kind,
        precision="fp32",
        max_length=tagger.max_length,
        overlap=tagger.overlap,
        special=splitter.special,
        pad=tagger.pad_id,
        entity_calibration=tagger.entity_calibration,
        transitions=transitions is not None,
        capitals=tagger.capitals,
    )
    as_folder(as_path(folder).absolute())
    with atomic_folder(folder, replaces=(FACTS, GRAPH)) as temporary:
        _write_graph(tagger, temporary / GRAPH)
        splitter.backend.save(str(temporary / TOKENIZER))
        if transitions is not None:
            transitions.save(temporary / TRANSITIONS)
        facts.save(temporary)
        _require_same(tagger, Graph(temporary / GRAPH))


def quantise(exported: str | Path, folder: str | Path) -> None:
    """Write the exported folder once more, the weights of its matrices and embeddings rounded to eight bits."""
    exported = Path(exported)
    quantisation = needed("onnxruntime.quantization", "onnx")
    facts = dataclasses.replace(Facts.load(exported), precision="int8")
    with atomic_folder(folder, replaces=(FACTS, GRAPH)) as temporary:
        for name in (TOKENIZER, TRANSITIONS) if facts.transitions else (TOKENIZER,):
            shutil.copy(exported / name, temporary)
        with _silence():
            quantisation.quantize_dynamic(
                exported / GRAPH, temporary / GRAPH, op_types_to_quantize=["MatMul", "Gemm", "Gather"], per_channel=True
            )
        facts.save(temporary)


def _write_graph(tagger: Tagger, path: Path) -> None:
    example = collate(tagger.splitter.windows([["a", "b", "c"], ["a"]]), [0, 1], tagger.pad_id)
    inputs = {"input_ids": example.input_ids, "attention_mask": example.attention_mask, "heads": example.heads}
    free = {name: {0: "rows", 1: "words" if name == "heads" else "subwords"} for name in inputs}
    try:
        with _silence(), torch.no_grad():
            torch.onnx.export(
                _Scores(tagger, example).eval(),
                tuple(inputs.values()),
                path,
                input_names=list(inputs),
                output_names=["scores"],
                dynamic_axes={**free, "scores": {0: "rows", 1: "words"}},
                opset_version=OPSET,
                dynamo=False,
            )
    except OSError:  # of the disk
        raise
    except Exception as error:  # what a graph cannot hold comes out in many ways
        reason = said(error)
        raise SequstError(f"this model cannot be exported to ONNX ({type(error).__name__}: {reason})") from error


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Context without warnings of torch and onnxruntime."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with quiet(), warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)


def _transitions(head: Head) -> Transitions | None:
    """Those that its paths are decoded with; none where every word is labelled by itself."""
    if isinstance(head, CrfHead):
        labels = head.linear.out_features
        rows = Rows(torch.ones(2, 1, dtype=torch.bool), torch.tensor([True, False]))
        chain = head.chain(torch.zeros(2, 1, labels), rows)
        parts = (chain.transitions, chain.start[0], chain.start[1], chain.end)
    elif isinstance(head, SoftmaxHead) and head.links is not None and head.forbidden_start is not None:
        nothing = torch.zeros_like(head.forbidden_start)
        parts = (head.links, head.forbidden_start, nothing, nothing)
    else:
        return None
    return Transitions(*(part.detach().float().numpy() for part in parts))


@torch.inference_mode()
def _require_same(tagger: Tagger, graph: Graph) -> None:
    """An error where the graph does not give the tagger's scores, in rows of other lengths than that which it was made from."""
    sentences = [sentence.words for sentence in generate(pool=24, test=1).pool]
    windows = tagger.splitter.windows([*sentences, ("a",), ("a",) * tagger.max_length])
    for rows in (list(range(len(windows))), [len(windows) - 1], [0]):
        batch = collate(windows, rows, tagger.pad_id)
        expected = tagger.head.scores(tagger.hidden(batch)).numpy()
        try:
            found, words = graph.scores([windows[i] for i in rows], tagger.pad_id)
            furthest = np.abs(found - expected)[words].max()
        except Exception as error:  # of onnxruntime, which has its own; or of shapes
            raise SequstError(f"{_BOUND} ({said(error)})") from error
        if not furthest <= FAR * max(1.0, np.abs(expected[words]).max()):
            raise SequstError(f"{_BOUND} (its scores are up to {furthest:.2g} apart)")
