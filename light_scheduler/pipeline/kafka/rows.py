"""Records as rows: the columns of Spark's own Kafka connector, in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

import pyarrow as pa

from .fetching import Message

COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
HEADERS = "headers array<struct<key:string,value:binary>>"


UNREADABLE: list[tuple[str, bytes]] = [("schedule-unreadable", b"the name of a header is not UTF-8")]
"""Headers of a record whose header names are not text, as in workers. Its key and value are kept."""


def record_batch(messages: Sequence[Message], topic: str, partition: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return records of one log as a batch. `schema` is that of COLUMNS, with or without HEADERS."""
    columns = [
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        pa.repeat(pa.scalar(topic, pa.string()), len(messages)),
        pa.repeat(pa.scalar(partition, pa.int32()), len(messages)),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([message.timestamp()[1] * 1_000 for message in messages], pa.int64()).cast(pa.timestamp("us", "UTC")),
        # librdkafka counts from 0 (none), Java from -1.
        pa.array([message.timestamp()[0] - 1 for message in messages], pa.int32()),
    ]
    if "headers" in schema.names:
        columns.append(_headers(messages, schema.field("headers").type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _headers(messages: Sequence[Message], type: pa.ListType) -> pa.Array[Any]:
    # A list for each record would cost more than all other columns together.
    ends, names, values, absent = [0], [], [], []
    for message in messages:
        headers = _headers_of(message)
        absent.append(not headers)
        for name, value in headers or ():
            names.append(name)
            values.append(value)
        ends.append(len(names))
    pairs = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(values, pa.binary())], fields=list(type.value_type)
    )
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs, type=type, mask=pa.array(absent))


# The client may return a list and an error at once. Only a call through C detects that: Python's optimised call
# continues with the incomplete list, and crashes.
_ask_for_headers = methodcaller("headers")


def _headers_of(message: Message) -> list[tuple[str, bytes | None]] | None:
    try:
        return _ask_for_headers(message)  # type: ignore[no-any-return]
    except SystemError as error:  # how the client's failure appears
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
        return UNREADABLE  # type: ignore[return-value]
