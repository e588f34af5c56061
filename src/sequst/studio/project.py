"""A project: a folder with sentences, what people said of them, and models. Needs no torch."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection, Row
from typing import IO, Any, NamedTuple, TypeVar

from sequst.corpus.sentence import Sentence, require_short, require_text, sentence_from_text
from sequst.corpus.tags import Span, spans, tags_of, types_of
from sequst.errors import Malformed, SequstError, UsageError, nearest, said, shorten
from sequst.files import as_json, as_path, explained, lock
from sequst.studio.database import Database
from sequst.studio.events import (
    LABELS,
    NOT_UNDONE,
    SKIP,
    answer,
    append,
    change_types,
    entities_of,
    entities_of_type,
    mark,
    ops_after,
    recall,
    spans_of,
    types_of_project,
)  # fmt: skip
from sequst.studio.types import Type, changed

T = TypeVar("T")
FILE = "studio.db"
_CHUNK = 2000
"""Sentences that are written at once, so that labels need not wait for a large file."""
_LONGEST = 2_000
"""Words of a sentence."""
_FLAGS = {"judging": " AND judging", "learning": " AND NOT judging", "differ": " AND differs", "labeled": ""}
_DRAWS = 2**63 - 1
"""Places in the random order."""
_NAMES = 100
"""Characters of a person's name."""


class Settings(NamedTuple):
    """What people may change while they label."""

    judging_share: float = 0.2
    """Of the sentences, drawn at random to judge the model."""
    agreement_share: float = 0.5
    """Of the judging sentences, given to two people."""
    learn_judging: bool = False
    train: bool = True
    """Whether models are trained as labels come."""
    encoder: str = "minilm"


