"""The changes of one lane cycle, over a table that does not have them yet.

An overlay is dropped when its transaction fails, and applied in one write after it has been committed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator
from itertools import chain

import msgspec

from light_scheduler.engine import FairQueue
from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.model import NEVER, BulkPart, BulkTotal, Entry
from light_scheduler.model.lending import Lending
from light_scheduler.model.place import Place
from light_scheduler.model.probe import PROBE_IDENTITY, PROBE_TENANT, is_probe
from light_scheduler.wire.delayed_state import (
    DELAYED_KIND,
    QUEUE_KIND,
    DelayedQueue,
    decode_delayed,
    decode_queue,
    tenant_of,
)
from light_scheduler.wire.lending_state import ROOM_KIND, decode_room, room_of
from light_scheduler.wire.state import (
    BULK_PART_KIND,
    BULK_TOTAL_KIND,
    EMPTIED_KIND,
    LENT_KIND,
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    bulk_offset_of,
    bulk_total_key,
    decode_bulk_part,
    decode_bulk_total,
    decode_commands_log,
    decode_emptied,
    decode_entry,
    decode_lent,
    decode_position,
    decode_progress,
    identity_of,
)

from . import layout
from .cell_changes import CellChanges
from .due_scan import Candidates, DueScan, TenantScan, Waits
from .layout import PRIMARY
from .rows import NOT_ASKED, Rows
from .table import Checkpoint, ScheduleTable, stored_entry
from .whole_schedules import WholeSchedules

_OTHERS: dict[bytes, Callable[[bytes], object]] = {
    BULK_PART_KIND: decode_bulk_part,
    BULK_TOTAL_KIND: decode_bulk_total,
    EMPTIED_KIND: decode_emptied,
    LENT_KIND: decode_lent,
    QUEUE_KIND: decode_queue,
    DELAYED_KIND: decode_delayed,
    ROOM_KIND: decode_room,
}
"""How records are read that are neither schedules nor the position."""

_AFTER_PROBE = b"\1"
"""Below the identities of all users' schedules, and above that of the probe."""


def _any_number(_tenant: str) -> None:
    """Allow a tenant whatever it has."""


