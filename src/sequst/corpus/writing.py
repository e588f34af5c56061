"""Writing sentences back, in the formats that `reading` takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError
from sequst.files import atomic_text


def conll_block(words: Sequence[str], tags: Sequence[str] | None) -> str:
    """The rows of one sentence, `word<TAB>tag`, and the empty line after it; nothing for a sentence without words."""
    if not words:
        return ""
    if tags is None and any(" " in word for word in words):
        raise SequstError("a word with a space in it cannot be told from two columns; write JSON lines instead")
    rows = words if tags is None else [f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True)]
    return "\n".join(rows) + "\n\n"


def write_conll(path: str | Path, sentences: Iterable[Sentence]) -> None:
    with atomic_text(path) as file:
        for sentence in sentences:
            file.write(conll_block(sentence.words, sentence.tags))


def jsonl_line(sentence: Sentence) -> str:
    record: dict[str, object] = {"words": sentence.words}
    if sentence.id is not None:
        record = {"id": sentence.id, **record}
    if sentence.tags is not None:
        record["tags"] = sentence.tags
    return json.dumps(record, ensure_ascii=False)


def write_jsonl(path: str | Path, sentences: Iterable[Sentence]) -> None:
    with atomic_text(path) as file:
        for sentence in sentences:
            file.write(jsonl_line(sentence) + "\n")