class Project:
    """Every method reads or writes what is on the disk. In memory is only what can be computed again."""

    def __init__(self, folder: str | Path) -> None:
        """Open the project, or make one in a folder that is empty or not there."""
        self.folder = as_path(folder).absolute()
        path = self.folder / FILE
        if not path.is_file():
            if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
                raise UsageError(f"{folder}: neither a project of the studio nor an empty folder; name another")
            with explained(self.folder, "name another folder"):
                self.folder.mkdir(parents=True, exist_ok=True)
        self.database = Database(path)
        self._cache: dict[str, tuple[int, Any]] = {}

    def by_event(self, name: str, compute: Callable[[], T]) -> T:
        """What was computed after the last event, or what is computed now: for what events alone decide."""
        last = self.last_event()
        known = self._cache.get(name)
        if known is None or known[0] != last:
            self._cache[name] = known = (last, compute())
        found: T = known[1]
        return found

    def lock(self) -> IO[str]:
        """Kept open by the one server that the project may have."""
        return lock(self.folder / "studio.lock", f"{self.folder} is open in another studio; close that one first")

    @property
    def name(self) -> str:
        return self.folder.name

    # Settings, facts

    @property
    def settings(self) -> Settings:
        rows = self.database.reading.execute("SELECT name, value FROM settings")
        given = {name: json.loads(value) for name, value in rows}
        return Settings(**{name: value for name, value in given.items() if name in Settings._fields})

    def change_settings(self, given: Mapping[str, Any], who: str) -> None:
        defaults = Settings()._asdict()
        for name, value in given.items():
            if name not in defaults:
                raise UsageError(f"unknown setting {shorten(name)}; {nearest(name, defaults)}")
            default = defaults[name]
            is_share = isinstance(default, float) and type(value) in (int, float)
            if not (is_share or type(value) is type(default)):
                raise UsageError(f"setting {name}: found {shorten(value)}; e.g. {as_json(default)}")
            if is_share and not 0 <= value <= 0.9:
                raise UsageError(f"setting {name}: found {shorten(value)}; from 0 to 0.9")
            if name == "encoder":
                _require_encoder(value)
        with self.database.writing() as connection:
            for name, value in given.items():
                connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, as_json(value)))
            append(connection, who, "settings", None, dict(given))

    def fact(self, name: str) -> Any:
        row = self.database.reading.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def keep_fact(self, name: str, value: Any) -> None:
        with self.database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, as_json(value)))

    # Sentences

    def add_text(self, sentences: Iterable[Sentence], where: str) -> tuple[int, int]:
        """(sentences that are new, and that were known). They must fit, see `require_fit`."""
        added = known = 0
        for chunk in _chunks(sentences):
            with self.database.writing() as connection:
                for sentence in chunk:
                    is_new = _insert(connection, sentence)[1]
                    added, known = added + is_new, known + (not is_new)
        with self.database.writing() as connection:
            append(connection, "", "text", None, {"file": where, "added": added, "known": known})
        return added, known

    def add_labeled(self, sentences: Iterable[Sentence], where: str) -> tuple[int, int]:
        """(sentences that are labelled now, and that were before). Types that are new are added."""
        added = known = 0
        for chunk in _chunks(sentences):
            with self.database.writing() as connection:
                types = types_of_project(connection)
                for name in types_of([sentence.tags or () for sentence in chunk]):
                    if all(each.name != name for each in types):
                        types = change_types(connection, {"op": "add", "name": name}, "")
                for sentence in chunk:
                    if sentence.tags is None:
                        raise UsageError(f"{where}: a sentence without tags, {shorten(' '.join(sentence.words))}")
                    id_, _ = _insert(connection, sentence)
                    before = connection.execute("SELECT status, judging FROM sentences WHERE id = ?", (id_,)).fetchone()
                    if before["status"] == LABELS:
                        known += 1
                        continue
                    if sentence.judging and not before["judging"]:
                        mark(connection, id_)
                    answer(connection, id_, f"file {where}"[:_NAMES], LABELS, spans(sentence.tags), False)
                    added += 1
        return added, known

    def row(self, id_: int) -> Row:
        found = self.database.reading.execute("SELECT * FROM sentences WHERE id = ?", (id_,)).fetchone()
        if found is None:
            raise Missing(f"there is no sentence {id_}")
        return found  # type: ignore[no-any-return]

    def listed(self, status: str, type_: str, text: str, before_type: str, offset: int, limit: int) -> tuple[int, list[Row]]:
        """(how many there are, some of them): the answered ones from the last on, raw ones in the order of the file."""
        where, given = "1", list[Any]()
        if status in _FLAGS:
            where = f"status = 'labels'{_FLAGS[status]}"
        elif status in ("skipped", "raw"):
            where = "status = ?"
            given.append({"skipped": SKIP, "raw": "raw"}[status])
        elif status != "all":
            raise UsageError(f"status {shorten(status)}: {nearest(status, ('labeled', *_FLAGS, 'skipped', 'raw', 'all'))}")
        if type_:
            where += " AND EXISTS (SELECT 1 FROM json_each(entities) WHERE json_extract(value, '$[0]') = ?)"
            given.append(type_)
        if text:
            where += " AND text LIKE ? ESCAPE '\\'"
            given.append("%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%")
        if before_type:
            where += " AND event < ?"
            given.append(self.added().get(before_type, 0))
        reading = self.database.reading
        total = reading.execute(f"SELECT count(*) FROM sentences WHERE {where}", given).fetchone()[0]
        order = "id" if status in ("raw", "all") else "event DESC"
        rows = reading.execute(
            f"SELECT * FROM sentences WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?", [*given, limit, offset]
        )
        return total, rows.fetchall()

    def labeled(self, judging: bool | None = None, as_given: bool = False) -> Iterator[Sentence]:
        """The labelled sentences, in the order they were labelled; those for judging are marked so. `as_given`: with the ids
        of the files that they came from."""
        where = {None: "", True: " AND judging", False: " AND NOT judging"}[judging]
        rows = self.database.reading.execute(f"SELECT * FROM sentences WHERE status = 'labels'{where} ORDER BY event")
        return (tagged_sentence(row, as_given) for row in rows)

    def raw(self, most: int, start: int = 0) -> list[Sentence]:
        """So many sentences without labels, drawn at random, others for another `start`. Those that may be drawn for judging
        are not among them: what is judged must not be what the model left over."""
        reserved = int(self.settings.judging_share * _DRAWS)
        first = max(reserved, int.from_bytes(hashlib.sha256(str(start).encode()).digest()[:8]) >> 1)
        return [*self._drawn(first, _DRAWS, most), *self._drawn(reserved, first, most)][:most]

    def last_raw(self, most: int) -> list[Sentence]:
        """So many of the sentences without labels that were kept for judging, where no others are left."""
        return self._drawn(0, _DRAWS, most)

    def _drawn(self, first: int, end: int, most: int) -> list[Sentence]:
        rows = self.database.reading.execute(
            "SELECT * FROM sentences INDEXED BY raw_by_draw WHERE status = 'raw' AND NOT judging AND draw >= ? AND draw < ?"
            " ORDER BY draw LIMIT ?",
            (first, end, most),
        )
        return [sentence_of(row) for row in rows]

    # What people do

    def label(self, id_: int, who: str, entities: Sequence[Any], decides: bool = False) -> None:
        """Accept these entities, [type, start, end] each, as the labels of a sentence."""
        with self.database.writing() as connection:
            answer(connection, id_, who, LABELS, self.checked(id_, entities), decides)

    def skip(self, id_: int, who: str) -> None:
        self.row(id_)
        with self.database.writing() as connection:
            answer(connection, id_, who, SKIP, [], False)

    def checked(self, id_: int, entities: Sequence[Any]) -> list[Span]:
        """The entities in order. An error if they cannot be the labels of the sentence."""
        length = len(sentence_of(self.row(id_)))
        names = [each.name for each in self.types()]
        found = sorted((Span(*each) for each in entities), key=lambda span: (span.start, span.end))
        end = 0
        for span in found:
            if span.type not in names:
                raise UsageError(f"unknown type {shorten(span.type)}; {nearest(span.type, names)}")
            if not 0 <= span.start < span.end <= length:
                raise UsageError(f"entity from word {span.start} to {span.end}: the sentence has the words 0 to {length}")
            if span.start < end:
                raise UsageError(f"entity from word {span.start} to {span.end}: it overlaps another; a word has one type")
            end = span.end
        return found

    def fine(self, id_: int, who: str, start: int, end: int) -> None:
        """A label that looks wrong is right as it is."""
        self.row(id_)
        with self.database.writing() as connection:
            append(connection, who, "fine", id_, {"start": start, "end": end})
            for row in connection.execute("SELECT place, data FROM suspects WHERE sentence = ?", (id_,)).fetchall():
                data = json.loads(row["data"])
                if (data["start"], data["end"]) == (start, end):
                    connection.execute("DELETE FROM suspects WHERE place = ?", (row["place"],))

    def undo(self, who: str) -> tuple[str, int, list[Span]] | None:
        """Take back this person's last labels or skip: (which of them, the sentence, the entities)."""
        with self.database.writing() as connection:
            last = connection.execute(
                f"SELECT id, kind, sentence, data FROM events WHERE who = ? AND kind IN ('labels', 'skip') AND {NOT_UNDONE}"
                " ORDER BY id DESC LIMIT 1",
                (who,),
            ).fetchone()
            if last is None:
                return None
            entities = entities_of(connection, last)
            append(connection, who, "undo", last["sentence"], {"event": last["id"]})
            recall(connection, last["sentence"], who)
            return last["kind"], last["sentence"], entities

    def history(self, id_: int) -> list[dict[str, Any]]:
        rows = self.database.reading.execute("SELECT * FROM events WHERE sentence = ? ORDER BY id", (id_,)).fetchall()
        told = [row for row in rows if row["kind"] in (LABELS, SKIP, "undo", "fine")]
        return [
            {"who": row["who"], "at": row["at"], "kind": row["kind"], "entities": _as_dicts(json.loads(row["data"]))}
            for row in told
        ]

    def answers(self, id_: int) -> list[Row]:
        """The labels of each person, the earliest first."""
        rows = self.database.reading.execute(
            "SELECT * FROM answers WHERE sentence = ? AND kind = 'labels' ORDER BY event", (id_,)
        )
        return rows.fetchall()

    def first_answers(self) -> list[tuple[int, list[list[Span]]]]:
        """(sentence, what each person labelled first) of those that several people labelled, the earliest first. What came
        from a file or settled a difference is no judgement of its own."""
        rows = self.database.reading.execute(
            "SELECT id, sentence, who, data FROM events WHERE kind = 'labels' AND who NOT LIKE 'file %'"
            " AND json_extract(data, '$.decides') IS NULL AND sentence IN (SELECT sentence FROM answers WHERE kind = 'labels'"
            f" GROUP BY sentence HAVING count(*) > 1) AND {NOT_UNDONE} ORDER BY id"
        ).fetchall()
        found: dict[int, dict[str, list[Span]]] = {}
        for row in rows:
            found.setdefault(row["sentence"], {}).setdefault(row["who"], entities_of(self.database.reading, row))
        return [(sentence, list(theirs.values())) for sentence, theirs in found.items() if len(theirs) > 1]

    # Types

    def types(self) -> list[Type]:
        return types_of_project(self.database.reading)

    def entities_to_learn(self) -> dict[str, int]:
        """By type, the entities that models learn."""
        where = "" if self.settings.learn_judging else " AND NOT judging"
        rows = self.database.reading.execute(
            "SELECT json_extract(value, '$[0]') AS label, count(*) FROM sentences, json_each(entities)"
            f" WHERE status = 'labels'{where} GROUP BY label"
        )
        return {row[0]: row[1] for row in rows}

    def added(self) -> dict[str, int]:
        """By type, the event that added it, whatever it was called then."""
        found: dict[str, int] = {}
        for row in self.database.reading.execute("SELECT id, data FROM events WHERE kind = 'types' ORDER BY id"):
            op = json.loads(row["data"])
            if op["op"] == "add":
                found[op["name"]] = row["id"]
            elif op["op"] == "rename":
                found[op["to"]] = found.pop(op["name"])
            elif op["op"] in ("merge", "delete"):
                found.pop(op["name"])
        return found

    def labeled_before_types(self) -> dict[str, int]:
        """By type, the labelled sentences that nobody has looked at since it was added."""
        count = "SELECT count(*) FROM sentences WHERE status = 'labels' AND event < ?"
        return {name: self.database.reading.execute(count, (event,)).fetchone()[0] for name, event in self.added().items()}

    def change_types(self, op: dict[str, Any], who: str, dry_run: bool = False) -> tuple[int, int]:
        """(entities, sentences) that the operation concerns."""
        changed(self.types(), op)
        with self.database.writing() as connection:
            concerned = entities_of_type(connection, op["name"]) if op["op"] in ("rename", "merge", "delete") else []
            if not dry_run:
                change_types(connection, op, who)
            count = sum(each.type == op["name"] for _, found in concerned for each in found)
            return count, len(concerned)

    def since(self, event: int) -> list[dict[str, Any]]:
        """The operations on types after an event, for what was predicted before them."""
        return ops_after(self.database.reading, event)

    # Choosing

    def draw_judging(self, exclude: Iterable[int] = ()) -> int | None:
        """A sentence for judging that nobody has answered: one that was drawn before, or the next of the random order."""
        out = list(exclude)
        marks = ",".join("?" * len(out))
        with self.database.writing() as connection:
            for index, where in (("open_judging", "judging"), ("raw_by_draw", "NOT judging")):
                row = connection.execute(
                    f"SELECT id FROM sentences INDEXED BY {index} WHERE status = 'raw' AND {where} AND id NOT IN ({marks})"
                    " ORDER BY draw LIMIT 1",
                    out,
                ).fetchone()
                if row is not None:
                    if index == "raw_by_draw":
                        mark(connection, row["id"])
                    return int(row["id"])
        return None

    def put_in_queue(self, chosen: Iterable[tuple[int, str, list[list[Any]]]], event: int) -> None:
        """Replace what is to be labelled next: (sentence, why, its suggested entities with their confidence)."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM queue")
            for sentence, why, suggestions in chosen:
                connection.execute(
                    "INSERT OR IGNORE INTO queue (sentence, why, suggestions, event) VALUES (?, ?, ?, ?)",
                    (sentence, why, as_json(suggestions), event),
                )

    def last_event(self) -> int:
        return int(self.database.reading.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])

    def counts(self) -> dict[str, int]:
        return self.by_event("counts", self._counts)

    def _counts(self) -> dict[str, int]:
        row = self.database.reading.execute(
            "SELECT count(*), coalesce(sum(status = 'labels'), 0), coalesce(sum(status = 'skip'), 0),"
            " coalesce(sum(judging AND status = 'labels'), 0), coalesce(sum(differs), 0) FROM sentences"
            " WHERE status IN ('labels', 'skip')"
        ).fetchone()
        total = self.database.reading.execute("SELECT count(*) FROM sentences").fetchone()[0]
        names = ("labeled", "skipped", "judging", "differences")
        return {"sentences": total, "raw": total - row[0], **dict(zip(names, row[1:], strict=True))}


class Missing(SequstError):
    """Something that is not there."""


def sentence_of(row: Row) -> Sentence:
    """With the number that it has in the project as its id."""
    if row["words"] is None:
        return sentence_from_text(row["text"], row["id"])
    offsets = tuple((start, end) for start, end in json.loads(row["words"]))
    words = tuple(row["text"][start:end] for start, end in offsets)
    return Sentence(words, None, row["id"], None, row["text"], offsets)


def tagged_sentence(row: Row, as_given: bool = False) -> Sentence:
    """With its labels."""
    sentence = sentence_of(row)
    id_ = json.loads(row["name"]) if as_given and row["name"] is not None else row["id"]
    tags = tags_of(spans_of(row["entities"]), len(sentence))
    return replace(sentence, tags=tags, id=id_, judging=bool(row["judging"]))


def _require_encoder(name: str) -> None:
    """Raise an error where there is no such encoder, before anybody labels for it. Without torch, so that it is quick."""
    if name in ("minilm", "bilstm") or (as_path(name) / "config.json").is_file():
        return
    from huggingface_hub import model_info, try_to_load_from_cache

    try:
        if not isinstance(try_to_load_from_cache(name, "config.json"), str):
            model_info(name, timeout=10)
    except Exception as error:  # of many kinds: no such name, no such model, no network
        raise UsageError(
            f"encoder {shorten(name)}: neither a folder with config.json nor a model of the hub that can be reached"
            f" ({said(error, 120)}); use minilm, or name a folder"
        ) from None


def _as_dicts(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [Span(*each)._asdict() for each in data.get("entities", ())]


def _chunks(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Those with words, some at a time."""
    rest = (sentence for sentence in sentences if sentence.words)
    while chunk := list(itertools.islice(rest, _CHUNK)):
        yield chunk


