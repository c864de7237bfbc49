"""Objects in an SQLite file, so that the embedded cluster is still there after its process ended in whatever way."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from stromboli.cluster.body import Key
from stromboli.errors import CannotServe
from stromboli.server.storage.store import CollectionName, Row

FORMAT: Final = 1
_PATIENCE: Final = 1.0
"""Seconds to wait for a process that is just leaving the file."""
_PRIVATE: Final = 0o600
_WHERE: Final = "api_group = ? AND plural = ? AND namespace = ? AND name = ?"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS objects (
    api_group TEXT, plural TEXT, namespace TEXT, name TEXT, version INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (api_group, plural, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS aside (
    api_group TEXT, plural TEXT, namespace TEXT, name TEXT, version INTEGER NOT NULL, body BLOB NOT NULL, why TEXT,
    PRIMARY KEY (api_group, plural, namespace, name, version)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 0), version INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES (0, 1);
"""

_Statement: TypeAlias = tuple[str, tuple[object, ...]]


def _counted(version: int) -> _Statement:
    return "UPDATE counter SET version = ?", (version,)


class SqliteJournal:
    """A journal in one file; a write is in the write-ahead log when the call returns.

    The log is not flushed to the disk at every write: the end of the process loses nothing, a power failure may lose
    the last moments, never the file.
    """

    def __init__(self, path: Path) -> None:
        """Open ``path`` for this process alone.  Raises CannotServe for a file that is in use or cannot be read."""
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE))
        self._path = path
        path.chmod(_PRIVATE)  # holds Secrets, and SQLite gives its other files the same mode
        self._base = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except sqlite3.Error as error:
            self._base.close()
            why = "it is in use by another server" if "locked" in str(error) else str(error)
            raise CannotServe(f"{path}: {why}") from error

    def _open(self) -> None:
        self._base.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=NORMAL")
        (form,) = self._base.execute("PRAGMA user_version").fetchone()
        if form > FORMAT:
            raise sqlite3.DatabaseError(f"it was written by a later version (format {form}, this one knows {FORMAT})")
        self._base.executescript(_TABLES)
        self._base.execute(f"PRAGMA user_version={FORMAT}")

    def load(self) -> tuple[int, Iterator[Row]]:
        """The last resource version, and all objects."""
        (version,) = self._base.execute("SELECT version FROM counter").fetchone()
        return version, self._rows("objects")

    def aside(self) -> Iterator[Row]:
        """All objects that were set aside."""
        return self._rows("aside")

    def _rows(self, table: str) -> Iterator[Row]:
        rows = self._base.execute(f"SELECT api_group, plural, namespace, name, version, body FROM {table}").fetchall()
        return (Row((row[0], row[1]), (row[2], row[3]), row[4], row[5]) for row in rows)

    def write(self, row: Row) -> None:
        """Keep an object."""
        values = (*row.collection, *row.key, row.version, row.encoded)
        self._commit(("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", values), _counted(row.version))

    def set_aside(self, row: Row, why: str) -> str:
        """Move an object that cannot be used into a table of its own, with the reason."""
        place = (*row.collection, *row.key)
        self._commit(
            ("INSERT OR REPLACE INTO aside VALUES (?, ?, ?, ?, ?, ?, ?)", (*place, row.version, row.encoded, why)),
            (f"DELETE FROM objects WHERE {_WHERE}", place),
        )
        return f"table aside of {self._path}"

    def remove(self, collection: CollectionName, key: Key, version: int) -> None:
        """Forget an object."""
        self._commit((f"DELETE FROM objects WHERE {_WHERE}", (*collection, *key)), _counted(version))

    def _commit(self, *statements: _Statement) -> None:
        self._base.execute("BEGIN")
        try:
            for statement, values in statements:
                self._base.execute(statement, values)
            self._base.execute("COMMIT")
        except sqlite3.Error:  # a full disk, for instance: this write is refused, later ones may succeed
            self._base.rollback()
            raise

    def close(self) -> None:
        """Close the file."""
        self._base.close()
