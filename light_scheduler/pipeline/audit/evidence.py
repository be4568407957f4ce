"""Records as evidence: what the topics say about a schedule, row by row and in one form.

A row of evidence is

    tenant, id        whose it is; the id is empty where none could be told
    lane              the partition of the commands topic whose lane it belongs to
    kind              IMPORTED, COMMAND, DEAD_LETTER, HISTORY, SEEN or TRACED
    topic, partition, offset, timestamp (UTC epoch ms)      the record
    key, value, headers                                     what is needed of it; the key of a command that a lane
                                                            has passed on to another is where it was sent to, and the
                                                            timestamp that of the record that was sent; the key of
                                                            a schedule that an audit before left is its series

Payloads are digests from the start: the largest part of most records is never shuffled. Commands in dialects of other
schedulers are as they were sent: of some, the message is made from the payload.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from light_scheduler.engine import Limits
from light_scheduler.errors import FormatError, InvalidCommand
from light_scheduler.model import (
    DEFAULT_TENANT,
    BulkCommand,
    Command,
    CompleteCommand,
    ControlCommand,
    Entry,
    ExtendCommand,
    Headers,
    RescheduleCommand,
    ScheduleCommand,
)
from light_scheduler.model.adoption import Adoption, Emptied
from light_scheduler.pipeline.schemas import HEADERS_TYPE
from light_scheduler.wire import CommandRecord, Dialect, decode_dead_letter, parse_firing, with_key_of
from light_scheduler.wire.build import TargetMissing
from light_scheduler.wire.dialects.compatible import CompatibleDialect
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.lane_marks import BULK_COUNT, Count, Loan, as_sent, mark_of
from light_scheduler.wire.probe import PROBE, is_of_probe
from light_scheduler.wire.schemas import schema_id
from light_scheduler.wire.state import decode_entry, encode_entry

from .faults import RecordId
from .found import FoundDeadLetter, Seen
from .owners import Owner
from .promises import Asked, Refused
from .standing import Standing
from .traced import Content, Source, TracedMessage

IMPORTED, COMMAND, DEAD_LETTER, HISTORY, SEEN, TRACED = range(-1, 5)
"""TRACED is a message in a dialect of another scheduler, which need not name the partition of its command."""

ANY_LANE = 2**31 - 1
"""The lane of what may be of any lane: such rows come after those of all lanes."""

SCHEMA = (
    "tenant string, id string, lane int, kind int, topic string, partition int, offset bigint, timestamp bigint, "
    f"key binary, value binary, headers {HEADERS_TYPE}"
)

MOVED = b"moved"
"""The key of a row that says that a schedule, or a command for it, went from one lane to another since a topic grew."""

UNREAD = b"unread"
"""The key of a row for a command that a worker may read by a schema of its registry, and that nothing here can."""

LONGEST_ID = 10_000
"""Characters of an id that history repeats; longer ones stand there as none."""

_DIGEST, _TOPIC, _PARTITION, _BY_SENDER = "digest", "topic", "partition", "by sender"
_FIRING_ID, _KEY = (CONTROL_PREFIX + name for name in ("firing-id", "key"))
_FORMS: tuple[type[Any], ...] = (
    ScheduleCommand,
    ControlCommand,
    RescheduleCommand,
    CompleteCommand,
    Refused,
    ExtendCommand,
)
_encode = msgspec.msgpack.Encoder().encode
_decoders = tuple(msgspec.msgpack.Decoder(form).decode for form in _FORMS)
_replace = msgspec.structs.replace


class Row(NamedTuple):
    """A row of evidence, or (without the first four columns) a Kafka record."""

    tenant: str
    id: str
    lane: int
    kind: int
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def payload_digest(payload: bytes | None) -> bytes | None:
    """Return what stands for a payload: SHA-256 in hexadecimal digits, as Spark's `sha2` has it."""
    return None if payload is None else sha256(payload).hexdigest().encode()


def headers_digest(headers: Headers) -> bytes:
    """Return what stands for a user's headers, in their order."""
    return sha256(_encode(headers)).digest()


