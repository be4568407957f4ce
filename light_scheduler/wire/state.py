"""State records: the format of schedules in the changelog and in RocksDB.

Changelog key     kind u8 | rest
    0x00  input position of the lane           rest: empty
    0x01  a pending schedule                   rest: tenant | 0x00 | id   (UTF-8; neither contains 0x00)
    0x02  the progress of a large schedule     rest: tenant | 0x00 | id
    0x03  a running bulk command               rest: arrival u64 big-endian, of its record in this partition
    0x04  the total of one that was sent here  rest: arrival u64 big-endian, of its record
    0x05  a partition that has handed over     rest: number of partitions u32 big-endian | partition u32 big-endian
    0x06  commands that are not back yet       rest: tenant | 0x00 | id
    0x07  the delayed commands of a tenant     rest: tenant
          records for another partition        rest: 0x00 | partition u32 big-endian
    0x08  a delayed command                    rest: tenant | 0x00 | number u64 big-endian
          a record for another partition       rest: 0x00 | partition u32 big-endian | number u64 big-endian
    0x09  the room of a tenant                 rest: tenant

Changelog value   version u8 | body
    position   version 1 to 5: offset u64 | topic id | 0x00 | application id | 0x00 | commands topic   (UTF-8;
               a record of an older version may end after the offset)
               version 132: the same | 0x00 | number of the log, if that is not 0   (decimal; see `model.arrival`)
    schedule   version 1 to 5: MessagePack of [schedule, progress], each an array of its fields in the model's order
               (4: with `home_key`)
    progress   version 1 to 5: MessagePack of an array of its fields in the model's order
    part       version 1 to 5: MessagePack of an array of its fields in the model's order; its command is a map
               (2: `reply_to` may have a partition; 3: the requester)
    total      version 1: the same
               (both also with version 128, and more fields, while a topic grows: `ScopedPart`, `SubTotal`;
               a total with missing partitions has version 129: `LackingTotal`)
    emptied    version 4 and 5: nothing else
    lent       version 4 and 5: number u32 big-endian
    delayed    version 5: see `delayed_state`; of records for another partition version 130: see `waiting_state`
    room       version 5: see `room_state`

RocksDB has the same values under its own keys (see `tables.layout`). All kinds have one version,
`state_format.FORMAT_VERSION`. A new field, kind or meaning needs a new version, and also a new
`tables.table.CHECKPOINT_VERSION`: an older worker must refuse what it does not know, since it would lose it when it
writes the record again. Fields are only appended, with defaults, so that records of any age can be decoded.

A null changelog value removes the key. A progress record applies to the schedule record before it in the log. Without
one, which can happen after compaction, it has no effect.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

import msgspec

from light_scheduler.errors import FormatError
from light_scheduler.model import DEFAULT_PRIORITY, BulkPart, BulkTotal, Entry, Progress, State, state_of
from light_scheduler.model.bulk import LackingTotal, ScopedPart, SubTotal

from .state_format import FORMAT_VERSION, GROWING, LACKING, NUMBERED, READABLE, VERSION, decoded, wrong_version

POSITION_KEY = b"\x00"
SCHEDULE_KIND = b"\x01"
PROGRESS_KIND = b"\x02"
BULK_PART_KIND = b"\x03"
BULK_TOTAL_KIND = b"\x04"
EMPTIED_KIND = b"\x05"
LENT_KIND = b"\x06"

_NUMBER = re.compile(r"[1-9]\d{0,3}", re.ASCII)
_POSITION = struct.Struct(">BQ")
_OFFSET = struct.Struct(">Q")
_EMPTIED = struct.Struct(">II")
_LENT = struct.Struct(">I")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode
_decode_progress = msgspec.msgpack.Decoder(Progress).decode
_decode_bulk_part = msgspec.msgpack.Decoder(BulkPart).decode
_decode_bulk_total = msgspec.msgpack.Decoder(BulkTotal).decode
_decode_scoped_part = msgspec.msgpack.Decoder(ScopedPart).decode
_decode_sub_total = msgspec.msgpack.Decoder(SubTotal).decode
_decode_lacking_total = msgspec.msgpack.Decoder(LackingTotal).decode


class _Aim(msgspec.Struct, array_like=True, gc=False):
    """The first field of `Target`."""

    topic: str


class _Order(msgspec.Struct, array_like=True, gc=False):
    """The first fields of `Schedule`, up to its priority. Decoding numbers and texts is faster than skipping them."""

    tenant: str
    id: str
    version: int
    trigger: msgspec.Raw
    target: _Aim
    payload: msgspec.Raw
    headers: msgspec.Raw
    source_partition: int
    source_offset: int
    accepted_at: int
    ttl: int | None = None
    priority: int = DEFAULT_PRIORITY


class _Waking(msgspec.Struct, array_like=True, gc=False):
    """The first fields of `Progress`, up to the last one that is needed for wake time and state."""

    due: int
    arrival: int
    sequence: int = 1
    attempt: int = 1
    wake: int | None = None
    planned: int | None = None
    first_due: int | None = None
    refusals: int = 0
    retry_at: int | None = None
    paused: bool = False
    triggered: tuple[msgspec.Raw, ...] = ()
    queued: int | None = None
    awaited: tuple[msgspec.Raw, ...] = ()


_decode_standing = msgspec.msgpack.Decoder(tuple[_Order, _Waking]).decode


def identity(tenant: str, id: str) -> bytes:
    """Return the identity of a schedule, which is unique within its partition."""
    return f"{tenant}\0{id}".encode()


def id_in(identity: bytes) -> str:
    """Return the schedule's id in an identity."""
    return identity.partition(b"\0")[2].decode()


