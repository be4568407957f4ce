"""What the records of a plain one-shot claim: values by which those of one schedule are compared with each other.

A plain one-shot has an instant or a delay, a target topic, a key, a payload and headers of its user's, and no other
rule. Its command and its message have all of these, so both have the same digest of them. Lines of history have the
topic, and say once what happened. A record that claims nothing belongs to no plain one-shot.

    record       claim                       due       at
    command      digest                      instant   (null)
                 digest                      (null)    delay
    scheduled    b"scheduled:" and topic     due       when it was accepted
    fired        b"fired:" and topic         due       when it was fired
    message      digest                      due       when it was fired
    change       b"changed:" and reason      (null)    when it was made

Instants are UTC epoch ms, delays ms. A change is about no schedule: it tells what holds for many.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import UNSET

from light_scheduler.model import After, EventType, HistoryEvent, Once, ScheduleCommand, Target
from light_scheduler.wire.delay_changes import read_rule_change
from light_scheduler.wire.tenant_changes import read_state_change

from .canonical import joined
from .evidence import Row, digest_as_headers
from .promises import Asked

COLUMNS = "claim binary, due bigint, at bigint"

CHANGED = b"changed:"
"""Begins the claim of a change."""

_BETWEEN = b"\n"
_EVENTS = {event: f"{event.value}:".encode() for event in (EventType.SCHEDULED, EventType.FIRED)}
_LONGEST = 1 << 53


class Claim(NamedTuple):
    """What a record claims; nothing, if all are None."""

    claim: bytes | None = None
    due: int | None = None
    at: int | None = None


NOTHING = Claim()


class Parts(NamedTuple):
    """What the digest of a command, or of a message, is of: bytes, or columns of bytes.

    `topic` is the target, and `source_topic`, `partition` and `offset` are the place of the command, in decimal.
    `payload` and `headers` are digests. Only the key, which is the last, can hold any bytes and have any length.
    """

    payload: Any
    headers: Any
    topic: Any
    source_topic: Any
    partition: Any
    offset: Any
    key: Any


COMPARED = list(Parts._fields)
"""The parts that are compared."""

OF_COMMANDS: dict[str, Callable[[Row, ScheduleCommand], bool]] = {
    "not passed on": lambda row, _: row.key is None,
    "plain": lambda row, command: command == _plain(row, command),
}
"""All that makes a command that of a plain one-shot."""


def claim_of_command(row: Row, asked: Asked) -> Claim:
    """Return what a command claims; `row` is its evidence."""
    if not isinstance(asked, ScheduleCommand) or not isinstance(asked.timing, Once | After):
        return NOTHING
    if None in (asked.key, asked.payload) or not all(holds(row, asked) for holds in OF_COMMANDS.values()):
        return NOTHING
    target, place = asked.target.topic.encode(), (row.topic.encode(), b"%d" % row.partition, b"%d" % row.offset)
    parts = Parts(asked.payload, asked.headers[0][1], target, *place, asked.key)
    claim = sha256(_BETWEEN.join(getattr(parts, name) for name in COMPARED)).digest()
    timing = asked.timing
    return Claim(claim, timing.at, None) if isinstance(timing, Once) else Claim(claim, None, timing.delay)


def claim_of_event(event: HistoryEvent) -> Claim:
    """Return what a line of history claims."""
    begin, topic, due = _EVENTS.get(event.event), event.target_topic, event.due
    is_first = event.version == event.sequence == event.attempt == 1
    if begin is None or topic is None or due is None or not is_first or event.reason is not None:
        return NOTHING
    if event.count is not UNSET or event.by is not UNSET or event.address is not UNSET:
        return NOTHING
    if not (0 <= due < _LONGEST and 0 <= event.at < _LONGEST):
        return NOTHING
    return Claim(begin + topic.encode(), due, event.at)


def claim_of_change(event: HistoryEvent) -> Claim:
    """Return what a line of history on a change claims: nothing, unless it bears on schedules."""
    reason = event.reason or ""
    if event.event is not EventType.CHANGED or not 0 <= event.at < _LONGEST:
        return NOTHING
    if read_state_change(event.tenant, reason) is None and (event.tenant or read_rule_change(reason) is None):
        return NOTHING
    return Claim(CHANGED + reason.encode(), None, event.at)


def digests(parts: Parts) -> pa.Array:
    """Return the digests of columns; null where a part is null."""
    pieces: list[pa.Array | bytes] = []
    for name in COMPARED:
        pieces += [getattr(parts, name), _BETWEEN]
    return pa.array([text and sha256(text).digest() for text in joined(*pieces[:-1]).to_pylist()], pa.binary())


def claimed(topic: str, event: EventType) -> bytes:
    """Return what a line of history on a message to a topic claims."""
    return _EVENTS[event] + topic.encode()


def _plain(row: Row, command: ScheduleCommand) -> ScheduleCommand:
    """Return the command with nothing but what a plain one-shot has."""
    timing = command.timing
    return ScheduleCommand(
        row.tenant,
        row.id,
        command.key,
        Once(timing.at) if isinstance(timing, Once) else timing,  # which is not late
        Target(command.target.topic, command.key),
        command.payload,
        digest_as_headers(command.headers[0][1] or b""),
        row.partition,
        row.offset,
        row.timestamp,
    )
