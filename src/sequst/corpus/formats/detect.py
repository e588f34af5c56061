"""Which format a file is in: as told, by its extension, or by its content; and the reason, so that a guess can be shown."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal, get_args

from sequst.corpus.formats.columns import DOCUMENT_START, Layout, fields_of, is_blank
from sequst.corpus.formats.doccano import LABEL_KEYS
from sequst.corpus.formats.huggingface import SAVED, place_and_split
from sequst.corpus.tags import is_tag
from sequst.errors import UsageError, nearest, shorten
from sequst.inputs import Input, Place

Format = Literal["conll", "jsonl", "text", "labelstudio", "doccano", "prodigy", "argilla", "spacy", "brat", "datasets"]
FORMATS: tuple[str, ...] = ("auto", *get_args(Format))

_BY_EXTENSION: dict[str, Format] = {
    ".conll": "conll",
    ".bio": "conll",
    ".tsv": "conll",
    ".jsonl": "jsonl",
    ".json": "labelstudio",
    ".spacy": "spacy",
    ".ann": "brat",
    ".parquet": "datasets",
}
_OF_PRODIGY = ("answer", "tokens", "_input_hash", "_task_hash")


_IN_FOLDERS: tuple[tuple[str, Format], ...] = (("*.ann", "brat"), ("*.parquet", "datasets"))
LOOKED_AT = 10_000
"""Lines that decide whether the tag comes first."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The format of a file, the layout of its columns, and why."""

    format: Format
    layout: Layout
    reason: str

    def __str__(self) -> str:
        columns = f" (word in column {self.layout.word}, tag in column {self.layout.tag})" if self.format == "conll" else ""
        return f"{self.format}{columns}, {self.reason}"


def open_input(path: str | Path, name: str | None = None, format: str = "auto") -> Input:
    """A file, or the folder or name of a format that may be one."""
    folder, _ = place_and_split(path)
    if format == "datasets" and not Path(path).is_file():
        return Place(path, name)
    if folder.is_dir() and (format == "brat" or (format == "auto" and _of_folder(folder) is not None)):
        return Place(path, name)
    return Input(path, name)


def _of_folder(folder: Path) -> tuple[Format, str] | None:
    """What a folder holds; None where it is nothing that is read as a whole."""
    for name in SAVED:
        if (folder / name).is_file():
            return "datasets", f"by its content: there is a {name}"
    for pattern, format in _IN_FOLDERS:
        found = next(folder.rglob(pattern), None)
        if found is not None:
            return format, f"by its content: there is {found.name}"
    return None


def guess_output(path: str | Path, format: str = "auto") -> Guess:
    """Decide how to write a file: as told, or by its extension."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}; {nearest(format, FORMATS)}")
    extension = PurePath(str(path).lower().removesuffix(".gz")).suffix
    if format != "auto":
        return Guess(format, Layout(), "as told")  # type: ignore[arg-type]
    known: dict[str, Format] = {**_BY_EXTENSION, ".txt": "text"}
    if extension not in known:
        raise UsageError(
            f"cannot tell the format of {path} by its extension; say which, e.g. --to brat ({', '.join(FORMATS[1:])})"
        )
    return Guess(known[extension], Layout(), f"by its extension {extension}")


def guess(source: Input, format: str = "auto", word_column: int | None = None, tag_column: int | None = None) -> Guess:
    """Decide how to read a file; explicit flags are never overruled."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}; {nearest(format, FORMATS)}")
    extension = PurePath(source.name.lower().removesuffix(".gz")).suffix
    chosen: Format
    if format != "auto":
        chosen, reason = format, "as told"  # type: ignore[assignment]
    elif isinstance(source, Place):
        chosen, reason = _of_folder(place_and_split(source.path)[0]) or ("datasets", "by its name")
    elif extension in _BY_EXTENSION:
        chosen, reason = _BY_EXTENSION[extension], f"by its extension {extension}"
    else:
        chosen, reason = _by_content(source.head(), may_be_jsonl=extension != ".txt")
    if format == "auto" and chosen == "jsonl":
        chosen, reason = _by_keys(source.head()) or (chosen, reason)
    if format == "auto" and chosen == "labelstudio" and _has_fields(source.head()):
        chosen, reason = "argilla", "by its content: there are fields"
    layout = Layout(0 if word_column is None else word_column, -1 if tag_column is None else tag_column)
    if chosen == "conll" and word_column is None and tag_column is None:
        if _tag_comes_first(source.head()):
            layout, reason = Layout(word=1, tag=0), f"{reason}; rows begin with their tag"
    return Guess(chosen, layout, reason)


_JSON_LIST = re.compile(r"""\s*\[\s*(\{\s*["}]|$)""")
"""The beginning of a list of records."""


def _by_content(lines: Iterable[str], may_be_jsonl: bool) -> tuple[Format, str]:
    """Rows whose last field is always a tag are columns; JSON objects, where allowed, are JSON lines; all else is text.

    A single row needs a tab in it or an empty line behind it to be told from a sentence that ends in, say, B-52.
    """
    rows, separated = 0, False
    for number, line in enumerate(lines, 1):
        if is_blank(line):
            separated = separated or rows > 0
            continue
        fields = fields_of(line)
        if fields[0] == DOCUMENT_START:
            continue
        if may_be_jsonl and not rows and line.lstrip().startswith("{"):
            return "jsonl", f"by its content: line {number} begins with {{"
        if may_be_jsonl and not rows and _JSON_LIST.match(line):
            return "labelstudio", f"by its content: line {number} begins a list"
        if len(fields) < 2 or not is_tag(fields[-1]):
            return "text", f"by its content: line {number}, {shorten(line, 40)}, does not end in a tag"
        separated = separated or rows > 0 or "\t" in line
        rows += 1
    if not rows:
        return "text", "by its content: it is empty"
    return ("conll", "by its content: every row ends in a tag") if separated else ("text", "by its content: a single line")


def _by_keys(lines: Iterable[str]) -> tuple[Format, str] | None:
    """Which tool has written JSON lines, by the keys of the first that has any of its own: who has annotated little may have
    begun further down."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                return None
            if not isinstance(record, dict) or "text" not in record or "words" in record:
                return None
            for format, keys in (("prodigy", _OF_PRODIGY), ("doccano", () if "spans" in record else LABEL_KEYS)):
                found = next((key for key in keys if key in record), None)
                if found is not None:
                    return format, f"by its content: line {number} has {found}"  # type: ignore[return-value]
            if "spans" in record:
                return None
    return None


def _has_fields(lines: Iterable[str]) -> bool:
    """Whether the first lines, or the beginning of a single one, name the `fields` of a record."""
    head = "\n".join(line[:LOOKED_AT] for line in itertools.islice(lines, 100))
    return re.search(r'"fields"\s*:', head) is not None and re.search(r'"data"\s*:\s*\{', head) is None


def _tag_comes_first(lines: Iterable[str]) -> bool:
    """Whether most rows begin with a tag, and more than end in one; malformed rows are for the reader to report."""
    rows = first = last = 0
    for line in itertools.islice(lines, LOOKED_AT):
        fields = [] if is_blank(line) else fields_of(line)
        if len(fields) > 1 and fields[0] != DOCUMENT_START:
            rows += 1
            first += is_tag(fields[0])
            last += is_tag(fields[-1])
    return 2 * first > rows and first > last
