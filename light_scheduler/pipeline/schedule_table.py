"""Pending schedules as a table, which `export` writes and `import` reads.

Most columns are for people, and named like the headers of commands, with `_`; instants are timestamps, durations ms.
`record` is the complete state of a schedule; an import uses it and `partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from light_scheduler.model import NO_BOUNDS, Acknowledgement, Bounds, Entry, FixedRate, Progress, Schedule
from light_scheduler.wire.state import encode_entry
from light_scheduler.wire.trigger_fields import trigger_fields


class _View(NamedTuple):
    """A pending schedule with its parts; `trigger` has the notation of commands."""

    entry: Entry
    schedule: Schedule
    progress: Progress
    trigger: dict[str, str]
    bounds: Bounds
    completion: Acknowledgement | None


class Column(NamedTuple):
    """A column: its Spark type, and a function from a schedule to its value; instants are UTC epoch ms."""

    type: str
    of: Callable[[_View], Any]


_HEADERS = "array<struct<key:string,value:binary>>"
_LABELS = "map<string,string>"
_FIELDS: dict[str, Column] = {
    "tenant": Column("string", lambda view: view.schedule.tenant),
    "id": Column("string", lambda view: view.schedule.id),
    "version": Column("bigint", lambda view: view.schedule.version),
    "next_due": Column("timestamp", lambda view: view.progress.next_due),
    "paused": Column("boolean", lambda view: view.progress.paused),
    "sequence": Column("bigint", lambda view: view.progress.sequence),
    "attempt": Column("bigint", lambda view: view.progress.attempt),
    "at": Column("timestamp", lambda view: _whole(view.trigger.get("at"))),
    "every": Column("bigint", lambda view: _whole(view.trigger.get("every"))),
    "mode": Column("string", lambda view: view.trigger.get("mode")),
    "cron": Column("string", lambda view: view.trigger.get("cron")),
    "cron_dialect": Column("string", lambda view: view.trigger.get("cron-dialect")),
    "timezone": Column("string", lambda view: view.trigger.get("timezone")),
    "backoff": Column("string", lambda view: view.trigger.get("backoff")),
    "start": Column("timestamp", lambda view: view.bounds.start),
    "end": Column("timestamp", lambda view: view.bounds.end),
    "max_firings": Column("bigint", lambda view: view.bounds.max_firings),
    "jitter": Column("bigint", lambda view: view.bounds.jitter),
    "window": Column("bigint", lambda view: view.bounds.window),
    "misfire": Column("string", lambda view: view.bounds.misfire),
    "misfire_grace": Column("bigint", lambda view: view.bounds.misfire_grace),
    "ack_timeout": Column("bigint", lambda view: view.completion and view.completion.timeout),
    "max_attempts": Column("bigint", lambda view: view.completion and view.completion.max_attempts),
    "overlap": Column("string", lambda view: view.completion and view.completion.overlap),
    "target_topic": Column("string", lambda view: view.schedule.target.topic),
    "target_key": Column("binary", lambda view: view.schedule.target.key),
    "target_partition": Column("int", lambda view: view.schedule.target.partition),
    "target_partition_key": Column("binary", lambda view: view.schedule.target.partition_key),
    "payload": Column("binary", lambda view: view.schedule.payload),
    "headers": Column(_HEADERS, lambda view: [{"key": key, "value": value} for key, value in view.schedule.headers]),
    "labels": Column(_LABELS, lambda view: list((view.schedule.labels or {}).items())),
    "ttl": Column("bigint", lambda view: view.schedule.ttl),
    "priority": Column("int", lambda view: view.schedule.priority),
    "accepted_at": Column("timestamp", lambda view: view.schedule.accepted_at),
    "source_partition": Column("int", lambda view: view.schedule.source_partition),
    "source_offset": Column("bigint", lambda view: view.schedule.source_offset),
    "record": Column("binary", lambda view: encode_entry(view.entry)),
}
_PLACE = {"commands_topic": "string", "partition": "int", "partitions": "int"}
"""Commands topic of the schedule, its partition there, and the topic's number of partitions."""

_SPARK_TYPES = _PLACE | {name: column.type for name, column in _FIELDS.items()}
COLUMNS = ", ".join(f"`{name}` {type}" for name, type in _SPARK_TYPES.items())
"""The table's schema, in Spark's syntax."""

IN_PYTHON = {
    # Schedules and their rows are several times in the memory of a Python process.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}
"""Session configuration for converting rows to schedules, or schedules to rows."""

_TYPES: dict[str, Any] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    _HEADERS: pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    _LABELS: pa.map_(pa.string(), pa.string()),
}


def rows_of(entries: Sequence[Entry], commands_topic: str, partition: pa.Array[Any], partitions: int) -> pa.RecordBatch:
    """Return pending schedules as rows. `partition` has the partition of each."""
    views = [_view(entry) for entry in entries]
    columns = [
        pa.repeat(pa.scalar(commands_topic, pa.string()), len(views)),
        partition.cast(pa.int32()),
        pa.repeat(pa.scalar(partitions, pa.int32()), len(views)),
    ]
    columns += [_array(column, views) for column in _FIELDS.values()]
    return pa.RecordBatch.from_arrays(columns, names=[*_PLACE, *_FIELDS])


def _view(entry: Entry) -> _View:
    schedule, trigger = entry.schedule, entry.schedule.trigger
    if isinstance(trigger, FixedRate):
        trigger = msgspec.structs.replace(trigger, anchor=None)  # it has no field of its own
    fields = trigger_fields(trigger)
    return _View(entry, schedule, entry.progress, fields, schedule.bounds or NO_BOUNDS, schedule.acknowledgement)


def _array(column: Column, views: Sequence[_View]) -> pa.Array[Any]:
    values = [column.of(view) for view in views]
    if column.type == "timestamp":
        return pa.array(values, pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(_TYPES["timestamp"])
    return pa.array(values, _TYPES[column.type])


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
