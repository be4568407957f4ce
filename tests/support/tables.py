"""Schedule tables on every kind of store, and schedules to put into them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from light_scheduler.model import (
    Entry,
    Once,
    Progress,
    Schedule,
    Target,
)
from light_scheduler.tables import DueScan, MemoryStore, Overlay, ScheduleTable, Store, layout
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.wire.state import (
    SCHEDULE_KIND,
    encode_entry,
    identity,
    identity_of,
)

replace = msgspec.structs.replace

AT = 1_767_225_600_000
MINUTE = 60_000
MUCH = 1 << 30


class Disk(Protocol):
    """What outlives a process."""

    def open(self) -> Store: ...


class MemoryDisk:
    def __init__(self, path: Path) -> None:
        self._store = MemoryStore()

    def open(self) -> Store:
        return self._store


class RocksDisk:
    def __init__(self, path: Path) -> None:
        self._path = path / "store"

    def open(self) -> Store:
        return RocksStore(self._path)


DISKS = [MemoryDisk, RocksDisk]


class Tables:
    """A table that can be closed and opened again."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.store = disk.open()
        self.table = ScheduleTable(self.store)
        self._offset = 0

    def reopen(self) -> ScheduleTable:
        self.table.close()
        self.store = self._disk.open()
        self.table = ScheduleTable(self.store)
        return self.table

    def overlay(self) -> Overlay:
        return Overlay(self.table)

    def commit(self, overlay: Overlay) -> None:
        self._offset += 1
        overlay.apply(changelog_offset=self._offset, complete_at=AT)

    def put(self, *entries: Entry) -> None:
        overlay = self.overlay()
        for each in entries:
            put(overlay, each)
        self.commit(overlay)

    def fire(self, now: int, limit: int = 1_000, max_bytes: int = MUCH) -> list[str]:
        """Take what is due, forget it, and return the ids."""
        overlay = self.overlay()
        scan = overlay.due(now, limit, max_bytes)
        for each in scan.entries:
            overlay.remove(identity_of(each))
        self.commit(overlay)
        return ids(scan)

    def everything(self) -> dict[bytes, bytes]:
        return dict(self.store.scan(b"", b"\xff"))


def entry(id: str, due: int = AT, *, tenant: str = "acme", **fields: Any) -> Entry:
    fields = {"priority": 100, "arrival": 0, "version": 1, "payload": b"x", **fields}
    return Entry(
        Schedule(
            tenant,
            id,
            fields["version"],
            Once(due),
            Target("t"),
            fields["payload"],
            [],
            0,
            fields["arrival"],
            AT,
            priority=fields["priority"],
        ),
        Progress(due, fields["arrival"]),
    )


def index_key(each: Entry) -> bytes:
    return layout.index_key(each, identity_of(each))


def put(overlay: Overlay, each: Entry) -> None:
    overlay.put(identity_of(each), each, encode_entry(each))


def ids(scan: DueScan) -> list[str]:
    return [each.schedule.id for each in scan.entries]


def by_tenant(scan: DueScan) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for each in scan.entries:
        found.setdefault(each.schedule.tenant, []).append(each)
    return found


def by_id(table: ScheduleTable, tenant: str, after: str = "", prefix: str = "") -> Iterator[Entry]:
    """Yield the schedules of `ScheduleTable.positions_by_id`, each read when it is asked for."""
    for _, position in table.positions_by_id(tenant, after, prefix):
        value = table.value_at(position)
        if value is not None:
            yield table.entry_of(position, value)


def by_due(table: ScheduleTable, tenant: str, after: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
    """Yield the (position, schedule) of `ScheduleTable.rows_by_due`."""
    for position, value in table.rows_by_due(tenant, after):
        yield position, table.entry_of(position, value)


def key_of(tenant: str, id: str) -> bytes:
    return SCHEDULE_KIND + identity(tenant, id)
