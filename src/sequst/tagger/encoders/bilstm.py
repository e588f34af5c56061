"""A BiLSTM over word vectors and characters: an encoder that is trained from nothing, on a CPU too.

A word is its vector, from a file or learnt, and what a convolution makes of its characters (Ma and Hovy 2016). A word without
a vector, at 0 then, has its characters; so that the rest learns to live with that, whole vectors are dropped in training as
well. Vectors of a file stay as they are: a few labelled sentences would move those of their words away from all others. Learnt
ones begin at 0, so that a word which was never learnt from is like an unknown one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sequst.errors import SequstError
from sequst.files import write_json
from sequst.inputs import read_json
from sequst.tagger.batches import Batch
from sequst.tagger.encoders.base import Encoder
from sequst.tagger.encoders.shape import BILSTM, SHAPE, BiLstmShape
from sequst.tagger.encoders.vectors import load_vectors
from sequst.tagger.encoders.vocabulary import UNKNOWN, UNKNOWN_CHARACTER, Vocabulary, WordSplitter
from sequst.tagger.windows import Splitter

WEIGHTS, VOCABULARY = "model.safetensors", "vocabulary.json"
LARGEST, MOST_LAYERS = 100_000, 100
"""Upper bounds for the sizes of a saved BiLSTM."""
_WINDOW = 3
"""Characters that the convolution looks at together."""


class BiLstm(Encoder):
    """Its states are what all layers say of a word, one after the other; each layer the reading from the left first."""

    kind = BILSTM
    pad_id = UNKNOWN
    mask_id = UNKNOWN
    vectors: Tensor
    """(V + 1, E): vectors of a file, with a row of 0 for unknown words; without rows where they are learnt. They are no part of
    the state, which holds what is learnt."""

    def __init__(self, shape: BiLstmShape, vocabulary: Vocabulary, vectors: Tensor | None = None) -> None:
        super().__init__()
        self.shape, self.vocabulary = shape, vocabulary
        self.dropout = shape.dropout
        self.width = 2 * shape.hidden * shape.layers
        nothing = torch.zeros(len(vocabulary.words) + 1, shape.word_size)
        self.learnt = None if vectors is not None else _table(nothing)
        table = torch.empty(0, 0) if vectors is None else F.pad(vectors, (0, 0, 1, 0))
        self.register_buffer("vectors", table, persistent=False)
        word_size = shape.word_size if vectors is None else vectors.shape[1]
        self.convolution = nn.Conv1d(shape.character_size, shape.filters, _WINDOW, padding=_WINDOW // 2)
        sizes = [word_size + shape.filters, *[2 * shape.hidden] * (shape.layers - 1)]
        self.layers = nn.ModuleList(nn.LSTM(size, shape.hidden, batch_first=True, bidirectional=True) for size in sizes)
        self.characters = _table(_first_vectors(vocabulary, shape.character_size))
        self.drop_word, self.drop = nn.Dropout(shape.dropout), nn.Dropout(shape.dropout)
        with torch.no_grad():
            for name, bias in self.layers.named_parameters():
                if "bias_ih" in name:  # gates in the order input, forget, cell, output: remember at first
                    bias[shape.hidden : 2 * shape.hidden] = 1.0

    @classmethod
    def new(cls, text: Iterable[Sequence[str]], shape: BiLstmShape, seed: int) -> BiLstm:
        """An untrained BiLSTM, with the words and characters of the text."""
        vectors = load_vectors(shape.vectors) if shape.vectors else None
        vocabulary = Vocabulary.of(text, vectors.words if vectors is not None else ())
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(shape, vocabulary, None if vectors is None else vectors.table)

    def splitter(self, max_length: int, overlap: int) -> Splitter:
        """`max_length` and `overlap` count words here."""
        return WordSplitter(self.vocabulary, max_length, overlap)

    def embeddings(self, batch: Batch) -> Tensor:
        """(B, W, E): the vector of every word and what its characters say."""
        known = F.embedding(batch.input_ids, self.vectors) if self.learnt is None else self.learnt(batch.input_ids)
        kept = self.drop_word(torch.ones_like(known[..., :1]))
        return torch.cat([known * kept, self._spelt(batch)], dim=-1)

    def _spelt(self, batch: Batch) -> Tensor:
        """(B, W, F): the largest answer of every filter over a word's characters."""
        assert batch.spelling is not None
        rows, words, longest = batch.spelling.shape
        letters = self.characters(batch.spelling).view(rows * words, longest, -1)
        answers = self.convolution(letters.transpose(1, 2)).view(rows, words, -1, longest)
        return torch.tanh(answers.masked_fill((batch.spelling == 0).unsqueeze(2), -1e4).amax(-1))

    def readings(self, batch: Batch, embeddings: Tensor | None = None) -> list[Tensor]:
        """Of every layer (B, W, 2 x hidden): the reading from the left, which knows no later word, and that from the right,
        which in the first layer knows no earlier one."""
        inputs = self.embeddings(batch) if embeddings is None else embeddings
        found = []
        for layer in self.layers:
            inputs = read_both_ways(layer, self.drop(inputs), batch.lengths)
            found.append(inputs)
        return found

    def forward(self, batch: Batch, embeddings: Tensor | None = None) -> Tensor:
        return torch.cat(self.readings(batch, embeddings), dim=-1)

    def save(self, folder: Path, classifier: nn.Linear) -> None:
        weights = nn.ModuleDict({"encoder": self, "classifier": classifier}).state_dict()
        if self.learnt is None:
            weights["encoder.vectors"] = self.vectors[1:]
        save_file({name: value.cpu().contiguous() for name, value in weights.items()}, folder / WEIGHTS)
        write_json(folder / SHAPE, dataclasses.asdict(self.shape))
        self.vocabulary.save(folder / VOCABULARY)

    @classmethod
    def load(cls, folder: Path) -> tuple[BiLstm, nn.Linear]:
        """(the encoder, its classifier) as they were saved; every weight must be there and of the right shape."""
        shape, vocabulary = _read_shape(folder / SHAPE), Vocabulary.load(folder / VOCABULARY)
        weights = load_file(folder / WEIGHTS)
        for name, value in weights.items():
            if value.dtype != torch.float32:
                raise ValueError(f"{name} in {WEIGHTS} holds what are no numbers of single precision")
        if "classifier.weight" not in weights or weights["classifier.weight"].ndim != 2:
            raise ValueError(f"classifier.weight in {WEIGHTS} is missing or has another shape")
        encoder = cls(shape, vocabulary, weights.pop("encoder.vectors", None))
        if encoder.learnt is None and len(encoder.vectors) != len(vocabulary.words) + 1:
            raise ValueError(f"it has {len(encoder.vectors) - 1} vectors for {len(vocabulary.words)} words")
        labels, width = weights["classifier.weight"].shape
        classifier = nn.Linear(width, labels)
        nn.ModuleDict({"encoder": encoder, "classifier": classifier}).load_state_dict(weights)
        return encoder, classifier


