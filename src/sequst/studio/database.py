"""The SQLite file of a project: its tables, its versions, and connections for threads and processes."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sequst.errors import SequstError

Migration = str | Callable[[sqlite3.Connection], None]

_FIRST = """
CREATE TABLE sentences (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL,
  words TEXT,                    -- JSON, [start, end] of each; null where our own rule cuts the text
  name TEXT,                     -- JSON, its id in the file it came from
  key BLOB NOT NULL UNIQUE,      -- of its words: no sentence is there twice
  draw INTEGER NOT NULL,         -- its place in a random order
  judging INTEGER NOT NULL DEFAULT 0,
  -- what the events come to:
  status TEXT NOT NULL DEFAULT 'raw',
  entities TEXT,                 -- JSON, [type, start, end] of each
  who TEXT,
  at REAL,
  event INTEGER,
  differs INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX raw_by_draw ON sentences (draw) WHERE status = 'raw';
CREATE INDEX by_status ON sentences (status, event);
CREATE INDEX for_judging ON sentences (id) WHERE judging;
CREATE INDEX open_judging ON sentences (draw) WHERE judging AND status = 'raw';

CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  who TEXT NOT NULL,
  kind TEXT NOT NULL,            -- labels, skip, undo, fine, judging, types, settings, text
  sentence INTEGER,
  data TEXT NOT NULL
);
CREATE INDEX events_of_sentence ON events (sentence) WHERE sentence IS NOT NULL;
CREATE INDEX events_of_person ON events (who, id) WHERE kind IN ('labels', 'skip');
CREATE INDEX type_events ON events (id) WHERE kind = 'types';
CREATE INDEX undone ON events (json_extract(data, '$.event')) WHERE kind = 'undo';
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are only appended'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are only appended'); END;

CREATE TABLE answers (           -- the last one of each person that was not undone
  sentence INTEGER NOT NULL,
  who TEXT NOT NULL,
  event INTEGER NOT NULL,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  entities TEXT NOT NULL,
  decides INTEGER NOT NULL,
  PRIMARY KEY (sentence, who)
) WITHOUT ROWID;
CREATE TABLE types (name TEXT PRIMARY KEY, key TEXT NOT NULL, color INTEGER NOT NULL, place INTEGER NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);

-- what the worker makes of them:
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  data TEXT NOT NULL,
  status TEXT NOT NULL,          -- waiting, running, done, failed, stopped
  labels INTEGER NOT NULL,       -- how many there were when it was asked for
  asked REAL NOT NULL,
  began REAL,
  tries INTEGER NOT NULL DEFAULT 0,
  told TEXT                      -- why it failed
);
CREATE TABLE models (
  id INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  at REAL NOT NULL,
  event INTEGER NOT NULL,        -- the last one it knows of
  kind TEXT NOT NULL,
  method TEXT NOT NULL,
  labels INTEGER NOT NULL,
  seconds REAL NOT NULL,
  f1 TEXT,                       -- JSON
  types TEXT NOT NULL,           -- JSON
  judged TEXT NOT NULL           -- JSON, what it found in each sentence that it was judged on
);
CREATE TABLE queue (
  place INTEGER PRIMARY KEY,
  sentence INTEGER NOT NULL UNIQUE,
  why TEXT NOT NULL,
  suggestions TEXT NOT NULL,
  event INTEGER NOT NULL
);
CREATE TABLE uncertain (place INTEGER PRIMARY KEY, sentence INTEGER NOT NULL, entity TEXT NOT NULL, event INTEGER NOT NULL);
CREATE TABLE suspects (place INTEGER PRIMARY KEY, sentence INTEGER NOT NULL, data TEXT NOT NULL, event INTEGER NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO facts VALUES ('id', '"' || lower(hex(randomblob(8))) || '"');
"""
MIGRATIONS: Sequence[Migration] = (_FIRST,)
"""How a file of each version becomes one of the next, from an empty one on."""
_WAIT = 30.0
"""Seconds to wait for another process that writes."""


class Database:
    """A connection for each thread. Whatever is written is on the disk when `writing` ends, or not written at all."""

    def __init__(self, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self.path = path
        self._local = threading.local()
        self._one_writes = threading.Lock()
        with _explained(path):
            self._migrate(migrations)

    @property
    def reading(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._local.connection = connection
        return connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction."""
        connection = self.reading
        with self._one_writes, _explained(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        is_new = not self.path.exists()
        version = self.reading.execute("PRAGMA user_version").fetchone()[0]
        if version > len(migrations):
            raise SequstError(
                f"{self.path} is of version {version}, and this sequst reads up to {len(migrations)}; install a newer sequst"
            )
        if version < len(migrations) and not is_new:
            self.reading.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            shutil.copy2(self.path, self.path.with_name(f"{self.path.name}.version-{version}"))
        for number, migration in enumerate(migrations[version:], version + 1):
            with self.writing() as connection:
                if connection.execute("PRAGMA user_version").fetchone()[0] >= number:
                    continue  # another process was faster
                if callable(migration):
                    migration(connection)
                else:
                    for statement in _statements(migration):
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")


def _statements(script: str) -> Iterator[str]:
    """One after the other: `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.IntegrityError):
            raise
        full = "full" in str(error)
        what = "make room on the disk" if full else "is it a studio's file, and is the disk writable?"
        raise SequstError(f"{path}: {error}; {what}") from error
