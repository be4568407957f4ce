"""Files that were loaded before, in an earlier state.

A file that got more rows is cut into other batches, which have no marks, and a table that was written anew has other
files. Still, most of these rows were sent before. Among them are one-shots whose time has passed: they were delivered,
and would be delivered again. So a load holds such one-shots back where it cannot be sure: in a file that has changed
since it was first loaded, and in a new file of a table that has lost files since. Between two versions of a Delta
table all rows are new, save those that came back: in files that an earlier load had, or after RESTORE in any.

    mark of a file   JSON {"table": "5f...", "file": "c0...", "size": 1200, "modified": 1767225600000, "held": false,
                     "load": ""}

`table` and `file` are digests of paths; `table` includes the scope of marks. `load` stands for the two versions whose
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
    """A file as it was when it was loaded first.

    `held`: it was new in a table that had lost files, or was restored. `load` is that of the guard.
    """

    table: str
    file: str
    size: int
    modified: int
    held: bool
    load: str = ""

    def holds_back(self, file: FileMark) -> bool:
        """Return whether what has passed is held back in a file, which has this mark."""
        return self.held or (self.size, self.modified, self.load) != (file.size, file.modified, file.load)


class Guard(NamedTuple):
    """Says of the files of a table whether they were sent before.

    `has_lost` is whether the table has lost files, or got rows back. `load` is a digest that stands for the two
    versions between which rows are loaded; nothing if all rows are.
    """

    table: str
    has_lost: bool
    load: str = ""

    @classmethod
    def of(cls, scope: tuple[Any, ...], path: str, files: Iterable[str], marks: Marks) -> Guard:
        """Return the guard of the table at a path, which consists of these files; marks hold for a scope."""
        table = key_of("table", *scope, path_digest(path)).hex()
        there = set(map(path_digest, files))
        return cls(table, any(mark.table == table and mark.file not in there for mark in marks.all_of(FileMark)))

    def mark(self, path: str, size: int, modified: int) -> FileMark:
        """Return what a file is, were it loaded for the first time."""
        return FileMark(self.table, path_digest(path), size, modified, self.has_lost, self.load)

    def between(self, scope: tuple[Any, ...], *, restores: bool) -> Guard:
        """Return the guard for rows that are new between two versions, which `scope` stands for.

        Versions tell that they are new, unless an earlier version was brought back.
        """
        return self._replace(has_lost=restores, load=key_of("between", *scope).hex() if scope else "")


def present(files: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return those of some files that are there."""
    digests = set(map(path_digest, there))
    return [file for file in files if path_digest(file) in digests]


def absent(files: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return those of some files that are not there."""
    digests = set(map(path_digest, there))
    return [file for file in files if path_digest(file) not in digests]


def path_digest(path: str) -> str:
    """Return a digest of a path that does not depend on how Spark writes it: as a URL or plain, quoted or not."""
    plain = re.sub("^file:/+", "/", unquote(path)).rstrip("/")
    return blake2b(plain.encode(), digest_size=8).hexdigest()
