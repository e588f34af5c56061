"""Write sentences in any format that `read` takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sequst.corpus.formats.registry import FORMATS
from sequst.corpus.sentence import Sentence
from sequst.files import as_json, atomic_text


def tasks(format: str, sentences: Iterable[tuple[Sentence, Sequence[float] | None]]) -> Iterator[str]:
    """The file of a tool, piece by piece: of sentences and the scores of their entities, where they were predicted."""
    task, in_list = FORMATS[format].load().task, FORMATS[format].tasks == "list"
    opened = False
    for sentence, scores in sentences:
        record = as_json(task(sentence, scores))
        yield f"{',' if opened else '['}\n{record}" if in_list else f"{record}\n"
        opened = True
    if in_list:
        yield "\n]\n" if opened else "[]\n"


def write_sentences(path: Path, format: str, sentences: Sequence[Sentence]) -> None:
    """Write a file or folder of any format, completely or not at all. The format must be able to hold the sentences."""
    if FORMATS[format].tasks:
        with atomic_text(path) as file:
            file.writelines(tasks(format, ((sentence, None) for sentence in sentences)))
    else:
        FORMATS[format].load().write(path, sentences)
