"""Schedules that a table does not have, as the rows that they become there."""

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
    """Gathers rows, and writes them with their counts: each schedule is counted in the step that stores it."""

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
        """Gather (primary key, record, primary row that is there); `known` gets the records that are not new.

        Raises FormatTooNew or FormatError.
        """
        entries, primaries, place, added = self._entries, self._primaries, self._place, self._counted.added
        for primary, (key, value), there in records:
            identity = key[1:]
            if there is not None or is_probe(identity):  # which is not counted
                known[key] = value
            elif value is not None:
                index_key, cell = place(identity, value)
                entries.append((index_key, value))
                primaries.append((primary, cell + index_key))
                added.append(cell)

    def write(self) -> None:
        """Write what was gathered, at once."""
        if self._primaries:
            self._table.load(dict(chain(self._primaries, self._entries)), self._checkpoint(), self._counted)

    def write_files(self) -> Iterator[None]:
        """Write what was gathered as sorted files, in steps of which some take long."""
        if self._primaries:
            yield from self._table.take_in((self._primaries, self._entries), self._checkpoint(), self._counted)

    def _checkpoint(self) -> Checkpoint:
        pending = self._table.pending + len(self._primaries)
        return msgspec.structs.replace(self._table.checkpoint, pending=pending)
