"""State records of a partition other than schedules and the input position, as a cycle sees them.

The table has them by changelog key: bulk commands, queues of delayed commands and of records for other partitions, lent
room, and records for a topic that gets more partitions. Methods that list records do not include the changes of the
cycle.
"""

from __future__ import annotations

from collections.abc import Callable

from light_scheduler.errors import FormatTooNew
from light_scheduler.model import BulkPart, BulkTotal
from light_scheduler.model.room_lending import Lending
from light_scheduler.wire.delayed_state import (
    DELAYED_KIND,
    QUEUE_KIND,
    DelayedQueue,
    decode_delayed,
    decode_queue,
    tenant_of,
)
from light_scheduler.wire.room_state import ROOM_KIND, decode_room, room_of
from light_scheduler.wire.state import (
    BULK_PART_KIND,
    BULK_TOTAL_KIND,
    EMPTIED_KIND,
    LENT_KIND,
    bulk_offset_of,
    bulk_total_key,
    decode_bulk_part,
    decode_bulk_total,
    decode_emptied,
    decode_lent,
)
from light_scheduler.wire.state_format import WAITING, WAITING_FOR_LOG
from light_scheduler.wire.waiting_state import (
    QUEUES,
    decode_tenant_part,
    decode_waiting,
    decode_waiting_queue,
    is_of_partition,
    is_tenant_part,
    partition_of,
)

from . import layout
from .rows import Rows
from .store import Store


def _decode_queue(value: bytes) -> DelayedQueue:
    return decode_waiting_queue(value) if value[:1] == WAITING else decode_queue(value)


def _decode_delayed(value: bytes) -> object:
    return decode_waiting(value) if value[:1] in (WAITING, WAITING_FOR_LOG) else decode_delayed(value)


_DECODERS: dict[bytes, Callable[[bytes], object]] = {
    BULK_PART_KIND: decode_bulk_part,
    BULK_TOTAL_KIND: decode_bulk_total,
    EMPTIED_KIND: decode_emptied,
    LENT_KIND: decode_lent,
    QUEUE_KIND: _decode_queue,
    DELAYED_KIND: _decode_delayed,
    ROOM_KIND: decode_room,
}


class OtherRecords:
    """Reads through to the store, and writes changes to the rows of the cycle."""

    def __init__(self, store: Store, rows: Rows) -> None:
        self._store = store
        self._rows = rows

    def put(self, key: bytes, record: bytes | None) -> None:
        """Store a record by its changelog key; None removes it."""
        self._rows.changes[layout.OTHERS + key] = record

    def get(self, key: bytes) -> bytes | None:
        """Return a record by its changelog key, including changes so far; None if there is none."""
        return self._rows.value_of(layout.OTHERS + key)

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one changelog record. Raises FormatTooNew or FormatError, and then changes nothing."""
        decode = decode_tenant_part if is_tenant_part(key) else _DECODERS.get(key[:1])
        if decode is None:
            raise FormatTooNew(
                f"a changelog record is of an unknown kind, {key[:1]!r}: run the newer version that wrote it"
            )
        if value is not None:
            decode(value)
        self.put(key, value)

    def bulk_parts(self) -> list[BulkPart]:
        """Return the running bulk commands, in order of arrival."""
        stored = self._store.scan(layout.OTHERS + BULK_PART_KIND, layout.OTHERS + BULK_TOTAL_KIND)
        return [decode_bulk_part(value) for _, value in stored]

    def bulk_total(self, offset: int) -> BulkTotal | None:
        """Return the total of a bulk command by its arrival, from before the cycle."""
        record = self._rows.stored(layout.OTHERS + bulk_total_key(offset))
        return None if record is None else decode_bulk_total(record)

    def bulk_totals(self) -> dict[int, BulkTotal]:
        """Return the totals by the arrival of the bulk command."""
        stored = self._store.scan(layout.OTHERS + BULK_TOTAL_KIND, layout.OTHERS + EMPTIED_KIND)
        return {bulk_offset_of(key[len(layout.OTHERS) :]): decode_bulk_total(value) for key, value in stored}

    def delayed(self) -> dict[str, DelayedQueue]:
        """Return the queues of delayed commands, by tenant."""
        stored = self._store.scan(layout.OTHERS + QUEUE_KIND, layout.OTHERS + DELAYED_KIND)
        queues = ((key[len(layout.OTHERS) :], value) for key, value in stored)
        return {tenant_of(key): decode_queue(value) for key, value in queues if not is_of_partition(key)}

    def waiting(self) -> dict[int, DelayedQueue]:
        """Return the queues of records for other partitions, by partition."""
        stored = self._store.scan(layout.OTHERS + QUEUES, layout.OTHERS + QUEUE_KIND + b"\1")
        return {partition_of(key[len(layout.OTHERS) :]): decode_waiting_queue(value) for key, value in stored}

    def rooms(self) -> dict[str, Lending]:
        """Return lent and borrowed room by tenant."""
        stored = self._store.scan(layout.OTHERS + ROOM_KIND, layout.OTHERS + _above(ROOM_KIND))
        return {room_of(key[len(layout.OTHERS) :]): decode_room(value) for key, value in stored}

    def of_growth(self) -> list[bytes]:
        """Return the changelog keys of the records which say how far schedules have moved since the topic grew."""
        stored = self._store.scan(layout.OTHERS + EMPTIED_KIND, layout.OTHERS + _above(LENT_KIND))
        return [key[len(layout.OTHERS) :] for key, _ in stored]

    @property
    def any_lent(self) -> bool:
        """Whether commands were passed to another partition and are not back, as of before the cycle."""
        lent = self._store.scan(layout.OTHERS + LENT_KIND, layout.OTHERS + _above(LENT_KIND))
        return next(lent, None) is not None


def _above(kind: bytes) -> bytes:
    return bytes([kind[0] + 1])
