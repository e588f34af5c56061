"""Input files, with notes on how they were read."""

from __future__ import annotations

from sequst.cli.console import note
from sequst.corpus.formats.detect import Guess, guess, open_input
from sequst.corpus.formats.read import read_file
from sequst.corpus.sentence import Sentence
from sequst.inputs import Input


def read_tagged(path: str, format: str, word_column: int | None, tag_column: int | None) -> list[Sentence]:
    """The sentences of a file that must have tags."""
    reading = read_file(path, format=format, word_column=word_column, tag_column=tag_column)
    sentences = reading.require()
    for line in reading.notes:
        note(line)
    return sentences


def open_stream(path: str, format: str, word_column: int | None) -> tuple[Input, Guess]:
    """What `sequst.corpus.formats.read.stream` takes: the opened file, and how to read it."""
    source = open_input(path, format=format)
    how = guess(source, format, word_column)
    if how.by_content:
        note(f"{source.name}: read as {how}")
    return source, how