def digest_as_headers(digest: bytes) -> Headers:
    """Return the headers of a command whose own have this digest."""
    return [(_DIGEST, digest)]


def asked_of(record: CommandRecord, dialect: Dialect, limits: Limits) -> tuple[str, str, Asked, bytes | None]:
    """Return whose a command is, and the command with digests in the place of its payload and headers.

    The last is where a command for one schedule was sent to, if a lane has passed it on: b"partition:offset"; or MOVED
    if that was since the topic has grown, and if the record moves a schedule; or UNREAD.
    """
    origin = None
    is_report = False
    is_of_another = isinstance(dialect, CompatibleDialect)
    try:
        if is_of_probe(record):
            is_report = True
            raise InvalidCommand(PROBE, "is no command")
        mark = mark_of(record) if dialect.forwards else None
        if isinstance(mark, Adoption):
            return _adopted(record)
        if isinstance(mark, Count | Emptied | Loan):
            is_report = True
            raise InvalidCommand(BULK_COUNT, "is no command")
        if mark is not None:
            origin = MOVED if mark.partitions else b"%d:%d" % (mark.partition, mark.offset)
            record = as_sent(record, mark)
        command = _decoded(dialect, record)
        limits.check(command)  # not its id: a longer one may be pending, and dead letters name those that were rejected
        if len(command.id) > LONGEST_ID:
            raise InvalidCommand("schedule-id", f"has more than {LONGEST_ID} characters")
        if not dialect.forwards and isinstance(command, BulkCommand) and command.selection is not None:
            raise InvalidCommand("schedule-id", "selects many schedules")
        command = with_key_of(record, command)
    except InvalidCommand:
        envelope = dialect.salvage(record)
        id = envelope.id or ""
        refused = Refused(record.partition, record.offset, record.timestamp, is_report)
        if dialect.has_schemas and any(schema_id(data) is not None for data in (record.key, record.value)):
            origin = UNREAD
        return envelope.tenant, id if len(id) <= LONGEST_ID else "", refused, origin
    if isinstance(command, ScheduleCommand) and not is_of_another:
        headers = digest_as_headers(headers_digest(command.headers))
        command = _replace(command, payload=payload_digest(command.payload), headers=headers)
    if isinstance(command, BulkCommand) and command.selection is not None:
        origin = None  # every partition carries it out
    return command.tenant, command.id, command, origin


def _decoded(dialect: Dialect, record: CommandRecord) -> Command:
    """Read a command; one without a target may have that of its tenant, and is told by an empty topic."""
    try:
        return dialect.decode(record)
    except TargetMissing as error:
        return error.command


def _adopted(record: CommandRecord) -> tuple[str, str, Asked, bytes | None]:
    """Return whose schedule a record moves; nothing is asked for by it."""
    asked = Refused(record.partition, record.offset, record.timestamp, may_be_report=True)
    try:
        schedule = decode_entry(record.value or b"").schedule
    except FormatError:
        return DEFAULT_TENANT, "", asked, None
    return schedule.tenant, schedule.id, asked, MOVED


def encode_asked(asked: Asked) -> bytes:
    """Return a command as the value of a row of evidence."""
    return bytes([_FORMS.index(type(asked))]) + _encode(asked)


def decode_asked(value: bytes) -> Asked:
    """Read the value of a command's row back."""
    asked: Asked = _decoders[value[0]](memoryview(value)[1:])
    return asked


def imported_row(entry: Entry, commands_topic: str, partition: int, *, is_of_another: bool = False) -> Row:
    """Return the evidence of a schedule that was pending when the application began.

    `is_of_another`: its commands topic has the dialect of another scheduler.
    """
    schedule = entry.schedule
    if not is_of_another:
        headers = digest_as_headers(headers_digest(schedule.headers))
        schedule = _replace(schedule, payload=payload_digest(schedule.payload), headers=headers)
    value = encode_entry(Entry(schedule, entry.progress))
    place = commands_topic, partition, schedule.source_offset, schedule.accepted_at
    return Row(schedule.tenant, schedule.id, partition, IMPORTED, *place, None, value, [])


