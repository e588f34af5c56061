"""Detect the format of a file: as given, by extension, or by content."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

from sequst.corpus.formats.columns import fields_of
from sequst.corpus.formats.registry import BY_ENDING, FORMATS, LABEL_KEYS, Layout, place_and_split
from sequst.corpus.tags import is_tag
from sequst.errors import UsageError, nearest, shorten
from sequst.files import as_path, require_regular
from sequst.inputs import Input, Place

LOOKED_AT = 10_000
"""Number of lines that decide whether the tag comes first."""
_KEYS = {
    **dict.fromkeys(("answer", "tokens", "_input_hash", "_task_hash"), "prodigy"),
    **dict.fromkeys(LABEL_KEYS, "doccano"),
}
"""Keys of JSON lines that tell a tool."""
_JSON_LIST = re.compile(r"""\s*\[\s*(\{\s*["}]|$)""")
"""The beginning of a list of records."""


class Guess(NamedTuple):
    """The format of a file, the layout of its columns, and why."""

    format: str
    layout: Layout
    reason: str

    @property
    def by_content(self) -> bool:
        """Whether the content of the file decided on more than plain text, so that the user should see it."""
        return self.format != "text" and not re.fullmatch(r"as told|by its extension \S+", self.reason)

    def __str__(self) -> str:
        columns = f" (word in column {self.layout.word}, tag in column {self.layout.tag})" if self.format == "conll" else ""
        return f"{self.format}{columns}, {self.reason}"


def open_input(path: str | Path, name: str | None = None, format: str = "auto") -> Input:
    """A file, or the folder or name of a format that may be one."""
    try:
        folder, _ = place_and_split(as_path(path))
        if not folder.is_dir() and (format == "brat" or _ending(str(path)) == ".ann"):
            require_regular(folder)  # its text lies beside it
        if format == "datasets":
            is_place = not Path(path).is_file()
        else:
            is_place = folder.is_dir() and (format == "brat" or (format == "auto" and _of_folder(folder) is not None))
    except OSError as error:  # a folder that nobody may look into
        raise UsageError(f"{name or str(path)[-300:]}: cannot be opened ({error.strerror})") from None
    return Place(path, name) if is_place else Input(path, name)


def guess(source: Input, format: str = "auto", word_column: int | None = None, tag_column: int | None = None) -> Guess:
    """Decide how to read a file. Explicit flags are never overruled."""
    _require_format(format)
    chosen, reason = (format, "as told") if format != "auto" else _recognise(source)
    layout = Layout(0 if word_column is None else word_column, -1 if tag_column is None else tag_column)
    if chosen == "conll" and word_column is None and tag_column is None and _tag_comes_first(source.head()):
        layout, reason = Layout(word=1, tag=0), f"{reason}; rows begin with their tag"
    return Guess(chosen, layout, reason)


def guess_output(path: str | Path, format: str = "auto") -> Guess:
    """Decide how to write a file: as told, or by its extension."""
    _require_format(format)
    if format != "auto":
        return Guess(format, Layout(), "as told")
    ending = _ending(str(path))
    if ending not in BY_ENDING:
        raise UsageError(f"cannot tell the format of {path} by its extension; say which, e.g. --to brat ({', '.join(FORMATS)})")
    return Guess(BY_ENDING[ending], Layout(), f"by its extension {ending}")


def _require_format(name: str) -> None:
    if name not in ("auto", *FORMATS):
        raise UsageError(f"unknown format {name!r}; {nearest(name, ('auto', *FORMATS))}")


def _ending(name: str) -> str:
    return PurePath(name.lower().removesuffix(".gz")).suffix


def _of_folder(folder: Path) -> tuple[str, str] | None:
    """What a folder holds, and why; None where it is nothing that is read as a whole."""
    for name, format in FORMATS.items():
        for pattern in format.in_folder:
            found = next((path for path in folder.glob(pattern) if path.is_file()), None)
            if found is not None:
                return name, f"by its content: there is {found.name}"
    return None


def _recognise(source: Input) -> tuple[str, str]:
    """The format, and why."""
    if isinstance(source, Place):
        return _of_folder(place_and_split(source.path)[0]) or ("datasets", "by its name")
    ending = _ending(source.name)
    if ending in BY_ENDING and ending != ".txt":
        format, reason = BY_ENDING[ending], f"by its extension {ending}"
    else:
        format, reason = _by_content(source.head(), may_be_json=ending != ".txt")
    if format == "jsonl":
        return _tool_of(source.head()) or (format, reason)
    if format == "labelstudio" and _has_fields(source.head()):
        return "argilla", "by its content: there are fields"
    return format, reason


def _by_content(lines: Iterable[str], may_be_json: bool) -> tuple[str, str]:
    """Rows whose last field is always a tag are columns; JSON, where allowed, is JSON; all else is text.

    A single row needs a tab in it or an empty line behind it to be told from a sentence that ends in, say, B-52.
    """
    rows, separated = 0, False
    for number, line in enumerate(lines, 1):
        fields = fields_of(line)
        if not fields:
            separated |= rows > 0
            continue
        if may_be_json and not rows and line.lstrip().startswith("{"):
            return "jsonl", f"by its content: line {number} begins with {{"
        if may_be_json and not rows and _JSON_LIST.match(line):
            return "labelstudio", f"by its content: line {number} begins a list"
        if len(fields) < 2 or not is_tag(fields[-1]):
            return "text", f"by its content: line {number}, {shorten(line, 40)}, does not end in a tag"
        separated |= rows > 0 or "\t" in line
        rows += 1
    if separated:
        return "conll", "by its content: every row ends in a tag"
    return "text", "by its content: a single line" if rows else "by its content: it is empty"


def _tool_of(lines: Iterable[str]) -> tuple[str, str] | None:
    """Which tool has written JSON lines, by the first line that has a key of its own: who has annotated little may have begun
    further down."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict) or "text" not in record or "words" in record:
            return None
        for key, tool in _KEYS.items():
            if key in record and (tool == "prodigy" or "spans" not in record):
                return tool, f"by its content: line {number} has {key}"
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
    for fields in map(fields_of, itertools.islice(lines, LOOKED_AT)):
        if len(fields) > 1:
            rows += 1
            first += is_tag(fields[0])
            last += is_tag(fields[-1])
    return 2 * first > rows and first > last