def require_fit(sentence: Sentence, where: str) -> None:
    """Raise an error for a sentence that nobody could label."""
    place = sentence.source or where
    try:
        require_text(sentence.as_text()[0])
        require_short(sentence.words)
    except Malformed as bad:
        raise UsageError(f"{place}: found {bad.found}; expected {bad.expected}") from None
    if len(sentence) > _LONGEST:
        raise UsageError(f"{place}: a sentence of {len(sentence):,} words; at most {_LONGEST:,}, so cut it into lines")


def _insert(connection: Connection, sentence: Sentence) -> tuple[int, bool]:
    """(its number, whether it is new)."""
    text, offsets = sentence.as_text()
    key = hashlib.sha256("\x1f".join(sentence.words).encode()).digest()[:16]
    row = connection.execute("SELECT id FROM sentences WHERE key = ?", (key,)).fetchone()
    if row is not None:
        return int(row["id"]), False
    draw = int.from_bytes(hashlib.sha256(b"draw" + key).digest()[:8]) >> 1
    words = None if sentence.is_cut_by_rule() else as_json(offsets)
    name = None if sentence.id is None else as_json(sentence.id)
    added = connection.execute(
        "INSERT INTO sentences (text, words, name, key, draw) VALUES (?, ?, ?, ?, ?)", (text, words, name, key, draw)
    )
    return int(added.lastrowid or 0), True
