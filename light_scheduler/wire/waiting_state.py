"""State records of what waits for another partition of the commands topic: records for its log, in their order.

Changelog key     kind u8 | rest   (no tenant's name begins with 0x00: see `delayed_state`)
    0x07  the queue for a partition   rest: 0x00 | partition u32 big-endian
    0x08  a record in it              rest: 0x00 | partition u32 big-endian | number u64 big-endian

Changelog value   version u8 | body
    queue      version 130: MessagePack of [first, end, size]
    record     version 130: MessagePack of [key, value, headers], as they are to be written
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

from light_scheduler.model import Headers

from .delayed_state import DELAYED_KIND, QUEUE_KIND, DelayedQueue
from .state_format import WAITING, decoded_as

_PARTITION = struct.Struct(">BI")
_RECORD = struct.Struct(">BIQ")

QUEUES = QUEUE_KIND + b"\0"
"""What the keys of queues begin with."""


class WaitingRecord(NamedTuple):
    """A record for the log of another partition."""

    key: bytes | None
    value: bytes | None
    headers: Headers


_encode = msgspec.msgpack.Encoder().encode
_decode_queue = msgspec.msgpack.Decoder(DelayedQueue).decode
_decode_record = msgspec.msgpack.Decoder(WaitingRecord).decode


def is_of_partition(key: bytes) -> bool:
    """Return whether a changelog key of one of these kinds names a partition, not a tenant."""
    return key[1:2] == b"\0"


def waiting_queue_key(partition: int) -> bytes:
    """Return the changelog key of the queue for a partition."""
    return QUEUE_KIND + _PARTITION.pack(0, partition)


def partition_of(queue_key: bytes) -> int:
    """Return for which partition a queue is that a changelog key names."""
    partition: int = _PARTITION.unpack(queue_key[len(QUEUE_KIND) :])[1]
    return partition


def waiting_key(partition: int, number: int) -> bytes:
    """Return the changelog key of a record by its number in the queue for a partition."""
    return DELAYED_KIND + _RECORD.pack(0, partition, number)


def encode_waiting_queue(queue: DelayedQueue) -> bytes:
    """Encode a queue."""
    return WAITING + _encode(queue)


def decode_waiting_queue(value: bytes) -> DelayedQueue:
    """Decode a queue. Raises FormatTooNew or FormatError."""
    return decoded_as(WAITING, _decode_queue, value, "a queue of records for another partition")


def encode_waiting(record: WaitingRecord) -> bytes:
    """Encode a record."""
    return WAITING + _encode((record.key, record.value, [(name, value) for name, value in record.headers]))


def decode_waiting(value: bytes) -> WaitingRecord:
    """Decode a record. Raises FormatTooNew or FormatError."""
    return decoded_as(WAITING, _decode_record, value, "a record for another partition")