class Overlay:
    """Reads through to the table; writes stay here until `apply`. Schedules go by their identity (`wire.state`).

    `position` is the next command to read, at first as the table has it.
    """

    def __init__(self, table: ScheduleTable) -> None:
        self._table = table
        self._rows = rows = Rows(table.store.get, CellChanges(table.counts))
        self._stored, self._cells = rows.stored, rows.cells
        self._changes, self._primaries, self._written = rows.changes, rows.primaries, rows.written
        self._fresh: dict[str, set[bytes]] = {}  # tenant -> index keys of what was put here; records are in changes
        self._floors: dict[str, bytes | None] = {}  # those that `due` has moved
        self._passed: dict[str, list[tuple[Place, bytes]]] = {}  # what `due` has passed over
        self.position = table.checkpoint.position
        self.commands_log = table.checkpoint.commands_log
        self._pending = table.pending  # but for what `whole_of` changes
        self._wholes: dict[str, WholeSchedules] = {}
        self.due_topics: set[str] = set()
        """The target topics of what `due` has taken."""
        self._counted: dict[bytes, int] | None = None  # tenant -> by how much its schedules have become more

    @property
    def pending(self) -> int:
        """How many schedules there are with the changes so far."""
        return self._pending + sum(whole.change for whole in self._wholes.values())

    def count_tenants(self) -> None:
        """Know at any time how many schedules tenants have. To be called before anything is changed."""
        self._counted = defaultdict(int)

    def pending_of(self, tenant: str) -> int:
        """Return how many schedules a tenant has, after `count_tenants`."""
        assert self._counted is not None
        whole = self._wholes.get(tenant)
        changed = self._counted[tenant.encode()] + (0 if whole is None else whole.change)
        return self._table.counts.pending_of(tenant) + changed

    def get(self, identity: bytes) -> Entry | None:
        """Return one schedule as it is with the changes so far."""
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
        """Store a schedule and its state record, in place of the one of its identity if there is one.

        Returns whether that one was split: whether its progress has its own record in the changelog.
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
        """Return what stores and removes schedules of a tenant at less cost, as long as they are simple."""
        whole = self._wholes.get(tenant)
        if whole is None:
            fresh = self._fresh.setdefault(tenant, set())
            whole = self._wholes[tenant] = WholeSchedules(tenant, self._rows, fresh)
        return whole

    def advance(self, identity: bytes, entry: Entry, record: bytes) -> None:
        """Store how far a schedule has come, as its progress record; its definition stays as it is.

        Without a definition it is the progress of a schedule that compaction has removed from the changelog: nothing.
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
        """Forget a schedule, if there is one. Returns whether it was split."""
        primary = PRIMARY + identity
        was_split = self._forget(primary, identity)
        self._written[primary] = self._primaries[primary] = None
        return was_split

    def stored(self, prefix: bytes, after: bytes) -> Iterator[bytes]:
        """Yield the identities in the table that begin with a prefix, in order, from the first after one.

        The changes of this cycle are not among them, nor is the probe.
        """
        start = max(PRIMARY + (prefix or _AFTER_PROBE), PRIMARY + after + b"\0")
        for primary, _ in self._table.store.scan(start, PRIMARY + prefix + b"\xff"):
            yield primary[len(PRIMARY) :]

    def bulk_parts(self) -> list[BulkPart]:
        """Return the bulk commands that were at work before this cycle, in the order in which they arrived."""
        stored = self._table.store.scan(layout.OTHERS + BULK_PART_KIND, layout.OTHERS + BULK_TOTAL_KIND)
        return [decode_bulk_part(value) for _, value in stored]

    def bulk_total(self, offset: int) -> BulkTotal | None:
        """Return the total of a bulk command by its offset, as it was before this cycle."""
        record = self._stored(layout.OTHERS + bulk_total_key(offset))
        return None if record is None else decode_bulk_total(record)

    def bulk_totals(self) -> dict[int, BulkTotal]:
        """Return the totals that there were before this cycle, by the offsets of their bulk commands."""
        stored = self._table.store.scan(layout.OTHERS + BULK_TOTAL_KIND, layout.OTHERS + EMPTIED_KIND)
        return {bulk_offset_of(key[len(layout.OTHERS) :]): decode_bulk_total(value) for key, value in stored}

    def keep(self, key: bytes, record: bytes | None) -> None:
        """Store a record that is no schedule's by its changelog key; None removes it."""
        self._changes[layout.OTHERS + key] = record

    def kept(self, key: bytes) -> bytes | None:
        """Return a record that is no schedule's by its changelog key, with the changes so far."""
        return self._rows.value_of(layout.OTHERS + key)

    def delayed(self) -> dict[str, DelayedQueue]:
        """Return the queues of delayed commands before this cycle, by tenant."""
        stored = self._table.store.scan(layout.OTHERS + QUEUE_KIND, layout.OTHERS + DELAYED_KIND)
        return {tenant_of(key[len(layout.OTHERS) :]): decode_queue(value) for key, value in stored}

    def rooms(self) -> dict[str, Lending]:
        """Return what had been lent and borrowed of tenants' room before this cycle, by tenant."""
        end = bytes([ROOM_KIND[0] + 1])
        stored = self._table.store.scan(layout.OTHERS + ROOM_KIND, layout.OTHERS + end)
        return {room_of(key[len(layout.OTHERS) :]): decode_room(value) for key, value in stored}

    @property
    def any_lent(self) -> bool:
        """Whether, before this cycle, commands had been passed to another partition and were not back."""
        end = bytes([LENT_KIND[0] + 1])
        return next(self._table.store.scan(layout.OTHERS + LENT_KIND, layout.OTHERS + end), None) is not None

    def due(
        self,
        until: int,
        limit: int,
        max_bytes: int,
        fair: FairQueue | None = None,
        allowed: Callable[[str], int | None] = _any_number,
        waits: Waits | None = None,
    ) -> DueScan:
        """Take what is due at or before `until` (ms), in order of (due, priority, arrival).

        Stops after `limit` entries or when their records pass `max_bytes`. If more is due, tenants share what is taken,
        as `fair` has it or else alike, and none has more than it is `allowed`; the order within a tenant is kept in any
        case. Every entry taken must be removed, put again, or left, in this same overlay: its tenant's floor moves past
        it. To be called once per overlay.
        """
        scans, next_due = self._scans(until, max_bytes / max(1, limit), allowed, waits)
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
            next_due = min(next_due, self._first_due_put_here(scans.keys() - opened.keys()))
        next_due = self._first_due_stored(opened, next_due)
        turns = {tenant: scan.most for tenant, scan in opened.items() if scan.most is not None}
        probe_due = None if PROBE_TENANT in opened else self._probe_due()
        return DueScan(taken, None if next_due == NEVER else next_due, cut, turns, held, probe_due)

    def next_due(self) -> int | None:
        """Return when (ms) the first schedule wakes that is no probe; None: there is none."""
        found = self._first_due_stored((), self._first_due_put_here(self._fresh))
        return None if found == NEVER else found

    def leave(self, entry: Entry) -> None:
        """Give a schedule back that was taken as due and not dealt with; so are its tenant's that were taken later."""
        tenant, key = entry.schedule.tenant, layout.index_key(entry, identity_of(entry))
        floor = self._floors.get(tenant)
        self._floors[tenant] = key if floor is None else min(floor, key)

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
        elif (decode := _OTHERS.get(key[:1])) is not None:
            if value is not None:
                decode(value)  # a newer worker's is refused while the table is untouched
            self.keep(key, value)
        else:
            raise FormatTooNew(
                f"a changelog record is of an unknown kind, {key[:1]!r}: run the newer version that wrote it"
            )

    def apply(self, *, changelog_offset: int, complete_at: int) -> None:
        """Write everything to the table at once, with the changelog offset that it reaches.

        `complete_at` is as in `Checkpoint`.
        """
        self._table.write(
            self._rows.all_changes(),
            msgspec.structs.replace(self._checkpoint(), changelog_offset=changelog_offset, complete_at=complete_at),
            self._cells,
        )
        self.settle_floors()
        for tenant, fresh in self._fresh.items():
            if fresh:  # it may be due before all that was scanned
                self._table.floors.lower(tenant, min(fresh))

    def settle_floors(self) -> None:
        """Have the next scan begin where this one ended; for a cycle that has nothing to write, too."""
        for tenant, floor in self._floors.items():
            self._table.floors.move(tenant, floor)
        for tenant, passed in self._passed.items():
            for place, key in passed:
                self._table.held.pass_over(place, tenant, key)

    def load(self) -> None:
        """Put everything into a table that is being filled (see `loading`)."""
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

    def _scans(
        self, until: int, unit: float, allowed: Callable[[str], int | None], waits: Waits | None
    ) -> tuple[dict[str, TenantScan], int]:
        """Return a scan for each tenant of which something is due, and when (ms) the first other one put here is."""
        fresh_due: dict[str, list[bytes]] = {}
        next_fresh = NEVER
        for tenant, keys in self._fresh.items():
            bound = layout.index_from(tenant, until + 1)
            if due := sorted(key for key in keys if key < bound):
                fresh_due[tenant] = due
            if tenant != PROBE_TENANT and (later := keys.difference(due) if due else keys):
                next_fresh = min(next_fresh, layout.due_of(min(later)))
        scans = {}
        for tenant in dict.fromkeys((*self._table.floors.due(until), *fresh_due)):
            items = self._ordered(tenant, fresh_due.get(tenant, []))
            candidates = Candidates(items, layout.index_from(tenant, until + 1))
            scans[tenant] = TenantScan(
                tenant, candidates, most=allowed(tenant), unit=unit, rows=self._rows, waits=waits
            )
        return scans, next_fresh

    def _first_due_put_here(self, tenants: Collection[str]) -> int:
        """Return when (ms) the first of what was put here of these tenants is due, or NEVER."""
        keys = (min(fresh) for tenant in tenants if tenant != PROBE_TENANT and (fresh := self._fresh.get(tenant)))
        return min(map(layout.due_of, keys), default=NEVER)

    def _probe_due(self) -> int | None:
        if PROBE_TENANT not in self._fresh and self._table.floors.get(PROBE_TENANT) is None:
            return None
        primary = self._rows.primary_of(PRIMARY + PROBE_IDENTITY)
        return None if primary is None else layout.due_of(layout.indexed_at(primary))

    def _ordered(self, tenant: str, fresh: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Return a tenant's (time-index key, value) in order: what is stored and as it was, and these keys put here."""
        changes = self._changes
        stored = self._stored_of(tenant)
        if changes:  # what is among them was replaced or cancelled in this cycle, or is fresh
            stored = (item for item in stored if item[0] not in changes)
        if fresh:
            stored = heapq.merge(stored, ((key, changes[key] or b"") for key in fresh))
        return stored

    def _stored_of(self, tenant: str) -> Iterator[tuple[bytes, bytes]]:
        floor = self._table.floors.get(tenant)
        return iter(()) if floor is None else self._table.store.scan(floor, layout.tenant_end(tenant))

    def _first_due_stored(self, scanned: Container[str], next_due: int) -> int:
        """Return when (ms) the first stored schedule of the tenants not scanned is due, or `next_due` if none before.

        Floors that turn out to be below their first schedule are moved up to it.
        """
        floors = self._table.floors
        place = None
        while (place := floors.after(place)) is not None and place[0] < next_due:
            tenant = place[1]
            if tenant != PROBE_TENANT and tenant not in scanned:
                stored = self._stored_of(tenant)
                first = next(stored, None)
                floors.move(tenant, None if first is None else first[0])
                items = stored if first is None else chain([first], stored)
                left = next((key for key, _ in items if key not in self._changes), None)
                if left is not None:
                    next_due = min(next_due, layout.due_of(left))
        return next_due

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
