"""BRAT standoff: a text beside a file of annotations, `NAME.txt` and `NAME.ann`, alone or many in a folder.

A line of the text is a sentence, as BRAT shows it. Offsets count the characters (code points) of the file, both of CR LF.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sequst.corpus.formats.annotated import Annotated, Loss, Mark, mark_of, marks_of
from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.records import Malformed, Remark
from sequst.corpus.sentence import Sentence, Source
from sequst.errors import Problem, UsageError, shorten
from sequst.files import atomic_folder, write_together
from sequst.inputs import Input, Report

_TEXT_BOUND = re.compile(r"(T\S*)\t(\S+) ([\d; -]+)\t(.*)")
_KINDS = {"R": "a relation", "E": "an event", "A": "an attribute", "M": "an attribute", "N": "a normalisation", "#": "a note"}
_LINE_BREAKS = str.maketrans("\r\n", "  ")


def read_brat(source: Input, tag_use: TagUse, report: Report, remark: Remark) -> Iterator[Annotated]:
    folder = source.path if source.path.is_dir() else None
    if folder is None:
        beside = source.path.with_suffix(".txt")
        if not beside.is_file():
            raise UsageError(f"{source.name}: no {beside.name} beside it, which it annotates")
        yield from _document(beside, source.path, beside.stem, tag_use, report)
        return
    for path in folder.rglob("*.ann"):
        if not path.with_suffix(".txt").is_file():
            report(Problem(str(path), 1, "no text", f"{path.with_suffix('.txt').name} beside it"))
    for path in sorted(folder.rglob("*.txt"), key=_natural):
        name = path.relative_to(folder).with_suffix("").as_posix()
        yield from _document(path, path.with_suffix(".ann"), name, tag_use, report)


def _natural(path: Path) -> list[tuple[int, str]]:
    """2 before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path)) if part]


def _text_of(path: Path, report: Report) -> str | None:
    try:
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
        if "\0" not in text:
            return text
        line = text[: text.index("\0")].count("\n") + 1
        report(Problem(str(path), line, "a NUL byte", "text; is this a binary file?"))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        found = f"byte 0x{error.object[error.start]:02x}, which is not UTF-8"
        report(Problem(str(path), line, found, "UTF-8; convert it, e.g. iconv -f LATIN1 -t UTF-8"))
    except OSError as error:
        report(Problem(str(path), 1, f"unreadable data ({error.strerror})", "a file that can be read"))
    return None


def _document(path: Path, annotations: Path, name: str, tag_use: TagUse, report: Report) -> Iterator[Annotated]:
    """The lines of a text, each with the marks that lie on it; without a file of annotations nobody has annotated it."""
    text = _text_of(path, report)
    said = _text_of(annotations, report) if tag_use != "ignored" and annotations.is_file() else None
    if text is None or (said is None and tag_use != "ignored" and annotations.is_file()):
        return
    marks, losses = ([], []) if said is None else _marks(said, text, str(annotations), report)
    lines: list[tuple[int, int, int]] = []  # (number, start, end)
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        end = at + len(line.removesuffix("\r"))
        if line.strip():
            lines.append((number, at, end))
        else:
            losses += [Loss(f"{m.type} on a line of white space", "left out", m.source) for m in marks if at <= m.start < end]
        at += len(line) + 1
    for place, (number, start, end) in enumerate(lines):
        here = tuple(m._replace(start=m.start - start, end=m.end - start) for m in marks if start <= m.start < end)
        id_: str | int = name if len(lines) == 1 else f"{name}-{number}"
        if isinstance(id_, str) and id_.isdigit() and str(int(id_)) == id_:
            id_ = int(id_)
        of_the_document = tuple(losses) if place == 0 else ()
        source = Source(str(path), number)
        yield Annotated(text[start:end], None if said is None else here, id_, source, losses=of_the_document)


