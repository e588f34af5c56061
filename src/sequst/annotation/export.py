"""Chosen sentences as text for whoever labels them. To add a format: a function, and a row in WRITERS."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

from sequst.annotation.next import Chosen
from sequst.corpus.formats.columns import conll_block
from sequst.corpus.formats.registry import TASKS
from sequst.corpus.formats.write import tasks
from sequst.errors import UsageError
from sequst.files import as_json, with_mark

Writer = Callable[[Iterable[Chosen]], Iterator[str]]
"""The pieces of a file, in order."""


def write_jsonl(chosen: Iterable[Chosen]) -> Iterator[str]:
    """One JSON line for each sentence, with all predictions. `sequst train` reads its words and tags."""
    for each in chosen:
        yield as_json(each.to_dict()) + "\n"


def write_columns(chosen: Iterable[Chosen]) -> Iterator[str]:
    """One row for each word: word, probability of its tag, tag."""
    return with_mark(
        conll_block(each.prediction.words, [f"{confidence:.4f}" for confidence in each.prediction.confidences], each.tags)
        for each in chosen
    )


def write_tasks(format: str, chosen: Iterable[Chosen]) -> Iterator[str]:
    """Tasks for an annotation tool, with predicted entities and their confidences."""
    return tasks(format, (each.prediction.as_task() for each in chosen))


WRITERS: dict[str, Writer] = {
    "jsonl": write_jsonl,
    "conll": write_columns,
    **{name: functools.partial(write_tasks, name) for name in TASKS},
}


def find_writer(name: str) -> Writer:
    if name not in WRITERS:
        raise UsageError(f"--format {name}: use one of {', '.join(WRITERS)}")
    return WRITERS[name]
