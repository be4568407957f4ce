"""State records of what waits for another partition of the commands topic: records for its log, in their order.

Changelog key     kind u8 | rest   (no tenant's name begins with 0x00: see `delayed_state`)
    0x07  the queue for a partition   rest: 0x00 | partition u32 big-endian
    0x08  a record in it              rest: 0x00 | partition u32 big-endian | number u64 big-endian
    0x08  a tenant's part of it       rest: 0x00 | partition u32 big-endian, plus 2^31 | tenant   (UTF-8)

Changelog value   version u8 | body
    queue      version 130: MessagePack of [first, end, size]
    record     version 131: MessagePack of [key, value, headers, topic id, tenant]: first as they are to be written
               version 130: without topic id and tenant
    part       version 131: MessagePack of [waiting, size]

The topic id is that of the log that the record was for, or empty if unknown. The tenant is that whose part of the queue
has the record, or empty if none.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

from light_scheduler.model import Headers

from .delayed_state import DELAYED_KIND, QUEUE_KIND, DelayedQueue
from .state_format import WAITING, WAITING_FOR_LOG, decoded_as

_PARTITION = struct.Struct(">BI")
_RECORD = struct.Struct(">BIQ")

QUEUES = QUEUE_KIND + b"\0"
"""What the keys of queues begin with."""

_OF_TENANT = 1 << 31
"""Above the numbers of all partitions."""


class WaitingRecord(NamedTuple):
    """A record for the log of another partition, in the topic with this id. It counts for a `tenant`, if for any."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    topic_id: str = ""
    tenant: str = ""


class TenantPart(NamedTuple):
    """The number of a tenant's records that wait for a partition, and their `size` in bytes."""

    waiting: int = 0
    size: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode_queue = msgspec.msgpack.Decoder(DelayedQueue).decode
_decode_record = msgspec.msgpack.Decoder(WaitingRecord).decode
_decode_part = msgspec.msgpack.Decoder(TenantPart).decode


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


def tenant_part_key(partition: int, tenant: str) -> bytes:
    """Return the changelog key of a tenant's part of the queue for a partition."""
    return DELAYED_KIND + _PARTITION.pack(0, partition | _OF_TENANT) + tenant.encode()


def is_tenant_part(key: bytes) -> bool:
    """Return whether a changelog key is that of a tenant's part of a queue."""
    return key.startswith(DELAYED_KIND + b"\0") and key[2] & 0x80 != 0


def encode_waiting_queue(queue: DelayedQueue) -> bytes:
    """Encode a queue."""
    return WAITING + _encode(queue)


def decode_waiting_queue(value: bytes) -> DelayedQueue:
    """Decode a queue. Raises FormatTooNew or FormatError."""
    return decoded_as(WAITING, _decode_queue, value, "a queue of records for another partition")


def encode_waiting(record: WaitingRecord) -> bytes:
    """Encode a record."""
    headers = [(name, value) for name, value in record.headers]
    return WAITING_FOR_LOG + _encode((record.key, record.value, headers, record.topic_id, record.tenant))


def decode_waiting(value: bytes) -> WaitingRecord:
    """Decode a record. Raises FormatTooNew or FormatError."""
    version = WAITING if value[:1] == WAITING else WAITING_FOR_LOG
    return decoded_as(version, _decode_record, value, "a record for another partition")


def encode_tenant_part(part: TenantPart) -> bytes:
    """Encode a tenant's part of a queue."""
    return WAITING_FOR_LOG + _encode(part)


def decode_tenant_part(value: bytes) -> TenantPart:
    """Decode a tenant's part of a queue. Raises FormatTooNew or FormatError."""
    return decoded_as(WAITING_FOR_LOG, _decode_part, value, "a tenant's part of what waits for another partition")
