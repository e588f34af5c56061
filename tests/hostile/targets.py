"""The kinds of single files from outside: how the bytes of each are read, and bytes to begin with."""

from __future__ import annotations

import functools
import gzip
import json
import random
import zlib
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from sequst.corpus.formats.detect import guess, open_input
from sequst.corpus.formats.originals import Read, read_gold_conll, read_multiwoz
from sequst.corpus.formats.read import read_file, stream
from sequst.corpus.formats.write import write_sentences
from sequst.corpus.generated import generate
from sequst.corpus.tags import is_tag, violations
from sequst.errors import DataError
from sequst.experiments.recipe import load_cells
from sequst.experiments.results import KEYS, TELLING
from sequst.tagger.encoders.vectors import load_vectors
from sequst.training.configure import load_settings
from sequst.training.settings import to_dict
from tests.hostile.mutation import mutated

TEXT = ("conll", "jsonl", "labelstudio", "doccano", "prodigy", "argilla", "text")


def _sentences(path: Path, format: str) -> None:
    """Read whole with tags, and as a stream without."""
    for sentence in read_file(path, format=format, tag_use="hidden").require():
        assert all(sentence.words)
        assert sentence.tags is None or (len(sentence.tags) == len(sentence.words) and not violations(sentence.tags, "IOB2"))
    source = open_input(path, format=format)
    for sentence in stream(source, guess(source, format)):
        assert all(sentence.words)


def _read(name: str, format: str, data: bytes, folder: Path) -> None:
    (folder / name).write_bytes(data)
    _sentences(folder / name, format)


def _brat(data: bytes, folder: Path) -> None:
    """A text and its annotations, with a NUL between them."""
    text, _, annotations = data.partition(b"\0")
    (folder / "a.txt").write_bytes(text)
    _read("a.ann", "brat", annotations, folder)


def _docbin(data: bytes, folder: Path) -> None:
    _read("a.spacy", "spacy", data if data[:1] == b"x" else zlib.compress(data, 1), folder)


def _settings(data: bytes, folder: Path) -> None:
    (folder / "a.yaml").write_bytes(data)
    to_dict(load_settings(folder / "a.yaml"))


def _recipe(name: str, data: bytes, folder: Path) -> None:
    (folder / name).write_bytes(data)
    for cell in load_cells(str(folder / name)):
        assert cell.key


def _vectors(data: bytes, folder: Path) -> None:
    (folder / "a.txt").write_bytes(data)
    words, table = load_vectors(str(folder / "a.txt"))
    assert len(words) == len(table)
    assert table.isfinite().all()


def _original(name: str, read: Callable[[Path], Read], data: bytes, folder: Path) -> None:
    """A file of a published corpus, in a folder of its own."""
    (folder / "original").mkdir(exist_ok=True)
    for each in ("testListFile.txt", "valListFile.txt", name):
        (folder / "original" / each).write_bytes(data if each == name else b"")
    found = read(folder / "original" / name)
    for sentence in found.sentences:
        assert sentence.tags is not None
        assert not violations(sentence.tags, "IOB2")
        assert all(map(is_tag, sentence.tags))
    if found.problems:
        raise DataError(found.problems)


Target = Callable[[bytes, Path], None]
GUIDED: dict[str, Target] = {
    **{format: functools.partial(_read, "a", format) for format in TEXT},
    "any text": functools.partial(_read, "a", "auto"),
    "brat": _brat,
    "settings": _settings,
    "recipe": functools.partial(_recipe, "a.yaml"),
    "results": functools.partial(_recipe, "a.jsonl"),
    "multiwoz": functools.partial(_original, "data.json", lambda path: read_multiwoz(path, "train")),
    "ontonotes": functools.partial(_original, "a.gold_conll", lambda path: read_gold_conll(path.parent)),
}
"""Those that Python reads."""
TARGETS: dict[str, Target] = {
    **GUIDED,
    "gzip": functools.partial(_read, "a.conll.gz", "auto"),
    "spacy": _docbin,
    "parquet": functools.partial(_read, "a.parquet", "datasets"),
    "vectors": _vectors,
}
"""A folder, and the bytes of a file that is written there and read; a SequstError, or it is sound."""


def _written(format: str, folder: Path) -> list[bytes]:
    ending = {"brat": "ann", "spacy": "spacy", "parquet": "parquet"}.get(format, format)
    path = folder / f"whole.{ending}"
    first, *others = generate().pool[:5]
    write_sentences(path, "datasets" if format == "parquet" else format, [replace(first, judging=True), *others])
    data = path.read_bytes()
    if format == "brat":
        return [path.with_suffix(".txt").read_bytes() + b"\0" + data]
    return [zlib.decompress(data), data] if format == "spacy" else [data]


def _recipes(package: str) -> list[bytes]:
    return [item.read_bytes() for item in resources.files(package).joinpath("recipes").iterdir()]


def samples(kind: str, folder: Path) -> list[bytes]:
    """Sound files of a kind, to begin with."""
    if kind == "any text":
        return [data for format in TEXT for data in _written(format, folder)]
    if kind == "gzip":
        return [gzip.compress(data, mtime=0) for data in _written("conll", folder)]
    if kind == "settings":
        return [*_recipes("sequst.training"), json.dumps(to_dict(load_settings())).encode()]
    if kind == "recipe":
        return _recipes("sequst.experiments")
    if kind == "results":
        line = {
            **dict.fromkeys(KEYS, 1),
            **dict.fromkeys((*TELLING, "device", "commit"), "x"),
            "recipe": "paper",
            "method": "sst",
            "head": "crf",
        }
        return [2 * (json.dumps({**line, "shots": 10, "pool": None, "seed": 1}).encode() + b"\n")]
    if kind == "multiwoz":
        turn = {"text": "a train to Ely", "span_info": [["Train-Inform", "Dest", "Ely", 3, 3]]}
        return [json.dumps({"A.json": {"goal": {}, "log": [turn, {"text": "Yes ."}]}, "B.json": {"log": [turn]}}).encode()]
    if kind == "ontonotes":
        rows = [
            ["w", "0", str(i), word, *["-"] * 6, mark, "-"] for i, (word, mark) in enumerate((("Ely", "(GPE)"), ("is", "*")))
        ]
        return [b"#begin document\n" + "\n".join(" ".join(row) for row in rows).encode() + b"\n\n#end document\n"]
    if kind == "vectors":
        return [b"2 3\na 0.1 0.2 0.3\nb 1 -2e-3 3\n", b"a 0.1 0.2\nb c 1 2\n"]
    return _written(kind, folder)


def mutants(kind: str, folder: Path, rng: random.Random, count: int) -> Any:
    """So many mutated files of a kind."""
    whole = samples(kind, folder)
    return (mutated(rng.choice(whole), rng) for _ in range(count))
