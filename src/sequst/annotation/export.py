"""Chosen sentences as text for whoever labels them. To add a format: a function, and a row in WRITERS."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Iterator

from sequst.annotation.next import Chosen
from sequst.corpus.formats.registry import TASKS
from sequst.corpus.formats.write import tasks
from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError

Writer = Callable[[Iterable[Chosen]], Iterator[str]]
"""The pieces of a file, in order."""


def write_jsonl(chosen: Iterable[Chosen]) -> Iterator[str]:
    """A line a sentence, with all that is known of it; `sequst train` reads its words and tags."""
    for each in chosen:
        yield json.dumps(each.to_dict(), ensure_ascii=False) + "\n"


def write_columns(chosen: Iterable[Chosen]) -> Iterator[str]:
    """A row a word: the word, how likely its tag is, the tag. The score of a sentence has no place there but its order."""
    for each in chosen:
        found = each.prediction
        rows = zip(found.words, found.confidences, each.tags, strict=True)
        yield "".join(f"{word}\t{confidence:.4f}\t{tag}\n" for word, confidence, tag in rows) + "\n"


def write_tasks(format: str, chosen: Iterable[Chosen]) -> Iterator[str]:
    """What an annotation tool imports, with what the tagger thinks of it; the score of a sentence is its place in the file."""

    def scored() -> Iterator[tuple[Sentence, list[float]]]:
        for each in chosen:
            scores = [round(entity.confidence, 6) for entity in each.prediction.entities]
            yield dataclasses.replace(each.sentence, tags=each.tags), scores

    return tasks(format, scored())


WRITERS: dict[str, Writer] = {
    "jsonl": write_jsonl,
    "conll": write_columns,
    **{name: functools.partial(write_tasks, name) for name in TASKS},
}


def find_writer(name: str) -> Writer:
    if name not in WRITERS:
        raise UsageError(f"--format {name}: use one of {', '.join(WRITERS)}")
    return WRITERS[name]
