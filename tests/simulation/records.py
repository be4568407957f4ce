"""What records of the simulated topics say."""

from __future__ import annotations

from typing import Any

import msgspec

from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.lane_marks import BULK_COUNT, FORWARDED_FROM
from light_scheduler.wire.probe import is_of_probe

from .lending import is_lending
from .log import Record, Transaction

Sent = tuple[int, int]
"""(partition, offset) of a record that was sent."""


def to(commit: Transaction, topic: str) -> list[Record]:
    return [record for record in commit.records if record.topic == topic]


def is_handover(record: Record) -> bool:
    """Tell whether a record moves a schedule, or only tells something to a lane."""
    is_word = bool(header(record, EMPTIED)) or _way(record) == "."
    return is_word or bool(header(record, ADOPTED_FROM)) or is_lending(record) or is_of_probe(record)


def is_relayed(record: Record) -> bool:
    return _way(record) in ("?", "=")


def is_to_be_carried_out(command: Record) -> bool:
    """Tell whether a command is for the partition that reads it: not a question of another one, nor a copy for many."""
    is_copy = is_for_many(command) and sent(command) != place(command)
    return not is_copy and _way(command) not in ("?", ".")


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


def _way(record: Record) -> str:
    return ":".join(header(record, FORWARDED_FROM).split(":")[3:])[:1]
