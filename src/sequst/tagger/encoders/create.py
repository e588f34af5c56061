"""A new encoder by its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from sequst.tagger.encoders.base import Encoder
from sequst.tagger.encoders.shape import BILSTM, BiLstmShape
from sequst.tagger.encoders.transformer import Transformer


def new_encoder(name: str, labels: list[str], seed: int, text: Iterable[Sequence[str]], shape: BiLstmShape) -> Encoder:
    """`bilstm` is made from nothing but the text and its shape; every other name means pretrained weights."""
    if name != BILSTM:
        return Transformer.pretrained(name, labels, seed)
    from sequst.tagger.encoders.bilstm import BiLstm
    from sequst.tagger.encoders.vectors import load_vectors
    from sequst.tagger.encoders.vocabulary import Vocabulary

    vectors = load_vectors(shape.vectors) if shape.vectors else None
    vocabulary = Vocabulary.of(text, vectors.words if vectors is not None else ())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BiLstm(shape, vocabulary, None if vectors is None else vectors.table)