def identity_of(entry: Entry) -> bytes:
    """Return the identity of a pending schedule."""
    return identity(entry.schedule.tenant, entry.schedule.id)


def encode_entry(entry: Entry) -> bytes:
    """Encode a pending schedule."""
    return VERSION + _encode(entry)


def decode_entry(value: bytes) -> Entry:
    """Decode a pending schedule. Raises FormatTooNew or FormatError."""
    if value[:1] not in READABLE:
        raise wrong_version(value)
    try:
        return _decode(value[1:])  # a copy is cheaper than a view, up to about 10 KB
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"a schedule record cannot be read: {error}") from error


Standing = tuple[int, int, int, str, State]
"""A schedule's wake time (UTC epoch ms), priority and arrival, which define its place in the due order, and its target
topic and state, which are needed to count it.
"""


def decode_standing(value: bytes) -> Standing:
    """Decode only the `Standing` of a pending schedule. Raises FormatTooNew or FormatError."""
    if value[:1] not in READABLE:
        raise wrong_version(value)
    try:
        order, waking = _decode_standing(value[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"a schedule record cannot be read: {error}") from error
    wakes_at = waking.due if waking.wake is None else waking.wake
    state = state_of(waking.paused, bool(waking.awaited), waking.due)
    return wakes_at, order.priority, waking.arrival, order.target.topic, state


def encode_progress(progress: Progress) -> bytes:
    """Encode a schedule's progress."""
    return VERSION + _encode(progress)


def decode_progress(value: bytes) -> Progress:
    """Decode a schedule's progress. Raises FormatTooNew or FormatError."""
    return decoded(_decode_progress, value, "a progress record")


def bulk_part_key(offset: int) -> bytes:
    """Return the changelog key of a running bulk command, by its arrival in the partition."""
    return BULK_PART_KIND + _OFFSET.pack(offset)


def encode_bulk_part(part: BulkPart) -> bytes:
    """Encode a running bulk command."""
    return (GROWING if isinstance(part, ScopedPart) else VERSION) + _encode(part)


def decode_bulk_part(value: bytes) -> BulkPart:
    """Decode a running bulk command. Raises FormatTooNew or FormatError."""
    if value[:1] == GROWING:
        return decoded(_decode_scoped_part, VERSION + value[1:], "a record of a bulk command")
    return decoded(_decode_bulk_part, value, "a record of a bulk command")


def bulk_total_key(offset: int) -> bytes:
    """Return the changelog key of the total of a bulk command, by the command's arrival."""
    return BULK_TOTAL_KIND + _OFFSET.pack(offset)


def bulk_offset_of(key: bytes) -> int:
    """Return the arrival in the changelog key of a running bulk command or a total."""
    offset: int = _OFFSET.unpack_from(key, 1)[0]
    return offset


def encode_bulk_total(total: BulkTotal) -> bytes:
    """Encode a total."""
    if isinstance(total, LackingTotal):
        return LACKING + _encode(total)
    return (GROWING if isinstance(total, SubTotal) else VERSION) + _encode(total)


def decode_bulk_total(value: bytes) -> BulkTotal:
    """Decode a total. Raises FormatTooNew or FormatError."""
    if value[:1] == LACKING:
        return decoded(_decode_lacking_total, VERSION + value[1:], "a total")
    if value[:1] == GROWING:
        return decoded(_decode_sub_total, VERSION + value[1:], "a total")
    return decoded(_decode_bulk_total, value, "a total")


def emptied_key(partitions: int, partition: int) -> bytes:
    """Return the changelog key for a partition that has handed over everything, in a topic of `partitions`."""
    return EMPTIED_KIND + _EMPTIED.pack(partitions, partition)


def encode_emptied() -> bytes:
    """Return the value for an `emptied_key`, which has no content."""
    return VERSION


def decode_emptied(value: bytes) -> None:
    """Check the value of a record with an `emptied_key`. Raises FormatTooNew or FormatError."""
    if value[:1] not in READABLE:
        raise wrong_version(value)


def lent_key(identity: bytes) -> bytes:
    """Return the changelog key of the number of a schedule's commands that are at another partition."""
    return LENT_KIND + identity


def encode_lent(count: int) -> bytes:
    """Encode the number of commands that were passed to another partition and are not back."""
    return VERSION + _LENT.pack(count)


def decode_lent(value: bytes) -> int:
    """Decode the number of commands that are not back. Raises FormatTooNew or FormatError."""
    if value[:1] not in READABLE:
        raise wrong_version(value)
    if len(value) != 1 + _LENT.size:
        raise FormatError("a record of commands that are with another partition has the wrong length")
    count: int = _LENT.unpack_from(value, 1)[0]
    return count


class CommandsLog(NamedTuple):
    """The log of commands to which a changelog belongs: the application, its commands topic, and the topic's id.

    The id is empty if unknown. `number` says which log of its partition it is, from 0 on (`model.arrival`).
    """

    topic_id: str
    app_id: str
    topic: str
    number: int = 0

    @property
    def owner(self) -> tuple[str, str]:
        """The application and its commands topic."""
        return self.app_id, self.topic

    @property
    def stored(self) -> tuple[str | int, ...]:
        """The fields that are stored: without the number in the first log, as earlier versions read it."""
        return self if self.number else self[:-1]


def encode_position(offset: int, log: CommandsLog | None = None) -> bytes:
    """Encode the offset of the next command to read, and its log."""
    if log is None:
        return _POSITION.pack(FORMAT_VERSION, offset)
    version = NUMBERED[0] if log.number else FORMAT_VERSION
    return _POSITION.pack(version, offset) + "\0".join(map(str, log.stored)).encode()


def decode_position(value: bytes) -> int:
    """Decode the offset of the next command to read. Raises FormatTooNew or FormatError."""
    if value[:1] not in READABLE and value[:1] != NUMBERED:
        raise wrong_version(value)
    if len(value) < _POSITION.size:
        raise FormatError("a position record is too short")
    decode_commands_log(value)
    offset: int = _POSITION.unpack_from(value)[1]
    return offset


def decode_commands_log(value: bytes) -> CommandsLog | None:
    """Decode the log of a position; None if the record does not have it. Raises FormatError."""
    rest, is_numbered = value[_POSITION.size :], value[:1] == NUMBERED
    if not rest and not is_numbered:
        return None
    try:
        topic_id, app_id, topic, *numbers = rest.decode().split("\0")
    except ValueError as error:
        raise FormatError(f"a position record has a log that cannot be read: {error}") from error
    if not (app_id and topic):
        raise FormatError("a position record names no log")
    if len(numbers) != is_numbered or not all(map(_NUMBER.fullmatch, numbers)):
        raise FormatError("a position record has a log without its number, or one with a number too many")
    return CommandsLog(topic_id, app_id, topic, *map(int, numbers))
