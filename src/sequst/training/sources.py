"""The inputs of a run as files, so that it can be resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sequst.corpus.formats.detect import guess, open_input
from sequst.corpus.formats.jsonl import write_jsonl
from sequst.corpus.formats.read import stream
from sequst.corpus.formats.registry import TagUse, is_on_the_hub
from sequst.corpus.sentence import Sentence
from sequst.errors import DataError, Problem, UsageError, shorten
from sequst.files import HALVES, as_path
from sequst.inputs import STDIN, require_one_stdin
from sequst.training.data import DataFile, Files
from sequst.training.seeds import derive
from sequst.training.settings import Settings

Source = str | Path | DataFile | Sequence[Sentence]
"""A file, a file with how to read it, or sentences."""


def as_files(given: Mapping[str, Source], spool: Path) -> Files:
    """Every source as a file. Streams, sentences and hub datasets are written to the spool, which the run directory takes
    over."""
    require_one_stdin(map(_path_of, given.values()))
    return {role: _as_file(role, source, spool) for role, source in given.items()}


def read_tagged(source: Source) -> tuple[Sequence[Sentence], list[str]]:
    """(the sentences of a source, all with tags where it is a file, notes on what was guessed)."""
    if isinstance(source, str | Path):
        source = DataFile(str(source))
    return source.read("required") if isinstance(source, DataFile) else (source, [])


DRAWN = "drawn.jsonl"
"""Name of the sentences that were drawn from a larger text."""
_MOST_PROBLEMS = 1000
"""Malformed places after which a file is not read on."""


def drawn(file: DataFile, settings: Settings, spool: Path) -> tuple[DataFile, int]:
    """(the file, the number of its sentences); if a round does not learn all of them, a copy in the spool of those that the
    rounds learn, in the order of a random draw.

    The file is read as a stream, so it may be larger than memory. Tags that are not all valid are not copied.
    """
    most, seed = settings.round_size * settings.max_rounds, derive(settings.seed, "text")
    if not most:
        return file, 0
    try:
        found, count = _reservoir(file, most, seed, "hidden")
    except DataError:
        found, count = _reservoir(file, most, seed, "ignored")
    if count <= settings.round_size:
        return file, count
    copy = spool / DRAWN
    write_jsonl(copy, found)
    return DataFile(str(copy), "jsonl", shown=file.shown or file.path), count


def _reservoir(file: DataFile, most: int, seed: int, tag_use: TagUse) -> tuple[list[Sentence], int]:
    """(at most so many sentences of a file, in random order; how many it has)."""
    source = open_input(file.path, file.shown or None, file.format)
    how = guess(source, file.format, file.word_column, file.tag_column)
    rng, found, count, problems = random.Random(seed), [], 0, list[Problem]()

    def report(problem: Problem) -> None:
        problems.append(problem)
        if len(problems) == _MOST_PROBLEMS:
            raise DataError(problems)

    for count, sentence in enumerate(stream(source, how, tag_use, report), 1):
        if count <= most:
            found.append(sentence)
        elif (place := rng.randrange(count)) < most:
            found[place] = sentence
    if problems:
        raise DataError(problems)
    rng.shuffle(found)
    return found, count


def _path_of(source: Source) -> str | None:
    if isinstance(source, DataFile):
        return source.path
    return str(source) if isinstance(source, str | Path) else None


def _as_file(role: str, source: Source, spool: Path) -> DataFile:
    if isinstance(source, str | Path):
        source = DataFile(str(source))
    if isinstance(source, DataFile):
        return _spooled(role, source, spool)
    strangers = [each for each in source if not isinstance(each, Sentence)]
    if strangers:
        raise UsageError(
            f"{role}: found {shorten(strangers[0])} in it; give a file, or a list of Sentence, e.g. of sequst.read(FILE)"
        )
    _require_whole_characters(role, source)
    copy = spool / f"{role}.jsonl"
    write_jsonl(copy, source)
    return DataFile(str(copy), shown=role)


def _spooled(role: str, source: DataFile, spool: Path) -> DataFile:
    """The file itself if it can be read again, else a copy."""
    path, stdin = as_path(source.path), source.path == STDIN
    if source.format == "datasets" and not stdin and is_on_the_hub(source.path):
        from sequst.corpus.formats.huggingface import fetch_dataset

        fetch_dataset(source.path, spool / f"{role}.parquet")
        return dataclasses.replace(source, path=str(spool / f"{role}.parquet"), shown=source.path)
    if not stdin and (path.is_file() or path.is_dir() or not path.exists()):
        return source
    with contextlib.ExitStack() as stack:
        stream = sys.stdin.buffer if stdin else stack.enter_context(path.open("rb"))
        shutil.copyfileobj(stream, stack.enter_context((spool / role).open("wb")))
    return dataclasses.replace(source, path=str(spool / role), shown="<stdin>" if stdin else source.path)


def _require_whole_characters(role: str, sentences: Sequence[Sentence]) -> None:
    """Python takes lone surrogates for text, and no file does."""
    for number, sentence in enumerate(sentences, 1):
        for text in (*sentence.words, *(sentence.tags or ()), str(sentence.id)):
            if HALVES.search(text):
                raise UsageError(
                    f"{role}: its sentence {number} has half a character in {shorten(text)}; give whole ones, no surrogates"
                )
