"""The records of the forecast topic: the number of a partition's schedules due in a minute, or on a later day.

key        {commands topic}/{partition}/{minute | day}/{from}
value      JSON {topic, partition, unit, from, pending, at}; null when no schedule is due then any more

`from` and `at` are UTC epoch ms: the start of the minute or day, and the time of counting.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

Unit = Literal["minute", "day"]


class Interval(NamedTuple):
    """A minute or a day (UTC). `begin` is its first minute since 1970."""

    unit: Unit
    begin: int


class _Value(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    unit: Unit
    begins: int = msgspec.field(name="from")
    pending: int
    at: int


MINUTE_MS = 60_000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Value).decode


def forecast_key(topic: str, partition: int, interval: Interval) -> bytes:
    """Return the key of the records of an interval."""
    return f"{topic}/{partition}/{interval.unit}/{interval.begin * MINUTE_MS}".encode()


def forecast_value(topic: str, partition: int, interval: Interval, pending: int, at: int) -> bytes | None:
    """Return the value of a record: `pending` schedules due in the interval, counted at `at` (UTC epoch ms)."""
    if not pending:
        return None
    return _encode(_Value(topic, partition, interval.unit, interval.begin * MINUTE_MS, pending, at))


def parse_forecast(value: bytes) -> tuple[tuple[str, int], Interval, int] | None:
    """Return the (commands topic, partition), interval and number of due schedules; None if the value is invalid."""
    try:
        said = _decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return (said.topic, said.partition), Interval(said.unit, said.begins // MINUTE_MS), said.pending
