"""What lanes pass on to each other through their commands topic, told by a header that is theirs alone.

    schedule-forwarded-from    partition:offset:timestamp of the record that was sent: this one is a copy of it in
                               another partition, for a schedule that may be there, or for many
    schedule-bulk-count        offset:partition:count: so many schedules of a partition have been changed by the command
                               for many whose record has that offset here; key and value are null

The headers are taken off before a dialect reads a record, whatever dialect that is. A copy is never passed on again.
Its delays count from when the command was sent, and its answer names the record that was.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Headers

from .record import CommandRecord

FORWARDED_FROM = "schedule-forwarded-from"
BULK_COUNT = "schedule-bulk-count"

_ORIGIN = re.compile(r"(\d{1,10}):(\d{1,19}):(-?\d{1,19})", re.ASCII)
_COUNT = re.compile(r"(\d{1,19}):(\d{1,10}):(\d{1,19})", re.ASCII)


class Origin(NamedTuple):
    """The record that was sent: where it is, and its timestamp (UTC epoch ms)."""

    partition: int
    offset: int
    timestamp: int


class Count(NamedTuple):
    """How many schedules of a partition the command for many at an offset has changed."""

    offset: int
    partition: int
    changed: int


class Copy(NamedTuple):
    """A record that was passed on, as a dialect reads it: its own place, the timestamp of the one that was sent."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    offset: int
    timestamp: int


def forwarded(record: CommandRecord) -> Headers:
    """Return the headers of a record's copy in another partition; key and value are the record's."""
    origin = f"{record.partition}:{record.offset}:{record.timestamp}"
    return [*record.headers, (FORWARDED_FROM, origin.encode())]


def count_headers(count: Count) -> Headers:
    """Return the headers of a record that says a count; key and value are null."""
    return [(BULK_COUNT, f"{count.offset}:{count.partition}:{count.changed}".encode())]


def mark_of(record: CommandRecord) -> Origin | Count | None:
    """Return what a lane's header says; None for a record that was sent. Raises InvalidCommand for one of no lane's."""
    for name, value in record.headers:
        if name == FORWARDED_FROM:
            return Origin(*_numbers(_ORIGIN, name, value))
        if name == BULK_COUNT:
            return Count(*_numbers(_COUNT, name, value))
    return None


def as_sent(copy: CommandRecord, origin: Origin) -> Copy:
    """Return a copy without what passing it on has added."""
    headers = [header for header in copy.headers if header[0] != FORWARDED_FROM]
    return Copy(copy.key, copy.value, headers, copy.partition, copy.offset, origin.timestamp)


def _numbers(form: re.Pattern[str], name: str, value: bytes | None) -> tuple[int, ...]:
    match = form.fullmatch((value or b"").decode(errors="replace"))
    if match is None:
        raise InvalidCommand(name, "is set by the scheduler on what its workers pass on to each other")
    return tuple(map(int, match.groups()))