def _marks(said: str, text: str, name: str, report: Report) -> tuple[list[Mark], list[Loss]]:
    marks: list[Mark] = []
    losses: list[Loss] = []
    ids: set[str] = set()
    for number, line in enumerate(said.split("\n"), 1):
        line = line.removesuffix("\r")
        source = Source(name, number)
        if not line.strip():
            continue
        try:
            if line[0] in _KINDS or line[0] == "*":
                losses.append(Loss(f"{_KINDS.get(line[0], 'an equivalence')}, {shorten(line)}", "left out", source))
                continue
            id_, mark = _mark(line, text, source)
            if id_ in ids:
                raise Malformed(f"the id {id_} again", "an id of its own for every annotation")
            ids.add(id_)
            marks.append(mark)
        except Malformed as bad:
            report(source.problem(bad.found, bad.expected))
    return marks, losses


def _mark(line: str, text: str, source: Source) -> tuple[str, Mark]:
    """(id, mark) of a text-bound annotation. Of one in pieces, which a line end in it makes too, it is the longest."""
    found = _TEXT_BOUND.fullmatch(line)
    pieces = [piece.split() for piece in found[3].split(";")] if found else []
    if not found or not all(len(piece) == 2 and all(re.fullmatch(r"-?\d+", n) for n in piece) for piece in pieces):
        raise Malformed(shorten(line), "T1, a tab, TYPE START END, a tab and the text; or a relation, an event, a note")
    marks = [mark_of(text, int(start), int(end), found[2], source) for start, end in pieces]
    covered = " ".join(text[mark.start : mark.end] for mark in marks).translate(_LINE_BREAKS)
    if covered != found[4].translate(_LINE_BREAKS):
        raise Malformed(
            f"{shorten(found[4])} at {found[3]}, where the text has {shorten(covered)}", "the text that was annotated"
        )
    parts: list[Mark] = []
    for mark in marks:
        for piece in re.finditer(r"[^\r\n]+", text[mark.start : mark.end]):
            parts.append(mark._replace(start=mark.start + piece.start(), end=mark.start + piece.end()))
    if not parts:
        raise Malformed(f"span {found[3]} of line ends alone", "spans with a word in them")
    longest = max(parts, key=lambda part: part.end - part.start)
    return found[1], longest._replace(pieces=len(parts))


def brat_document(sentences: Sequence[Sentence]) -> tuple[str, str]:
    """(text, annotations) of a document with a sentence a line; a line break within a sentence becomes a space."""
    text = ""
    rows: list[str] = []
    for sentence in sentences:
        line, marks = marks_of(sentence)
        for mark in marks:
            covered = line[mark.start : mark.end].translate(_LINE_BREAKS)
            rows.append(f"T{len(rows) + 1}\t{mark.type} {len(text) + mark.start} {len(text) + mark.end}\t{covered}\n")
        text += line.translate(_LINE_BREAKS) + "\n"
    return text, "".join(rows)


def write_brat(path: Path, sentences: Sequence[Sentence]) -> None:
    """One document where the path ends in .ann; else a folder with a document for every sentence."""
    if path.suffix == ".ann":
        text, annotations = brat_document(sentences)
        write_together({path.with_suffix(".txt"): text, path: annotations})
        return
    with atomic_folder(path) as folder:
        for name, sentence in zip(_names(sentences), sentences, strict=True):
            text, annotations = brat_document([sentence])
            (folder / f"{name}.txt").write_bytes(text.encode())
            if sentence.tags is not None:
                (folder / f"{name}.ann").write_bytes(annotations.encode())


def _names(sentences: Sequence[Sentence]) -> list[str]:
    """The ids, where they can all be names of files, else numbers."""
    ids = [str(sentence.id) for sentence in sentences]
    usable = all(re.fullmatch(r"\w[\w.-]{0,99}", id_) for id_ in ids) and len({id_.casefold() for id_ in ids}) == len(ids)
    return ids if usable else [str(number) for number in range(1, len(ids) + 1)]