def _table(vectors: Tensor) -> nn.Embedding:
    """Vectors to be learnt from these on; the first row, of what is unknown or padding, stays at 0."""
    return nn.Embedding(len(vectors), vectors.shape[1], padding_idx=0, _weight=vectors)


def _first_vectors(vocabulary: Vocabulary, size: int) -> Tensor:
    """Of every character a draw of its own: with others beside it in the vocabulary a tagger starts from the same weights."""
    base = int(torch.randint(1 << 40, ()))
    table = torch.zeros(len(vocabulary.characters) + UNKNOWN_CHARACTER + 1, size)
    for row, code in enumerate([0, *map(ord, vocabulary.characters)], UNKNOWN_CHARACTER):
        table[row].normal_(generator=torch.Generator().manual_seed(base + code))
    return table


def read_both_ways(lstm: nn.Module, inputs: Tensor, lengths: list[int]) -> Tensor:
    """(B, W, 2H) from (B, W, E): every row as long as it is, 0 where there is no word."""
    packed = pack_padded_sequence(inputs, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=inputs.shape[1])
    return states


def _read_shape(path: Path) -> BiLstmShape:
    found: Any = read_json(path)
    expected = {item.name: type(item.default) for item in dataclasses.fields(BiLstmShape)}
    if not isinstance(found, dict) or {name: type(value) for name, value in found.items()} != expected:
        raise SequstError(f"{path}: damaged or not written by sequst; expected {', '.join(expected)}")
    sizes = [value for value in found.values() if isinstance(value, int)]
    if not (all(0 < size <= LARGEST for size in sizes) and found["layers"] <= MOST_LAYERS and 0 <= found["dropout"] < 1):
        raise SequstError(f"{path}: damaged or not written by sequst; a size or the dropout is out of range")
    return BiLstmShape(**found)
