"""Hugging Face datasets: a saved folder, a parquet file or a name on the hub, with `tokens` and `ner_tags`.

Tags are strings, or numbers of a `ClassLabel` whose names are tags. NAME#SPLIT takes one split of several, and
NAME:CONFIGURATION one configuration.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sequst.corpus.formats.annotated import sentences_of
from sequst.corpus.formats.records import each, id_of, is_for_judging, is_small, numbered, words_with_tags
from sequst.corpus.formats.registry import SAVED, Layout, Request, place_and_split
from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.tags import types_of
from sequst.errors import SequstError, UsageError, said
from sequst.extras import needed
from sequst.files import atomic_folder, write_bytes
from sequst.inputs import Place, require_regular_files, require_small

WORD_COLUMNS = ("tokens", "words")
TAG_COLUMNS = ("ner_tags", "tags")


def read(request: Request) -> Iterator[Sentence]:
    """Sentences with their tags as written (the scheme is turned later); a malformed row is reported and left out."""
    dataset = _load(request)
    if dataset is None:
        return
    columns = dataset.column_names
    word_column = next((column for column in WORD_COLUMNS if column in columns), None)
    tag_columns = TAG_COLUMNS if request.with_tags else ()
    tag_column = next((column for column in tag_columns if column in columns), None)
    if word_column is None:
        place = Source(request.source.name, 1, unit="record")
        request.report(place.problem(f"the columns {', '.join(columns)}", f"words in one of {', '.join(WORD_COLUMNS)}"))
        return
    names = [] if tag_column is None else _class_names(dataset.features[tag_column])

    def sentence(row: dict[str, Any], number: int, place: Source) -> Sentence:
        given = None if tag_column is None else row[tag_column]
        tags = given and [names[tag] if isinstance(tag, int) and 0 <= tag < len(names) else tag for tag in given]
        return words_with_tags(row[word_column], tags, id_of(row.get("id"), number), place, is_for_judging(row))

    yield from sentences_of(each(numbered(request.source, _rows(dataset, request)), sentence, request.report), request)


def _load(request: Request) -> Any:
    """The dataset; None if it cannot be read, which is reported."""
    source, datasets = request.source, needed("datasets", "datasets")
    path, split = place_and_split(source.path)
    name = path.as_posix()
    try:
        if path.is_file():
            return datasets.Dataset(_table(source.name, source.data(request.report)))
        if path.is_dir():
            require_regular_files(path)
        if any((path / saved).is_file() for saved in SAVED):
            loaded = datasets.load_from_disk(name)
        else:
            place, _, configuration = (name, "", "") if path.exists() else name.partition(":")
            loaded = datasets.load_dataset(place, configuration or None)
    except SequstError:
        raise
    except Exception as error:  # of the disk, of the net, of Arrow
        _report_damage(request, 1, error)
        return None
    if not isinstance(loaded, dict):
        return loaded
    if split not in loaded and (split or len(loaded) > 1):
        raise UsageError(f"{source.name}: which split? Name one of {', '.join(loaded)}: {name}#{next(iter(loaded), 'train')}")
    return loaded[split or next(iter(loaded))]


def _report_damage(request: Request, record: int, error: Exception) -> None:
    expected = (
        "a folder of save_to_disk or of parquet files, a parquet file, or the name of a dataset that can be had; "
        "where it has several configurations, NAME:CONFIGURATION"
    )
    told = said(error)
    request.report(Source(request.source.name, record, unit="record").problem(f"no dataset ({told})", expected))


def _rows(dataset: Any, request: Request) -> Iterator[dict[str, Any]]:
    """The rows, up to one that Arrow cannot turn into values of Python."""
    given = 0
    try:
        for row in dataset:
            given += 1
            yield row
    except Exception as error:
        _report_damage(request, given + 1, error)


def _table(name: str, data: bytes) -> Any:
    """The table of a parquet file, in pieces: it may be a thousand times as large, whatever the file says of that."""
    parquet, arrow = needed("pyarrow.parquet", "datasets"), needed("pyarrow", "datasets")
    file = parquet.ParquetFile(arrow.BufferReader(data))
    batches, size = [], 0
    for batch in file.iter_batches(1000):
        batches.append(batch)
        size += batch.nbytes
        require_small(name, size)
    return arrow.Table.from_batches(batches, file.schema_arrow)


def _class_names(feature: Any) -> list[str]:
    """The names of the numbers that a column of lists holds; none where it holds strings."""
    inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", feature)
    return list(getattr(inner, "names", None) or [])


def write(path: Path, sentences: Sequence[Sentence]) -> None:
    """A parquet file where the path ends in .parquet, else a folder."""
    datasets = needed("datasets", "datasets")
    types = types_of(sentence.tags for sentence in sentences if sentence.tags is not None)
    tags = datasets.ClassLabel(names=["O", *(f"{letter}-{type_}" for type_ in types for letter in "BI")])
    whole = all(isinstance(sentence.id, int) and is_small(sentence.id) for sentence in sentences)
    features = {
        "id": datasets.Value("int64" if whole else "string"),
        "tokens": datasets.Sequence(datasets.Value("string")),
        "ner_tags": datasets.Sequence(tags),
    }
    rows = {
        "id": [s.id if whole or s.id is None else str(s.id) for s in sentences],
        "tokens": [list(s.words) for s in sentences],
        "ner_tags": [None if s.tags is None else tags.str2int(list(s.tags)) for s in sentences],
    }
    if any(sentence.judging for sentence in sentences):
        features["judging"], rows["judging"] = datasets.Value("bool"), [sentence.judging for sentence in sentences]
    dataset = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    if path.suffix == ".parquet":
        _write_parquet(path, dataset)
    else:
        _write_folder(path, dataset)


def _write_folder(path: Path, dataset: Any) -> None:
    datasets = needed("datasets", "datasets")
    hidden = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        with atomic_folder(path) as folder:
            dataset.save_to_disk(str(folder))
    finally:
        if not hidden:
            datasets.enable_progress_bars()


def _write_parquet(path: Path, dataset: Any) -> None:
    buffer = io.BytesIO()
    needed("pyarrow.parquet", "datasets").write_table(dataset.data.table, buffer)
    write_bytes(path, buffer.getvalue(), "nothing half-written was left behind")


def fetch_dataset(name: str, path: Path) -> None:
    """Copy a dataset of the hub, rows and types as they are, into a parquet file: the hub may change, or be out of reach."""
    _write_parquet(path, _load(Request(Place(name), Layout(), "optional")))
