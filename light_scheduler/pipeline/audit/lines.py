"""Reads lines of history as evidence.

Records that are none are left out, and so are the totals of bulk commands, and changes that bear on no schedule.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pyarrow as pa

from light_scheduler.errors import FormatError
from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.wire import decode_history
from light_scheduler.wire.redrive import REDRIVEN

from .claims import NOTHING, claim_of_change, claim_of_event
from .evidence import HISTORY

_WITHOUT_VERSION = (EventType.REJECTED, EventType.MOVED)
_PLACE = ("topic", "partition", "offset", "timestamp", "value")
_READ = ("tenant", "id", "lane", "target", "claim", "due", "at")
_INT = 1 << 31

_Int = Annotated[int, msgspec.Meta(ge=-_INT, lt=_INT)]


class _Line(msgspec.Struct):
    """A line that only another version can read: whose it is."""

    event: str
    tenant: str
    id: str | None = None
    version: int | None = None
    partition: _Int | None = None
    reason: str | None = None


_decode_line = msgspec.json.Decoder(_Line).decode


def told(records: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the evidence of Kafka records, whose `timestamp` is ms."""
    rows, places = [], []
    for place, value in enumerate(records.column("value").to_pylist()):
        row = _read(value)
        if row is not None:
            rows.append(row)
            places.append(place)
    if len(places) < records.num_rows:
        records = records.take(pa.array(places, pa.int64()))
    columns = list(zip(*rows, strict=True)) or [()] * len(_READ)
    given = {
        **{name: records.column(name) for name in _PLACE},
        **{name: pa.array(column, schema.field(name).type) for name, column in zip(_READ, columns, strict=True)},
        "kind": pa.repeat(HISTORY, len(rows)),
    }
    arrays = [given.get(field.name, pa.nulls(len(rows), field.type)).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read(value: bytes | None) -> tuple[Any, ...] | None:
    """Return the columns _READ of a line; None if it is no evidence."""
    try:
        event = decode_history(value)
    except FormatError:
        return _unread(value)
    if (change := claim_of_change(event)) != NOTHING:
        return event.tenant, "", None, None, *change
    if not _is_evidence(event):
        return None
    target = event.target_topic if event.event is EventType.FIRED else None
    lane = event.partition if -_INT <= event.partition < _INT else None
    return event.tenant, event.id or "", lane, target, *claim_of_event(event)


def _unread(value: bytes | None) -> tuple[Any, ...] | None:
    try:
        line = _decode_line(value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return (line.tenant, line.id or "", line.partition, None, *NOTHING) if _is_evidence(line) else None


def _is_evidence(line: HistoryEvent | _Line) -> bool:
    if line.version is None and line.event not in _WITHOUT_VERSION:
        return False
    # What somebody sends again by hand is no decision of the scheduler's.
    return line.reason is None or not line.reason.startswith(REDRIVEN)
