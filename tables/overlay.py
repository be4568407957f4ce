"""The changes of one lane cycle, on top of a table that does not have them yet.

An overlay is applied in one write after its transaction was committed, and dropped if the transaction fails.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import msgspec

from light_scheduler.engine import FairQueue
from light_scheduler.errors import FormatError
from light_scheduler.model import NEVER, Entry
from light_scheduler.model.place import Place
from light_scheduler.model.probe import PROBE_TENANT, is_probe
from light_scheduler.wire.state import (
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    decode_commands_log,
    decode_entry,
    decode_position,
    decode_progress,
    identity_of,
)

from . import layout
from .cell_changes import CellChanges
from .due_order import DueOrder
from .due_scan import DueScan, Waits
from .layout import PRIMARY
from .other_records import OtherRecords
from .rows import NOT_ASKED, Rows
from .table import Checkpoint, ScheduleTable, stored_entry
from .whole_schedules import WholeSchedules

_AFTER_PROBE = b"\1"
"""Sorts after the identity of the probe, and before those of users' schedules."""


def _any_number(_tenant: str) -> None:
    """Do not limit a tenant."""


class Overlay:
    """Reads through to the table, and keeps writes until `apply`. Identities are as in `wire.state`.

    `position` is the offset of the next command to read; it starts with the table's.
    """

    def __init__(self, table: ScheduleTable) -> None:
        self._table = table
        self._rows = rows = Rows(table.store.get, CellChanges(table.counts))
        self._stored, self._cells = rows.stored, rows.cells
        self.others = OtherRecords(table.store, rows)
        self._changes, self._primaries, self._written = rows.changes, rows.primaries, rows.written
        self._fresh: dict[str, set[bytes]] = {}  # tenant -> index keys put in this cycle; changes has their records
        self._order = DueOrder(table, rows, self._fresh)
        self._floors: dict[str, bytes | None] = {}  # moved by `due`
        self._passed: dict[str, list[tuple[Place, bytes]]] = {}  # passed over by `due`
        self.position = table.checkpoint.position
        self.commands_log = table.checkpoint.commands_log
        self._pending = table.pending  # without changes by `whole_of`
        self._wholes: dict[str, WholeSchedules] = {}
        self.due_topics: set[str] = set()
        """The target topics of schedules taken by `due`."""
        self._counted: dict[bytes, int] | None = None  # tenant -> change of its number of schedules

    @property
    def pending(self) -> int:
        """Number of schedules, including changes so far."""
        return self._pending + sum(whole.change for whole in self._wholes.values())

    def count_tenants(self) -> None:
        """Begin to count schedules by tenant. Call this before any change."""
        self._counted = defaultdict(int)

    def pending_of(self, tenant: str) -> int:
        """Return the number of a tenant's schedules. Requires `count_tenants`."""
        assert self._counted is not None
        whole = self._wholes.get(tenant)
        changed = self._counted[tenant.encode()] + (0 if whole is None else whole.change)
        return self._table.counts.pending_of(tenant) + changed

    def get(self, identity: bytes) -> Entry | None:
        """Return one schedule, including changes so far; None if there is none. Raises FormatError."""
        primary = PRIMARY + identity
        found = self._primaries.get(primary, NOT_ASKED)
        if found is NOT_ASKED:
            found = self._primaries[primary] = self._stored(primary)
        if found is None:
            return None
        index_key = layout.indexed_at(found)
        value = self._rows.value_of(index_key)
        if value is None:
            raise FormatError(f"the table's index has no record for {identity!r}")
        return stored_entry(index_key, value, self._rows.value_of)

    def put(self, identity: bytes, entry: Entry, record: bytes) -> bool:
        """Store a schedule and its state record. It replaces the schedule with the same identity, if any.

        Returns whether the replaced schedule was split, so that the changelog has a record of its progress.
        """
        primary = PRIMARY + identity
        was_split = self._forget(primary, identity)
        index_key = layout.index_key(entry, identity)
        if not is_probe(identity):
            self._add_to_pending(identity, 1)
        self._changes[index_key] = record
        self._add_fresh(entry.schedule.tenant, index_key)
        self._written[primary] = self._primaries[primary] = self._cells.add(entry, index_key) + index_key
        return was_split

    def whole_of(self, tenant: str) -> WholeSchedules:
        """Return the faster writer for simple schedules of a tenant."""
        whole = self._wholes.get(tenant)
        if whole is None:
            fresh = self._fresh.setdefault(tenant, set())
            whole = self._wholes[tenant] = WholeSchedules(tenant, self._rows, fresh)
        return whole

    def advance(self, identity: bytes, entry: Entry, record: bytes) -> None:
        """Store a schedule's progress and its record; the definition stays.

        Does nothing if the schedule does not exist: compaction removed it from the changelog before its progress.
        """
        primary = PRIMARY + identity
        old = self._rows.primary_of(primary)
        if old is None:
            return
        old_key = layout.indexed_at(old)
        if not old.endswith(layout.SPLIT):
            self._changes[layout.DEFINITION + identity] = self._rows.value_of(old_key)
        self._drop(old_key)
        self._cells.removed.append(old[: layout.CELL_BYTES])
        index_key = layout.index_key(entry, identity)
        self._changes[index_key] = layout.PROGRESS_ONLY + record
        self._add_fresh(entry.schedule.tenant, index_key)
        self._written[primary] = self._primaries[primary] = self._cells.add(entry, index_key) + index_key + layout.SPLIT

    def remove(self, identity: bytes) -> bool:
        """Remove a schedule, if it exists. Returns whether it was split."""
        primary = PRIMARY + identity
        was_split = self._forget(primary, identity)
        self._written[primary] = self._primaries[primary] = None
        return was_split

    def stored(self, prefix: bytes, after: bytes) -> Iterator[bytes]:
        """Yield the identities in the table that start with `prefix` and sort after `after`, in order.

        Includes neither changes of this cycle nor the probe.
        """
        start = max(PRIMARY + (prefix or _AFTER_PROBE), PRIMARY + after + b"\0")
        for primary, _ in self._table.store.scan(start, PRIMARY + prefix + b"\xff"):
            yield primary[len(PRIMARY) :]

    def due(
        self,
        until: int,
        limit: int,
        max_bytes: int,
        fair: FairQueue | None = None,
        allowed: Callable[[str], int | None] = _any_number,
        waits: Waits | None = None,
    ) -> DueScan:
        """Take the schedules due at or before `until` (ms), in order of (due, priority, arrival).

        Stops after `limit` entries or when their records exceed `max_bytes`. If more are due, tenants share the limit
        as `fair` says, by default equally, and each gets at most what it is `allowed`. The order within a tenant is
        always kept. Every entry taken must be removed, put again, or left in this overlay, since its tenant's floor
        moves past it. Call this once per overlay.
        """
        scans, next_due = self._order.scans(until, max_bytes / max(1, limit), allowed, waits)
        (fair or FairQueue()).share({tenant: scan.take for tenant, scan in scans.items()}, limit)
        opened = {tenant: scan for tenant, scan in scans.items() if scan.is_open}
        held: dict[str, int] = {}
        for tenant, scan in opened.items():
            self._floors[tenant] = scan.left
            if scan.passed:
                self._passed[tenant] = scan.passed
            if scan.left is not None:
                left_due = layout.due_of(scan.left)
                if scan.is_held:
                    held[tenant] = left_due
                else:
                    next_due = min(next_due, left_due)
            self.due_topics |= scan.topics
        taken = [entry for scan in opened.values() for entry in scan.taken]
        if len(opened) > 1:
            taken.sort(key=layout.order_of)
        cut = {tenant: scan.taken[-1] for tenant, scan in opened.items() if scan.is_cut}
        if len(opened) < len(scans):
            next_due = min(next_due, self._order.first_put_here(scans.keys() - opened.keys()))
        next_due = self._order.first_stored(opened, next_due)
        turns = {tenant: scan.most for tenant, scan in opened.items() if scan.most is not None}
        probe_due = None if PROBE_TENANT in opened else self._order.probe_due()
        return DueScan(taken, None if next_due == NEVER else next_due, cut, turns, held, probe_due)

    def next_due(self) -> int | None:
        """Return the wake time (ms) of the first schedule other than the probe; None if there is none."""
        found = self._order.first_stored((), self._order.first_put_here(self._fresh))
        return None if found == NEVER else found

    def leave(self, entry: Entry) -> None:
        """Give back a due schedule that was taken but not fired, and all later ones of its tenant."""
        tenant, key = entry.schedule.tenant, layout.index_key(entry, identity_of(entry))
        floor = self._floors.get(tenant)
        self._floors[tenant] = key if floor is None else min(floor, key)

    @property
    def log_number(self) -> int:
        """The number of the log of commands (`model.arrival`)."""
        return 0 if self.commands_log is None else self.commands_log.number

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one changelog record. Raises FormatTooNew or FormatError."""
        if key == POSITION_KEY:
            self.position = decode_position(value or b"")
            self.commands_log = decode_commands_log(value or b"")
        elif key[:1] == PROGRESS_KIND:
            if value is not None:
                self._replay_progress(key[1:], value)
        elif key[:1] == SCHEDULE_KIND:
            if value is None:
                self.remove(key[1:])
            else:
                self.put(key[1:], decode_entry(value), value)
        else:
            self.others.replay(key, value)

    def apply(self, *, changelog_offset: int, complete_at: int) -> None:
        """Apply all changes to the table in one write, with the changelog offset after them.

        `complete_at` is as in `Checkpoint`.
        """
        self._table.write(
            self._rows.all_changes(),
            msgspec.structs.replace(self._checkpoint(), changelog_offset=changelog_offset, complete_at=complete_at),
            self._cells,
        )
        self.settle_floors()
        for tenant, fresh in self._fresh.items():
            if fresh:  # fresh schedules may be due before all scanned ones
                self._table.floors.lower(tenant, min(fresh))

    def settle_floors(self) -> None:
        """Make the next scan begin where this one ended. A cycle without writes must call this itself."""
        for tenant, floor in self._floors.items():
            self._table.floors.move(tenant, floor)
        for tenant, passed in self._passed.items():
            for place, key in passed:
                self._table.held.pass_over(place, tenant, key)

    def load(self) -> None:
        """Add all changes to a table that is being filled (see `loading`)."""
        self._table.load(self._rows.all_changes(), self._checkpoint(), self._cells)

    def _checkpoint(self) -> Checkpoint:
        return msgspec.structs.replace(
            self._table.checkpoint, position=self.position, pending=self.pending, commands_log=self.commands_log
        )

    def _add_to_pending(self, identity: bytes, change: int) -> None:
        self._pending += change
        if self._counted is not None:
            self._counted[identity[: identity.index(0)]] += change

    def _add_fresh(self, tenant: str, index_key: bytes) -> None:
        try:
            self._fresh[tenant].add(index_key)
        except KeyError:
            self._fresh[tenant] = {index_key}

    def _replay_progress(self, identity: bytes, record: bytes) -> None:
        progress = decode_progress(record)
        entry = self.get(identity)
        if entry is not None:
            self.advance(identity, Entry(entry.schedule, progress), record)

    def _forget(self, primary: bytes, identity: bytes) -> bool:
        old = self._primaries.get(primary, NOT_ASKED)
        if old is NOT_ASKED:
            old = self._stored(primary)
        if old is None:
            return False
        if not is_probe(identity):
            self._add_to_pending(identity, -1)
        self._cells.removed.append(old[: layout.CELL_BYTES])
        old_key = old[layout.CELL_BYTES :]
        was_split = old_key.endswith(layout.SPLIT)
        if was_split:
            old_key = old_key.removesuffix(layout.SPLIT)
            self._changes[layout.DEFINITION + identity] = None
        self._drop(old_key)
        return was_split

    def _drop(self, index_key: bytes) -> None:
        self._changes[index_key] = None
        if self._fresh and (fresh := self._fresh.get(layout.tenant_in(index_key))) is not None:
            fresh.discard(index_key)
