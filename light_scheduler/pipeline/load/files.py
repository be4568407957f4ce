"""Files that were loaded before, possibly in an earlier state.

A file that got more rows is split into other batches, which have no marks, and a table that was rewritten has other
files. Still, most of these rows were sent before. Among them are one-shots whose time has passed: they were delivered,
and would be delivered again. So a load holds such one-shots back when it cannot be sure: in a file that has changed
since it was first loaded, and in a new file of a table that has lost files since. Between two versions of a Delta table
all rows are new, except restored ones: in files that an earlier load had, or after RESTORE in any.

    mark of a file   JSON {"table": "5f...", "file": "c0...", "size": 1200, "modified": 1767225600000, "held": false,
                     "load": ""}

`table` and `file` are digests of paths; `table` includes the scope of marks. `load` identifies the two versions whose
load had the file first. The mark is written with the first batch of the file, and does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from .marks import Marks, key_of


class FileMark(msgspec.Struct, frozen=True):
    """A file as it was when it was first loaded.

    `held`: it was new in a table that had lost files, or was restored. `load` is that of the guard.
    """

    table: str
    file: str
    size: int
    modified: int
    held: bool
    load: str = ""

    def holds_back(self, file: FileMark) -> bool:
        """Return whether one-shots whose time has passed are held back in a file with this mark."""
        return self.held or (self.size, self.modified, self.load) != (file.size, file.modified, file.load)


class Guard(NamedTuple):
    """Knows which files of a table may have been sent before.

    `has_lost`: the table has lost files, or got rows back. `load` is a digest of the two versions between which rows
    are loaded; empty if all rows are.
    """

    table: str
    has_lost: bool
    load: str = ""

    @classmethod
    def of(cls, scope: tuple[Any, ...], path: str, files: Iterable[str], marks: Marks) -> Guard:
        """Return the guard of the table at a path, which consists of these files. Marks belong to a scope."""
        table = key_of("table", *scope, path_digest(path)).hex()
        there = set(map(path_digest, files))
        return cls(table, any(mark.table == table and mark.file not in there for mark in marks.all_of(FileMark)))

    def mark(self, path: str, size: int, modified: int) -> FileMark:
        """Return the mark of a file that is loaded for the first time."""
        return FileMark(self.table, path_digest(path), size, modified, self.has_lost, self.load)

    def between(self, scope: tuple[Any, ...], *, restores: bool) -> Guard:
        """Return the guard for rows that are new between the two versions in `scope`.

        Versions prove that the rows are new, unless an earlier version was restored.
        """
        return self._replace(has_lost=restores, load=key_of("between", *scope).hex() if scope else "")


def present(files: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return the files that are also in `there`."""
    digests = set(map(path_digest, there))
    return [file for file in files if path_digest(file) in digests]


def absent(files: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return the files that are not in `there`."""
    digests = set(map(path_digest, there))
    return [file for file in files if path_digest(file) not in digests]


def path_digest(path: str) -> str:
    """Return a digest of a path that does not depend on Spark's notation: URL or plain, quoted or not."""
    plain = re.sub("^file:/+", "/", unquote(path)).rstrip("/")
    return blake2b(plain.encode(), digest_size=8).hexdigest()
