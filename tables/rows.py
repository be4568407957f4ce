"""The rows of a table as a cycle sees them: the stored rows with its changes so far."""

from __future__ import annotations

from collections.abc import Callable

from .cell_changes import CellChanges

NOT_ASKED = b""
"""Stands for a value that was not read yet. No stored value is empty."""


class Rows:
    """Reads through to `stored`, and collects changes.

    `changes` has the rows to write, or None to remove a row; `written` has the same for primary rows. `primaries` has
    the values of primary keys that were read or written, `cells` the cells of added and removed schedules.
    """

    def __init__(self, stored: Callable[[bytes], bytes | None], cells: CellChanges) -> None:
        self.stored = stored
        self.cells = cells
        self.changes: dict[bytes, bytes | None] = {}
        self.primaries: dict[bytes, bytes | None] = {}
        self.written: dict[bytes, bytes | None] = {}

    def all_changes(self) -> dict[bytes, bytes | None]:
        """Return all rows to write or remove. Rows of one kind are together and often in order, so sorting is fast."""
        return self.changes | self.written

    def value_of(self, key: bytes) -> bytes | None:
        """Return the value of a row, including changes so far; None if there is none."""
        value = self.changes.get(key, NOT_ASKED)
        return self.stored(key) if value is NOT_ASKED else value

    def primary_of(self, primary: bytes) -> bytes | None:
        """Return the same for a primary row, which is read only once."""
        found = self.primaries.get(primary, NOT_ASKED)
        if found is NOT_ASKED:
            found = self.primaries[primary] = self.stored(primary)
        return found
