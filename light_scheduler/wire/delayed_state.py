"""State records of delayed commands, which exceed a rate of their tenant, in order of arrival.

Changelog key     kind u8 | rest
    0x07  the queue of a tenant     rest: tenant   (UTF-8)
    0x08  a command in it           rest: tenant | 0x00 | number u64 big-endian

Changelog value   version u8 | body
    queue      version 5: MessagePack of [first, end, size]
    command    version 5: MessagePack of [key, value, headers, partition, arrival, timestamp] of the record
               with the partition and offset of another one, if the command was sent there, could not be passed on to
               where it belongs, and was delayed here (see `lanes.cycle.stranded`)
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

from light_scheduler.model.arrival import offset_of

from .record import CommandRecord, Copy, sent_at
from .state_format import VERSION, decoded

QUEUE_KIND = b"\x07"
DELAYED_KIND = b"\x08"

_NUMBER = struct.Struct(">Q")


class DelayedQueue(NamedTuple):
    """Commands with numbers from `first` (inclusive) to `end` (exclusive), with a total `size` in bytes."""

    first: int = 0
    end: int = 0
    size: int = 0

    @property
    def waiting(self) -> int:
        """Number of waiting commands."""
        return self.end - self.first


class DelayedCommand(NamedTuple):
    """A complete record of the commands topic, with its arrival (`model.arrival`). `timestamp` is UTC epoch ms."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int
    offset: int
    timestamp: int

    def read_in(self, partition: int) -> CommandRecord:
        """Return the record as a partition has read it."""
        sent = self.partition, offset_of(self.offset)
        if sent == (partition, self.offset):
            return self
        return Copy(*self._replace(partition=partition), sent=sent)


_encode = msgspec.msgpack.Encoder().encode
_decode_queue = msgspec.msgpack.Decoder(DelayedQueue).decode
_decode_command = msgspec.msgpack.Decoder(DelayedCommand).decode


def queue_key(tenant: str) -> bytes:
    """Return the changelog key of a tenant's queue."""
    return QUEUE_KIND + tenant.encode()


def tenant_of(queue_key: bytes) -> str:
    """Return the tenant in the changelog key of a queue."""
    return queue_key[len(QUEUE_KIND) :].decode()


def encode_queue(queue: DelayedQueue) -> bytes:
    """Encode a queue."""
    return VERSION + _encode(queue)


def decode_queue(value: bytes) -> DelayedQueue:
    """Decode a queue. Raises FormatTooNew or FormatError."""
    return decoded(_decode_queue, value, "a queue of delayed commands")


def delayed_key(tenant: str, number: int) -> bytes:
    """Return the changelog key of a command by its number in its tenant's queue."""
    return DELAYED_KIND + tenant.encode() + b"\0" + _NUMBER.pack(number)


def encode_delayed(record: CommandRecord) -> bytes:
    """Encode a command."""
    headers = [(name, value) for name, value in record.headers]
    sent = sent_at(record)
    place = (sent.partition, record.offset) if sent.partition == record.partition else sent
    return VERSION + _encode((record.key, record.value, headers, *place, record.timestamp))


def decode_delayed(value: bytes) -> DelayedCommand:
    """Decode a command. Raises FormatTooNew or FormatError."""
    return decoded(_decode_command, value, "a delayed command")
