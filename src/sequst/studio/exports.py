"""Files that come in and go out. Nothing is written outside the project's folder."""

from __future__ import annotations

import itertools
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sequst.corpus.formats.convert import convert
from sequst.corpus.formats.detect import Guess, guess, open_input
from sequst.corpus.formats.jsonl import write
from sequst.corpus.formats.read import read_file, stream
from sequst.corpus.formats.registry import FORMATS
from sequst.corpus.sentence import Sentence, sentence_from_text
from sequst.corpus.sentences import split_sentences
from sequst.errors import SequstError, UsageError, nearest
from sequst.files import Scratch, atomic_bytes
from sequst.studio.project import Missing, Project, require_fit
from sequst.studio.state import told_model

MODELS, EXPORTS, WORK = "models", "exports", "work"
REPORT = "report.html"
LONG = 40
"""Words of a line of plain text above which it is cut into sentences."""
_ENDINGS = {"doccano": ".jsonl", "prodigy": ".jsonl", "argilla": ".json", "datasets": ".parquet"}
_NAME = re.compile(r"[0-9]{4}-(folder|onnx|spacy)")


def models(project: Project) -> list[dict[str, Any]]:
    """All trainings, the newest first."""
    rows = project.database.reading.execute("SELECT * FROM models ORDER BY id DESC").fetchall()
    return [
        {**told_model(row, row is rows[0]), "types": json.loads(row["types"]), "exports": _exports(project, row["id"])}
        for row in rows
    ]


def _exports(project: Project, number: int) -> list[dict[str, Any]]:
    found = sorted((project.folder / EXPORTS).glob(f"{number:04d}-*"))
    return [
        {"as": path.name[5:], "name": path.name, "size": sum(file.stat().st_size for file in path.rglob("*") if file.is_file())}
        for path in found if _NAME.fullmatch(path.name) and path.is_dir()
    ]  # fmt: skip


def newest(project: Project) -> int | None:
    """The number of the newest model."""
    found = project.database.reading.execute("SELECT max(id) FROM models").fetchone()[0]
    return None if found is None else int(found)


def require_model(project: Project, number: int) -> None:
    if not (model_folder(project, number) / "config.json").is_file():
        raise Missing(f"there is no model {number}, or its weights were removed to save room; take a newer one")


def model_folder(project: Project, number: int) -> Path:
    return project.folder / MODELS / f"{number:04d}"


def report(project: Project, number: int) -> Path:
    path = model_folder(project, number) / REPORT
    if not path.is_file():
        raise Missing(f"model {number} has no report")
    return path


def zipped(project: Project, name: str) -> Path:
    """The export as a .zip, which is made once."""
    folder = project.folder / EXPORTS / name
    if not _NAME.fullmatch(name) or not folder.is_dir():
        raise Missing(f"there is no export {name!r}")
    file = folder.with_suffix(".zip")
    if not file.is_file() or file.stat().st_mtime < folder.stat().st_mtime:
        with atomic_bytes(file) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            for each in sorted(folder.rglob("*")):
                if each.is_file():
                    archive.write(each, Path(name) / each.relative_to(folder))
    return file


def labels(project: Project, format: str, only: str) -> Path:
    """The labelled sentences in a file; a format of several files comes as a .zip."""
    if format not in FORMATS:
        raise UsageError(f"format {format}: {nearest(format, FORMATS)}")
    sentences = list(project.labeled({"learning": False, "judging": True}.get(only), as_given=True))
    if not sentences:
        raise UsageError("there are no such sentences yet; label some first")
    folder = project.folder / EXPORTS
    folder.mkdir(exist_ok=True)
    ending = _ENDINGS.get(format) or next(iter(FORMATS[format].endings))
    with Scratch() as spool:
        plain, made = Path(spool) / "labels.jsonl", Path(spool) / "made"
        made.mkdir()
        write(plain, sentences)
        convert(plain, made / f"{only}{ending}", to=format, on_conflict="trim")
        files = sorted(made.iterdir())
        target = folder / (f"{only}-{format}.zip" if len(files) > 1 else f"{only}-{format}{ending}")
        with atomic_bytes(target) as out:
            if len(files) == 1:
                out.write(files[0].read_bytes())
            else:
                with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
                    for each in files:
                        archive.write(each, each.name)
    return target


def take_file(project: Project, body: bytes, name: str, with_labels: bool) -> dict[str, Any]:
    """Add the sentences of a file that came over HTTP. `name` only tells its format."""
    if not body.strip():
        raise UsageError(f"{name} is empty; choose a file with a sentence on each line")
    suffix = "".join(Path(name).suffixes[-2:])
    suffix = suffix if re.fullmatch(r"(\.[A-Za-z0-9]{1,12}){1,2}", suffix) else ".txt"
    with Scratch() as spool:
        file = Path(spool) / f"file{suffix}"
        file.write_bytes(body)
        try:
            return add_file(project, file, Path(name).name, with_labels)
        except SequstError as error:  # nothing is wrong with the server
            raise UsageError(str(error)) from None


def add_file(project: Project, file: str | Path, name: str, with_labels: bool) -> dict[str, Any]:
    """Add the sentences of a file; what was added, and how it was read. Nothing is added of a file with a fault."""
    reading = read_file(file, name=name) if with_labels else None
    if reading is not None:
        notes = list(reading.notes)
        added, known = project.add_labeled(list(_fitting(reading.require(), name)), name)
    else:
        source = open_input(file, name, "auto")
        how = guess(source, "auto", None, None)
        notes = [f"{name}: read as {how}"] if how.by_content else []
        lines = sum(1 for _ in _fitting(_sentences(file, name, how), name))
        read = sum(1 for _ in _whole(file, name, how))
        if not lines:
            raise UsageError(f"{name} is empty: no sentence in it (read as {how})")
        if lines > read:
            notes.append(f"{name}: lines of more than {LONG} words were cut, {read:,} into {lines:,} sentences")
        added, known = project.add_text(_sentences(file, name, how), name)
    return {"added": added, "known": known, "types": [each.name for each in project.types()], "notes": notes}


def _whole(file: str | Path, name: str, how: Guess) -> Iterator[Sentence]:
    """The sentences of a file without their tags, as a stream: text may be large."""
    return (each for each in stream(open_input(file, name, how.format), how) if each.words)


def _sentences(file: str | Path, name: str, how: Guess) -> Iterator[Sentence]:
    lines = _whole(file, name, how)
    return itertools.chain.from_iterable(map(_in_sentences, lines)) if how.format == "text" else lines


def _fitting(sentences: Iterable[Sentence], name: str) -> Iterator[Sentence]:
    for sentence in sentences:
        require_fit(sentence, name)
        yield sentence


def _in_sentences(line: Sentence) -> list[Sentence]:
    """A line of plain text; a long one as the sentences that it has."""
    if len(line) <= LONG:
        return [line]
    return [sentence_from_text(text, source=line.source) for text in split_sentences(line.as_text()[0])]
