"""Commands that a lane passes on to another partition of their topic: a copy of the record, and a header that says so.

    schedule-forwarded-from    partition:offset:timestamp of the record that was sent, in decimal

The header is the lanes' own: it is taken off before a dialect reads the record, whatever dialect that is. A copy is
never passed on again. Its delays count from when the command was sent, and its answer names the record that was.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Headers

from .record import CommandRecord

FORWARDED_FROM = "schedule-forwarded-from"

_ORIGIN = re.compile(r"(\d{1,10}):(\d{1,19}):(-?\d{1,19})", re.ASCII)


class Origin(NamedTuple):
    """The record that was sent: where it is, and its timestamp (UTC epoch ms)."""

    partition: int
    offset: int
    timestamp: int


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


def origin_of(record: CommandRecord) -> Origin | None:
    """Return where a copy comes from; None for a record that is none. Raises InvalidCommand for a mark of no lane's."""
    for name, value in record.headers:
        if name == FORWARDED_FROM:
            match = _ORIGIN.fullmatch((value or b"").decode(errors="replace"))
            if match is None:
                raise InvalidCommand(FORWARDED_FROM, "is set by the scheduler on commands that it passes on")
            return Origin(*map(int, match.groups()))
    return None


def as_sent(copy: CommandRecord, origin: Origin) -> Copy:
    """Return a copy without what passing it on has added."""
    headers = [header for header in copy.headers if header[0] != FORWARDED_FROM]
    return Copy(copy.key, copy.value, headers, copy.partition, copy.offset, origin.timestamp)
