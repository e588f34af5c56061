"""Chosen sentences as text for whoever labels them. To add a format: a function, and a row in WRITERS."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

from sequst.annotation.judging import SHARE
from sequst.annotation.next import Chosen
from sequst.corpus.formats.columns import conll_block
from sequst.corpus.formats.registry import FORMATS, MARKS, TASKS
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
    """One row for each word: word, probability of its tag, tag; without a prediction the word alone."""
    return with_mark(map(_rows, chosen))


def _rows(chosen: Chosen) -> str:
    if chosen.judging:
        raise UsageError(NO_PLACE.format("conll"))
    if not chosen.predicted:
        return conll_block(chosen.sentence.words)
    return conll_block(chosen.prediction.words, [f"{each:.4f}" for each in chosen.prediction.confidences], chosen.tags)


def write_tasks(format: str, chosen: Iterable[Chosen]) -> Iterator[str]:
    """Tasks for an annotation tool, with predicted entities and their confidences, where they were predicted."""
    return tasks(format, (each.as_task() for each in chosen))


WRITERS: dict[str, Writer] = {
    "jsonl": write_jsonl,
    "conll": write_columns,
    **{name: functools.partial(write_tasks, name) for name in TASKS},
}
NO_PLACE = f"--format {{}} has no place for {MARKS}; use --judging 0, or one of " + ", ".join(
    name for name in WRITERS if MARKS not in FORMATS[name].lacks
)


def find_writer(name: str) -> Writer:
    if name not in WRITERS:
        raise UsageError(f"--format {name}: use one of {', '.join(WRITERS)}")
    return WRITERS[name]


def share_for(name: str, share: float | None) -> float:
    """The share of sentences for judging in a file of this format: as given, or else `SHARE`, or none where the format has no
    place for marks. An error if marks are asked for that it cannot hold."""
    if MARKS not in FORMATS[name].lacks:
        return SHARE if share is None else share
    if share:
        raise UsageError(NO_PLACE.format(name))
    return 0.0
