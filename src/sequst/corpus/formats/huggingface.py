"""Hugging Face datasets: a saved folder, a parquet file or a name on the hub, with `tokens` and `ner_tags`.

Tags are strings, or numbers of a `ClassLabel` whose names are tags. NAME#SPLIT takes one split of several, and
NAME:CONFIGURATION one configuration.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.records import SEPARATORS, Malformed, Remark, id_of, is_small, require_text
from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.tags import is_tag, types_of
from sequst.errors import DataError, Problem, UsageError, shorten
from sequst.extras import needed
from sequst.files import atomic_folder, write_bytes
from sequst.inputs import Input, Place, Report

WORD_COLUMNS = ("tokens", "words")
TAG_COLUMNS = ("ner_tags", "tags")
SAVED = ("dataset_info.json", "dataset_dict.json")
"""One of these is in a folder that a dataset was saved to."""


def place_and_split(path: str | Path) -> tuple[Path, str]:
    """NAME#SPLIT taken apart; a path that is there is taken as it stands."""
    if Path(path).exists():
        return Path(path), ""
    name, _, split = str(path).partition("#")
    return Path(name), split


def is_on_the_hub(path: str | Path) -> bool:
    """Whether a dataset of this name is nowhere on the disk."""
    return not place_and_split(path)[0].exists()


def read_dataset(source: Input, tag_use: TagUse, report: Report, remark: Remark) -> Iterator[Sentence]:
    """Sentences with their tags as written (the scheme is turned later); a malformed row is reported and left out."""
    dataset = _load(source, report)
    if dataset is None:
        return
    columns = dataset.column_names
    word_column = next((name for name in WORD_COLUMNS if name in columns), None)
    tag_column = next((name for name in TAG_COLUMNS if name in columns), None) if tag_use != "ignored" else None
    if word_column is None:
        place = Source(source.name, 1, unit="record")
        report(place.problem(f"the columns {', '.join(columns)}", f"words in one of {', '.join(WORD_COLUMNS)}"))
        return
    names = None if tag_column is None else _class_names(dataset.features[tag_column])
    for ordinal, row in enumerate(dataset, 1):
        place = Source(source.name, ordinal, unit="record")
        try:
            yield _sentence(row, word_column, tag_column, names, tag_use, ordinal, place)
        except Malformed as bad:
            report(place.problem(bad.found, bad.expected))


def _load(source: Input, report: Report) -> Any:
    """The dataset; None where there is none to read, which is reported."""
    datasets = needed("datasets", "datasets")
    path, split = place_and_split(source.path)
    name = path.as_posix()
    try:
        if path.is_file():
            parquet, arrow = needed("pyarrow.parquet", "datasets"), needed("pyarrow", "datasets")
            return datasets.Dataset(parquet.read_table(arrow.BufferReader(source.data(report))))
        if any((path / saved).is_file() for saved in SAVED):
            loaded = datasets.load_from_disk(name)
        else:
            place, _, configuration = (name, "", "") if path.exists() else name.partition(":")
            loaded = datasets.load_dataset(place, configuration or None)
    except Exception as error:  # of the disk, of the net, of Arrow
        expected = (
            "a folder of save_to_disk or of parquet files, a parquet file, or the name of a dataset that can be had; "
            "where it has several configurations, NAME:CONFIGURATION"
        )
        told = " ".join(str(error).split())[:300]
        report(Source(source.name, 1, unit="record").problem(f"no dataset ({told})", expected))
        return None
    if not isinstance(loaded, dict):
        return loaded
    if split not in loaded and (split or len(loaded) > 1):
        raise UsageError(f"{source.name}: which split? Name one of {', '.join(loaded)}: {name}#{next(iter(loaded), 'train')}")
    return loaded[split or next(iter(loaded))]


def _class_names(feature: Any) -> list[str] | None:
    """The names of the numbers that a column of lists holds, or None where it holds strings."""
    inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", feature)
    names = getattr(inner, "names", None)
    return None if names is None else list(names)


def _sentence(
    row: dict[str, Any],
    word_column: str,
    tag_column: str | None,
    names: list[str] | None,
    tag_use: TagUse,
    ordinal: int,
    place: Source,
) -> Sentence:
    words = row[word_column]
    if not isinstance(words, list) or not words:
        raise Malformed(f"{word_column} {shorten(words)}", "a list of words")
    for word in words:
        if not isinstance(word, str) or not word.strip(" ") or SEPARATORS.search(word):
            raise Malformed(f"{shorten(word)} among the words", "non-empty strings without tabs and line ends")
        require_text(word)
    given = None if tag_column is None else row[tag_column]
    if given is None and tag_use == "required":
        raise Malformed("no tags", f"a labelled sentence, its tags in one of {', '.join(TAG_COLUMNS)}")
    tags = None if given is None else tuple(_tag(tag, names) for tag in given)
    if tags is not None and len(tags) != len(words):
        raise Malformed(f"{len(words)} words and {len(tags)} tags", "a tag for every word")
    return Sentence(tuple(words), tags, id_of(row.get("id"), ordinal), place)


def _tag(value: Any, names: list[str] | None) -> str:
    tag = names[value] if names is not None and isinstance(value, int) and 0 <= value < len(names) else value
    if not isinstance(tag, str) or not is_tag(tag):
        raise Malformed(f"{shorten(tag)} as a tag", "O, B-TYPE or I-TYPE, as a string or as the name of a ClassLabel")
    return tag


def write_dataset(path: Path, sentences: Sequence[Sentence]) -> None:
    """A parquet file where the path ends in .parquet, else a folder."""
    datasets = needed("datasets", "datasets")
    types = types_of(sentence.tags for sentence in sentences if sentence.tags is not None)
    names = ["O", *(f"{letter}-{type_}" for type_ in types for letter in "BI")]
    numbers = {name: number for number, name in enumerate(names)}
    whole = all(isinstance(sentence.id, int) and is_small(sentence.id) for sentence in sentences)
    features = datasets.Features(
        {
            "id": datasets.Value("int64" if whole else "string"),
            "tokens": datasets.Sequence(datasets.Value("string")),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=names)),
        }
    )
    rows = {
        "id": [s.id if whole or s.id is None else str(s.id) for s in sentences],
        "tokens": [list(s.words) for s in sentences],
        "ner_tags": [None if s.tags is None else [numbers[tag] for tag in s.tags] for s in sentences],
    }
    dataset = datasets.Dataset.from_dict(rows, features=features)
    if path.suffix == ".parquet":
        _write_parquet(path, dataset)
        return
    shown = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        with atomic_folder(path) as folder:
            dataset.save_to_disk(str(folder))
    finally:
        if not shown:
            datasets.enable_progress_bars()


def _write_parquet(path: Path, dataset: Any) -> None:
    buffer = io.BytesIO()
    needed("pyarrow.parquet", "datasets").write_table(dataset.data.table, buffer)
    write_bytes(path, buffer.getvalue(), "nothing half-written was left behind")


def fetch_dataset(name: str, path: Path) -> None:
    """Copy a dataset of the hub, rows and types as they are, into a parquet file: the hub may change, or be out of reach."""

    def stop(problem: Problem) -> None:
        raise DataError([problem])

    _write_parquet(path, _load(Place(name), stop))
