"""Writing sentences back, in the formats that `reading` takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sequst.corpus.formats.annotated import marks_of
from sequst.corpus.formats.argilla import argilla_record
from sequst.corpus.formats.brat import write_brat
from sequst.corpus.formats.columns import DOCUMENT_START
from sequst.corpus.formats.detect import Format
from sequst.corpus.formats.docbin import write_docbin
from sequst.corpus.formats.doccano import doccano_record
from sequst.corpus.formats.huggingface import write_dataset
from sequst.corpus.formats.labelstudio import labelstudio_task
from sequst.corpus.formats.prodigy import prodigy_record
from sequst.corpus.formats.records import SEPARATORS
from sequst.corpus.sentence import Sentence
from sequst.corpus.words import split_words
from sequst.errors import SequstError, shorten
from sequst.files import atomic_text


def conll_block(words: Sequence[str], tags: Sequence[str] | None) -> str:
    """The rows of one sentence, `word<TAB>tag`, and the empty line after it; nothing for a sentence without words."""
    if not words:
        return ""
    if SEPARATORS.search("".join(words)):
        word = next(word for word in words if SEPARATORS.search(word))
        raise SequstError(f"the word {shorten(word)} cannot stand in a column file: it has a tab, a line end or NUL in it")
    if tags is None and any(" " in word for word in words):
        raise SequstError("a word with a space in it cannot be told from two columns; write JSON lines instead")
    rows = words if tags is None else [f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True)]
    return "\n".join(rows) + "\n\n"


def write_conll(path: str | Path, sentences: Iterable[Sentence]) -> None:
    with atomic_text(path) as file:
        for number, sentence in enumerate(sentences, 1):
            try:
                if DOCUMENT_START in sentence.words:
                    raise SequstError(f"the word {DOCUMENT_START} is what stands between documents in a column file")
                file.write(conll_block(sentence.words, sentence.tags))
            except SequstError as error:
                raise SequstError(f"{path}: sentence {number}: {error}; nothing was written") from None


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


TASKS: dict[str, Callable[[Sentence, Sequence[float] | None], dict[str, Any]]] = {
    "labelstudio": labelstudio_task,
    "doccano": doccano_record,
    "prodigy": prodigy_record,
    "argilla": argilla_record,
}
"""What annotation tools import as JSON: of a sentence and the scores of its entities, where they were predicted."""

_LISTS = ("labelstudio", "argilla")


def tasks(format: str, sentences: Iterable[tuple[Sentence, Sequence[float] | None]]) -> Iterator[str]:
    """The file of a tool, piece by piece: a JSON list of tasks, or a task a line."""
    opened = False
    for sentence, scores in sentences:
        record = json.dumps(TASKS[format](sentence, scores), ensure_ascii=False)
        yield f"{',' if opened else '['}\n{record}" if format in _LISTS else f"{record}\n"
        opened = True
    if format in _LISTS:
        yield "\n]\n" if opened else "[]\n"


def is_cut_by_rule(sentence: Sentence) -> bool:
    """Whether our own rule cuts its text, or its words with spaces between, into these words."""
    text, offsets = sentence.as_text()
    return tuple(split_words(text)) == tuple(offsets)


def _text_or_words(sentence: Sentence) -> str:
    """A JSON line with the text, where our rule cuts it into these words, or else with the words."""
    if sentence.text is None or not is_cut_by_rule(sentence):
        return jsonl_line(sentence)
    text, marks = marks_of(sentence)
    record: dict[str, object] = {"text": text} if sentence.id is None else {"id": sentence.id, "text": text}
    if sentence.tags is not None:
        record["spans"] = [{"start": mark.start, "end": mark.end, "type": mark.type} for mark in marks]
    return json.dumps(record, ensure_ascii=False)


def write_sentences(path: Path, format: Format, sentences: Sequence[Sentence]) -> None:
    """Write a file or folder of any format, whole or not at all. What it cannot hold must be out of the sentences already."""
    if format == "brat":
        write_brat(path, sentences)
    elif format == "spacy":
        write_docbin(path, sentences)
    elif format == "datasets":
        write_dataset(path, sentences)
    elif format == "conll":
        write_conll(path, sentences)
    else:
        with atomic_text(path) as file:
            if format in TASKS:
                file.writelines(tasks(format, ((sentence, None) for sentence in sentences)))
            elif format == "jsonl":
                file.writelines(_text_or_words(sentence) + "\n" for sentence in sentences)
            else:
                file.writelines(sentence.as_text()[0] + "\n" for sentence in sentences)
