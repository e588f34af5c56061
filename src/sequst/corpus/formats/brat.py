"""BRAT standoff: a text beside a file of annotations, `NAME.txt` and `NAME.ann`, alone or many in a folder.

A line of the text is a sentence, as BRAT shows it. Offsets count the characters (code points) of the file, both of CR LF.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from sequst.corpus.formats.annotated import Annotated, Lost, Mark, checked, marks_of, sentences_of
from sequst.corpus.formats.records import Ids, each
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import LINE_BREAKS, Sentence, Source
from sequst.errors import Malformed, Problem, UsageError, shorten
from sequst.files import atomic_folder, atomic_text, with_mark
from sequst.inputs import Input, Report

LONGEST_NAME = 200
"""Bytes. File systems take 255, of which `.ann` and the names of unfinished files need some."""
_NUMBER = "-?[0-9]{1,18}"
_TEXT_BOUND = re.compile(rf"(T\S*)\t(\S+) ({_NUMBER} {_NUMBER}(?:;{_NUMBER} {_NUMBER})*)\t(.*)")
_KINDS = {
    "R": "a relation", "E": "an event", "A": "an attribute", "M": "an attribute", "N": "a normalisation", "#": "a note",
    "*": "an equivalence",
}  # fmt: skip


def read(request: Request) -> Iterator[Sentence]:
    return sentences_of(_lines(request), request)


def _lines(request: Request) -> Iterator[tuple[Source, Annotated]]:
    path = request.source.path
    if not path.is_dir():
        beside = path.with_suffix(".txt")
        if not beside.is_file():
            raise UsageError(f"{request.source.name}: no {beside.name} beside it, which it annotates")
        yield from _document(beside, path, beside.stem, request)
        return
    for found in path.rglob("*.ann"):
        beside = found.with_suffix(".txt")
        if _is_file(found, request.report) and not beside.exists():
            request.report(Problem(str(found), 1, "no text", f"{beside.name} beside it"))
    for text in sorted((text for text in path.rglob("*.txt") if _is_file(text, request.report)), key=_natural):
        yield from _document(text, text.with_suffix(".ann"), text.relative_to(path).with_suffix("").as_posix(), request)


def _is_file(path: Path, report: Report) -> bool:
    """Whether it can be read. A pipe, which could make us wait for ever, is reported; a folder is not, nor read as a file."""
    if not path.is_file() and not path.is_dir():
        report(Problem(str(path), 1, "no regular file", "a text; a pipe, a device or a broken link cannot be a document"))
    return path.is_file()


def _natural(path: Path) -> tuple[list[tuple[int, str]], str]:
    """2 before 10, and of 1 and 01 always the same first."""
    parts = [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", str(path)) if part]
    return parts, str(path)


def _text_of(path: Path, report: Report) -> str | None:
    data = Input(path).data(report)
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
        if "\0" not in text:
            return text
        at, found, expected = data.index(b"\0"), "a NUL byte", "text; is this a binary file?"
    except UnicodeDecodeError as error:
        at, found = error.start, f"byte 0x{data[error.start]:02x}, which is not UTF-8"
        expected = "UTF-8; convert it, e.g. iconv -f LATIN1 -t UTF-8"
    report(Problem(str(path), data[:at].count(b"\n") + 1, found, expected))
    return None


def _document(path: Path, annotations: Path, name: str, request: Request) -> Iterator[tuple[Source, Annotated]]:
    """The lines of a text, each with the marks that lie on it; without a file of annotations nobody has annotated it."""
    is_annotated = request.with_tags and annotations.is_file()
    text = _text_of(path, request.report)
    said = _text_of(annotations, request.report) if is_annotated else ""
    if text is None or said is None:
        return
    marks, lost = _marks(said, text, str(annotations), request.report)
    lines: list[tuple[int, str, list[Mark]]] = []
    texts = text.split("\n")
    starts = list(itertools.accumulate((len(line) + 1 for line in texts[:-1]), initial=0))
    on: list[list[Mark]] = [[] for _ in texts]
    for mark in marks:
        row = bisect_right(starts, mark.start) - 1
        if mark.start < starts[row] + len(texts[row]):
            on[row].append(mark._replace(start=mark.start - starts[row], end=mark.end - starts[row]))
    for number, (line, here) in enumerate(zip(texts, on, strict=True), 1):
        if line.strip():
            lines.append((number, line.removesuffix("\r"), here))
        else:
            lost += [Lost(f"{mark.type} on a line of white space", source=mark.source) for mark in here]
    for number, line, here in lines:
        id_ = _number(name if len(lines) == 1 else f"{name}-{number}")
        yield Source(str(path), number), Annotated(line, id_, answers=[here] if is_annotated else [], lost=lost)
        lost = []  # they are of the document, and told with its first line


def _number(name: str) -> str | int:
    """A name that is a number as such: numbers are what sentences without ids have."""
    return int(name) if re.fullmatch(r"0|[1-9][0-9]{0,17}", name) else name


def _marks(said: str, text: str, name: str, report: Report) -> tuple[list[Mark], list[Lost]]:
    """(the marks on a text, everything else that annotations say)."""
    lost: list[Lost] = []
    ids = Ids()

    def mark(line: str, number: int, place: Source) -> Mark | None:
        if line[0] in _KINDS:
            lost.append(Lost(f"{_KINDS[line[0]]}, {shorten(line)}", source=place))
            return None
        id_, found = _mark(line, text, place)
        ids.of(id_, number, place)
        return found

    rows = ((Source(name, n), line.removesuffix("\r")) for n, line in enumerate(said.split("\n"), 1) if line.strip())
    return [found for _, found in each(rows, mark, report) if found is not None], lost


def _mark(line: str, text: str, source: Source) -> tuple[str, Mark]:
    """(id, mark) of a text-bound annotation. Of one in pieces, which a line end in it makes too, it is the longest."""
    found = _TEXT_BOUND.fullmatch(line)
    if found is None:
        raise Malformed(shorten(line), "T1, a tab, TYPE START END, a tab and the text; or a relation, an event, a note")
    id_, type_, places, said = found.groups()
    pieces = [map(int, piece.split()) for piece in places.split(";")]
    marks = [checked(Mark(start, end, type_, source=source), text) for start, end in pieces]
    covered = " ".join(text[mark.start : mark.end] for mark in marks).translate(LINE_BREAKS)
    if covered != said.translate(LINE_BREAKS):
        raise Malformed(f"{shorten(said)} at {places}, where the text has {shorten(covered)}", "the text that was annotated")
    parts: list[Mark] = []
    for mark in marks:
        for piece in re.finditer(r"[^\r\n]+", text[mark.start : mark.end]):
            parts.append(mark._replace(start=mark.start + piece.start(), end=mark.start + piece.end()))
    if not parts:
        raise Malformed(f"span {places} of line ends alone", "spans with a word in them")
    longest = max(parts, key=lambda part: part.end - part.start)
    return id_, longest._replace(pieces=len(parts))


def _written(sentences: Sequence[Sentence]) -> tuple[str, str]:
    """(text, annotations) of a document with a sentence a line; a line break within a sentence becomes a space."""
    text = ""
    rows: list[str] = []
    for sentence in sentences:
        line, marks = marks_of(sentence)
        for mark in marks:
            covered = line[mark.start : mark.end].translate(LINE_BREAKS)
            rows.append(f"T{len(rows) + 1}\t{mark.type} {len(text) + mark.start} {len(text) + mark.end}\t{covered}\n")
        text += line.translate(LINE_BREAKS) + "\n"
    return text, "".join(rows)


def write(path: Path, sentences: Sequence[Sentence]) -> None:
    """One document where the path ends in .ann; else a folder with a document for every sentence."""
    if path.suffix == ".ann":
        text, annotations = _written(sentences)
        with atomic_text(path.with_suffix(".txt")) as one, atomic_text(path) as other:  # both are written before one appears
            one.writelines(with_mark([text]))
            other.write(annotations)
        return
    with atomic_folder(path) as folder:
        names = ids_as_names(sentences) or map(str, range(1, len(sentences) + 1))
        for name, sentence in zip(names, sentences, strict=True):
            text, annotations = _written([sentence])
            (folder / f"{name}.txt").write_bytes("".join(with_mark([text])).encode())
            if sentence.tags is not None:
                (folder / f"{name}.ann").write_bytes(annotations.encode())


def ids_as_names(sentences: Sequence[Sentence]) -> list[str]:
    """The ids, if they can all be names of files. Else none."""
    ids = [str(sentence.id) for sentence in sentences]
    usable = all(re.fullmatch(r"\w[\w.-]*", id_) and len(id_.encode()) <= LONGEST_NAME for id_ in ids)
    return ids if usable and len({id_.casefold() for id_ in ids}) == len(ids) else []
