"""What records of the simulated topics say."""

from __future__ import annotations

from typing import Any

import msgspec

from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.lane_marks import BULK_COUNT, FORWARDED_FROM
from light_scheduler.wire.probe import is_of_probe

from .kafka import Record, Transaction
from .lending import is_lending

Sent = tuple[int, int]
"""(partition, offset) of a record that was sent."""


def to(commit: Transaction, topic: str) -> list[Record]:
    return [record for record in commit.records if record.topic == topic]


def is_handover(record: Record) -> bool:
    return bool(header(record, ADOPTED_FROM) or header(record, EMPTIED)) or is_lending(record) or is_of_probe(record)


def is_relayed(record: Record) -> bool:
    _, _, _, *way = header(record, FORWARDED_FROM).split(":")
    return bool(way) and way[0][:1] in ("?", "=", ".")


def is_for_many(record: Record) -> bool:
    return header(record, "kind").endswith("-many") or counts(record) is not None


def counts(record: Record) -> tuple[int, int, int] | None:
    """Return what a record says of a bulk command: its offset, its partition, and how many it has changed.

    None for a record that was sent: what such a one says is forged, and has to be rejected.
    """
    count = header(record, BULK_COUNT) if not header(record, "kind") else ""
    return (int(count.split(":")[0]), record.partition, int(count.split(":")[2])) if count else None


def place(record: Record) -> Sent:
    return record.partition, record.offset


def sent(command: Record) -> Sent:
    """Return where a command was sent to, and its offset there, if it was passed on."""
    origin = header(command, FORWARDED_FROM)
    return (int(origin.split(":")[0]), int(origin.split(":")[1])) if origin else place(command)


def recorded_at(command: Record) -> int:
    """Return when (UTC epoch ms) a command was recorded where it was sent to."""
    origin = header(command, FORWARDED_FROM)
    return int(origin.split(":")[2]) if origin else command.timestamp


def text(value: bytes | None) -> str:
    return (value or b"").decode()


def header(record: Record, name: str) -> str:
    return text(next((value for key, value in record.headers if key == name), b""))


def json(record: Record) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(record.value or b"null")
    return value
