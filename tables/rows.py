"""The rows of a table as a cycle sees them: those that are stored, and over them the changes it has made so far."""

from __future__ import annotations

from collections.abc import Callable

from .cell_changes import CellChanges

NOT_ASKED = b""
"""Stands for what is not known; no value is empty."""


class Rows:
    """Reads through to what is `stored`.

    `changes` has the rows to be written, None for those to be removed, but for primary rows, which `written` has.
    `primaries` has the primary keys that were read or written, and their values; `cells` those of what was put and
    removed.
    """

    def __init__(self, stored: Callable[[bytes], bytes | None], cells: CellChanges) -> None:
        self.stored = stored
        self.cells = cells
        self.changes: dict[bytes, bytes | None] = {}
        self.primaries: dict[bytes, bytes | None] = {}
        self.written: dict[bytes, bytes | None] = {}

    def all_changes(self) -> dict[bytes, bytes | None]:
        """Return all rows to be written or removed. Rows of one kind, often in order, are together: sorted soon."""
        return self.changes | self.written

    def value_of(self, key: bytes) -> bytes | None:
        """Return a row with the changes so far; None: there is none."""
        value = self.changes.get(key, NOT_ASKED)
        return self.stored(key) if value is NOT_ASKED else value

    def primary_of(self, primary: bytes) -> bytes | None:
        """Return the same for a primary key, which is looked up once."""
        found = self.primaries.get(primary, NOT_ASKED)
        if found is NOT_ASKED:
            found = self.primaries[primary] = self.stored(primary)
        return found
