"""The history names who asked for a command over HTTP, and nobody else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiokafka import ConsumerRecord
from msgspec import UNSET
from support.partition import AT, SECRET, Partition, command

from light_scheduler.model import Requester
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND
from light_scheduler.wire.requester import REQUESTED_BY, requester_header

HOUR = 3_600_000
SHOP, OPS = Requester("shop", "192.0.2.7"), Requester("ops", "::1")


def asked(members: dict[str, Any], offset: int, by: Requester | None = SHOP, secret: bytes = SECRET) -> ConsumerRecord:
    """Return the record of a command in the JSON form; `by` None: of a Kafka producer."""
    value = msgspec.json.encode(members)
    headers = [(CONTENT_TYPE, JSON_COMMAND)] + ([] if by is None else [requester_header(by, value, secret)])
    return command(*headers, value=value, offset=offset)


def schedule(id: str) -> dict[str, Any]:
    return {"id": id, "trigger": {"at": AT + HOUR}, "target": {"topic": "reminders"}}


def named(partition: Partition) -> list[tuple[str, str | None, Any]]:
    return [(event.event.value, event.id, event.by) for event in partition.history]


async def test_each_command_has_the_name_of_who_asked_for_it(partition: Partition) -> None:
    await partition.run(
        asked(schedule("a"), 1),
        asked(schedule("b"), 2, OPS),
        asked(schedule("c"), 3, None),
        asked({"id": "d", "trigger": {"at": "never"}}, 4),
    )
    assert named(partition) == [
        ("scheduled", "a", "shop"),
        ("scheduled", "b", "ops"),
        ("scheduled", "c", UNSET),
        ("rejected", "d", "shop"),
    ]
    assert partition.history[1].address == "::1"
    await partition.run(now=AT + HOUR)
    assert {event.by for event in partition.history} == {UNSET}, "nobody asked for a firing"


@pytest.mark.parametrize("secret", [b"", b"guessed"])
async def test_a_producer_cannot_name_somebody(partition: Partition, secret: bytes) -> None:
    await partition.run(asked(schedule("a"), 1, secret=secret))
    assert named(partition) == [("scheduled", "a", UNSET)]


async def test_the_header_is_not_delivered(partition: Partition) -> None:
    await partition.run(asked(schedule("a"), 1))
    await partition.run(now=AT + HOUR)
    (fired,) = partition.sent("reminders")
    assert REQUESTED_BY not in dict(fired.headers)


async def test_a_bulk_command_is_by_who_asked_for_it_whatever_comes_between(partition: Partition) -> None:
    await partition.run(*(asked(schedule(id), number) for number, id in enumerate("abc", 1)))
    partition.most_bulk = 1
    await partition.run(asked({"command": "pause", "id": "*"}, 5, OPS))
    await partition.run(asked({"command": "cancel", "id": "c"}, 6, SHOP))
    found = named(partition)
    while found[-1][1] != "*":
        await partition.run()
        found += named(partition)
    assert found == [
        ("paused", "c", "ops"),
        ("cancelled", "c", "shop"),
        *(("paused", id, "ops") for id in "ab*"),
    ]
    assert partition.history[-1].address == "::1"


async def test_a_bulk_command_of_a_producer_is_by_nobody(partition: Partition) -> None:
    await partition.run(asked(schedule("a"), 1))
    await partition.run(asked({"command": "cancel", "id": "*"}, 2, None), asked(schedule("b"), 3))
    await partition.run()
    assert {event.by for event in partition.history if event.event.value == "cancelled"} == {UNSET}


async def test_what_comes_after_a_command_in_its_cycle_is_not_by_who_asked_for_it(partition: Partition) -> None:
    plain = command(("schedule-at", b"%d" % AT), ("schedule-target-topic", b"reminders"), key=b"b", offset=2)
    await partition.run(asked(schedule("a"), 1), plain)
    assert named(partition) == [
        ("scheduled", "a", "shop"),
        ("scheduled", "b", UNSET),
        ("fired", "b", UNSET),
    ]
