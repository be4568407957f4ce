"""Rows of schedules that are new to a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from light_scheduler.model.probe import is_probe

from .cell_changes import CellChanges
from .placing import Placing
from .store import Loaded
from .table import Checkpoint, ScheduleTable


class NewRows:
    """Collects rows and writes them together with their counts."""

    def __init__(self, table: ScheduleTable) -> None:
        self._table = table
        self._entries: Loaded = []
        self._primaries: Loaded = []
        self._counted = CellChanges(table.counts)
        self._place = Placing(self._counted).place

    def take(
        self,
        records: Iterable[tuple[bytes, tuple[bytes, bytes | None], bytes | None]],
        known: dict[bytes, bytes | None],
    ) -> None:
        """Collect new schedules from (primary key, (changelog key, value), stored primary row or None).

        Other records are added to `known`. Raises FormatTooNew or FormatError.
        """
        entries, primaries, place, added = self._entries, self._primaries, self._place, self._counted.added
        for primary, (key, value), there in records:
            identity = key[1:]
            if there is not None or is_probe(identity):  # the probe is not counted
                known[key] = value
            elif value is not None:
                index_key, cell = place(identity, value)
                entries.append((index_key, value))
                primaries.append((primary, cell + index_key))
                added.append(cell)

    def write(self) -> None:
        """Write the collected rows in one write."""
        if self._primaries:
            self._table.load(dict(chain(self._primaries, self._entries)), self._checkpoint(), self._counted)

    def write_files(self) -> Iterator[None]:
        """Write the collected rows as sorted files, in steps. Some steps take long."""
        if self._primaries:
            yield from self._table.take_in((self._primaries, self._entries), self._checkpoint(), self._counted)

    def _checkpoint(self) -> Checkpoint:
        pending = self._table.pending + len(self._primaries)
        return msgspec.structs.replace(self._table.checkpoint, pending=pending)