def standing_row(tenant: str, id: str, lane: int, commands_topic: str, standing: Standing) -> Row | None:
    """Return the evidence of a schedule as an audit left it, for the next one; None if nothing is left of it."""
    entry, series = standing
    if entry is None:
        return None
    place = commands_topic, lane, entry.schedule.source_offset, entry.schedule.accepted_at
    return Row(tenant, id, lane, IMPORTED, *place, series and series.encode(), encode_entry(entry), [])


def seen_of(row: Row) -> Seen:
    """Read a delivered message; its value is a digest already. Raises FormatError."""
    firing, named = parse_firing(row), dict(row.headers)
    return Seen(
        RecordId(row.topic, row.partition, row.offset),
        row.timestamp,
        firing.due,
        firing.attempt,
        firing.version,
        firing.sequence,
        firing.fired_at,
        RecordId(firing.source_topic, firing.source_partition, firing.source_offset),
        firing.original_due,
        firing.delivery_id,
        named.get(_FIRING_ID) == firing.firing_id.encode(),
        named.get(_KEY),
        firing.key,
        firing.payload,
        headers_digest(firing.headers),
    )


def traced_row(record: Row, owner: Owner, *, by_sender: bool) -> Row:
    """Return the evidence of a message in a dialect of another scheduler.

    `by_sender`: surely not the broker, but the sender has set its timestamp.
    """
    headers: Headers = [
        (_DIGEST, headers_digest(record.headers)),
        (_PARTITION, None if owner.partition is None else b"%d" % owner.partition),
        *((_TOPIC, topic.encode()) for topic in sorted(owner.topics)),
        *([(_BY_SENDER, None)] if by_sender else ()),
    ]
    whose = owner.tenant, owner.id, ANY_LANE, TRACED
    place = record.topic, record.partition, record.offset, record.timestamp
    return Row(*whose, *place, record.key, payload_digest(record.value), headers)


def traced_of(row: Row) -> tuple[TracedMessage, Source]:
    """Read such a message, and what it says about its command. In format 3, no row has `by_sender`."""
    (_, headers), (_, partition), *others = row.headers
    topics = frozenset((value or b"").decode() for name, value in others if name == _TOPIC)
    message = TracedMessage(
        RecordId(row.topic, row.partition, row.offset),
        row.timestamp,
        Content(row.key, row.value, headers or b""),
        by_sender=any(name == _BY_SENDER for name, _ in others),
    )
    return message, Source(topics, None if partition is None else int(partition))


def content_of(key: bytes | None, payload: bytes | None, headers: Headers) -> Content:
    """Return the content of a message."""
    return Content(key, payload_digest(payload), headers_digest(headers))


def batch_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a batch."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def dead_letter_of(row: Row) -> FoundDeadLetter:
    """Read a dead letter. Raises FormatError."""
    letter, _ = decode_dead_letter(row)
    return FoundDeadLetter(
        RecordId(row.topic, row.partition, row.offset), letter.cause, letter.at, letter.due, letter.source_offset
    )


def kafka_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the records of a batch of a Kafka table, whose `timestamp` is ms, as rows of nobody yet."""
    columns = (batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "timestamp", "key", "value"))
    for record in zip(*columns, _headers(batch.column("headers")), strict=True):
        yield Row("", "", 0, COMMAND, *record)


def evidence_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows of a batch of evidence."""
    columns = (batch.column(name).to_pylist() for name in Row._fields[:-1])
    for row in zip(*columns, _headers(batch.column("headers")), strict=True):
        yield Row(*row)


def _headers(column: pa.ListArray) -> Iterator[Headers]:
    # From the flat arrays: making a dictionary of each header would cost more than all else.
    pairs = column.flatten()
    names, values = pairs.field("key").to_pylist(), pairs.field("value").to_pylist()
    flat = list(zip(names, values, strict=True))
    start = 0
    for length in column.value_lengths().to_pylist():
        end = start + (length or 0)
        yield flat[start:end]
        start = end
