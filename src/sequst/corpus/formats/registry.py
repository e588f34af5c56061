"""The formats: how files are recognised, what they lack, which module reads and writes them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sequst.errors import DataError, Problem
from sequst.files import as_path
from sequst.inputs import Input, Report

if TYPE_CHECKING:
    from sequst.corpus.formats.annotated import Misfit
    from sequst.corpus.sentence import Sentence

TagUse = Literal["required", "optional", "hidden", "ignored"]
"""Labelled files need tags and other files may have them; those of unlabelled files are for diagnosis alone, so that invalid
ones are dropped with a note; `predict` does not look at them."""

SAVED = ("dataset_info.json", "dataset_dict.json")
"""One of these is in a folder that a dataset was saved to."""
POLICIES = ("error", "drop", "trim")
"""What to do with what does not fit: write nothing, drop it, or trim it."""
CUT = "words as they were cut"
OTHER_CUT = "texts of words that we would cut in another way"
MARKS = "marks for judging"


class Format(NamedTuple):
    """A format. To add one: a row in FORMATS, and a module that is imported only when it is used.

    The module has `read(request)`, which gives sentences, and `write(path, sentences)`, or `task(sentence, scores)` where an
    annotation tool imports JSON.
    """

    module: str
    endings: tuple[str, ...] = ()
    in_folder: tuple[str, ...] = ()
    """Files, as patterns, that show that a folder is of this format."""
    lacks: tuple[str, ...] = ()
    """What it cannot hold."""
    tasks: Literal["", "lines", "list"] = ""
    """Layout of a file of tasks: one a line, or a JSON list."""
    unique_ids: bool = False
    """Whether no id may come twice."""

    def load(self) -> Any:
        return importlib.import_module(f"sequst.corpus.formats.{self.module}")

    def read(self, request: Request) -> Iterator[Sentence]:
        sentences: Iterator[Sentence] = self.load().read(request)
        return sentences


FORMATS = {
    "conll": Format("columns", (".conll", ".bio", ".tsv"), lacks=("ids", "texts", MARKS)),
    "jsonl": Format("jsonl", (".jsonl",), lacks=(OTHER_CUT,)),
    "text": Format("plain", (".txt",), lacks=("ids", "tags", CUT, MARKS)),
    "labelstudio": Format("labelstudio", (".json",), lacks=(CUT,), tasks="list", unique_ids=True),
    "doccano": Format("doccano", lacks=(CUT,), tasks="lines", unique_ids=True),
    "prodigy": Format("prodigy", tasks="lines", unique_ids=True),
    "argilla": Format("argilla", lacks=(CUT,), tasks="list", unique_ids=True),
    "spacy": Format("docbin", (".spacy",), unique_ids=True),
    "brat": Format("brat", (".ann",), ("**/*.ann",), lacks=("ids", CUT, MARKS)),
    "datasets": Format("huggingface", (".parquet",), (*SAVED, "**/*.parquet"), ("texts",)),
}
TASKS = tuple(name for name, format in FORMATS.items() if format.tasks)
"""Formats of annotation tools that import JSON."""
BY_ENDING = {ending: name for name, format in FORMATS.items() for ending in format.endings}
LABEL_KEYS = ("label", "labels", "entities", "annotations")
"""Of different versions of doccano."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns hold the word and the tag: 0 is the first, -1 the last."""

    word: int = 0
    tag: int = -1


def stop(problem: Problem) -> None:
    """Report a malformed place by raising it."""
    raise DataError([problem])


@dataclass(frozen=True)
class Request:
    """What to read, and callbacks for everything that is not a sentence."""

    source: Input
    layout: Layout
    tag_use: TagUse
    report: Report = stop
    """Receives malformed places."""
    remark: Callable[[str], None] = lambda remark: None
    """Receives notes for the user."""
    policy: str = "error"
    """What to do with what tags cannot hold: report it, `drop` it or `trim` it."""
    lost: Callable[[Misfit], None] = lambda misfit: None
    """Receives what was dropped or trimmed."""
    whole: bool = False
    """Whether all sentences are kept, so that the size of the file is limited."""

    @property
    def with_tags(self) -> bool:
        return self.tag_use != "ignored"

    def lines(self) -> Iterator[tuple[int, str]]:
        return self.source.lines(self.report, self.whole)


def place_and_split(path: str | Path) -> tuple[Path, str]:
    """NAME#SPLIT of a dataset taken apart; a path that is there is taken as it stands."""
    if Path(path).exists():
        return Path(path), ""
    name, _, split = str(path).partition("#")
    return Path(name), split


def is_on_the_hub(path: str | Path) -> bool:
    """Whether a dataset of this name is nowhere on the disk."""
    return not place_and_split(as_path(path))[0].exists()
