"""The consumer's side: records of every Kafka client, and failed messages that are sent again."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from math import inf, nan
from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler import Firing
from light_scheduler.client import RetriesExhausted, attempt_of, original_due, parse_firing
from light_scheduler.client.firings import again
from light_scheduler.client.handling import HandlingRules
from light_scheduler.errors import FormatError, InvalidCommand
from light_scheduler.testing import InMemoryScheduler

START = datetime(2030, 1, 1, tzinfo=UTC)
FIVE_S, HOUR = 5_000, 3_600_000


async def delivered() -> tuple[InMemoryScheduler, Any]:
    scheduler = InMemoryScheduler(now=START)
    await scheduler.schedule("job", b"\xff", topic="jobs", key="k", after=0, headers={"h": b"1"})
    return scheduler, scheduler.delivered[0]


class Message:
    """A record as confluent-kafka has it: methods, and None in place of no headers."""

    def __init__(self, record: Any) -> None:
        for name in ("topic", "partition", "offset", "key", "value", "headers"):
            setattr(self, name, partial(getattr, record, name))
        self.timestamp = lambda: (1, record.timestamp)


async def test_records_of_every_client_are_read_alike() -> None:
    _, record = await delivered()
    firing = Firing.parse(record)
    assert (firing.id, firing.key, firing.payload, firing.headers) == ("job", b"k", b"\xff", [("h", b"1")])
    assert (firing.sequence, firing.attempt, firing.version, firing.firing_id) == (1, 1, 1, f"job@{firing.due}")
    names = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    of_kafka_python = SimpleNamespace(**{name: getattr(record, name) for name in names})
    assert Firing.parse(Message(record)) == Firing.parse(of_kafka_python) == parse_firing(record) == firing


def test_a_record_of_somebody_else_is_refused() -> None:
    with pytest.raises(FormatError, match="not a message of the scheduler"):
        Firing.parse(Message(SimpleNamespace(
            topic="t", partition=0, offset=0, timestamp=0, key=None, value=b"", headers=None
        )))  # fmt: skip


async def test_a_failed_message_comes_again_later_each_time_and_at_last_is_an_error() -> None:
    scheduler, record = await delivered()
    first = firing = Firing.parse(record)
    for attempt in range(2, 52):
        await scheduler.retry(firing, "jobs")
        await scheduler.advance(hours=2)
        firing = scheduler.firings[-1]
        assert (attempt_of(firing), original_due(firing)) == (attempt, first.due)
        assert (firing.key, firing.payload, firing.headers[0]) == (b"k", b"\xff", ("h", b"1"))
    assert len(scheduler.delivered) == 51
    with pytest.raises(RetriesExhausted, match="failed 51 times"):
        await scheduler.retry(firing, "jobs")


async def test_a_failure_that_is_reported_twice_makes_one_schedule() -> None:
    scheduler, record = await delivered()
    receipts = [await scheduler.retry(Firing.parse(record), "jobs") for _ in range(2)]
    assert receipts[0].id == receipts[1].id
    await scheduler.advance(hours=1)
    assert len(scheduler.delivered) == 2


async def test_delays_grow_by_the_factor_up_to_the_longest() -> None:
    _, record = await delivered()
    firing = Firing.parse(record)
    delays = []
    for _ in range(12):
        next_try = again(firing, FIVE_S, 2.0, HOUR, 50)
        delays.append(next_try.delay)
        firing = Firing(**{**_fields(firing), "headers": next_try.headers})
    assert delays == [5_000 * 2**n for n in range(10)] + [HOUR, HOUR]


@pytest.mark.parametrize("id", ["i" * 512, "\N{SNOWMAN}" * 170, "i" * 120], ids=["longest", "not ASCII", "short"])
async def test_a_message_of_a_long_id_is_retried_under_an_id_that_is_no_longer(id: str) -> None:
    scheduler = InMemoryScheduler(now=START)
    for name in (id, id[:-1] + "x"):
        await scheduler.schedule(name, b"", topic="jobs", after=0)
    ids: list[list[str]] = []
    for _ in range(3):
        firings = scheduler.firings[-2:]
        ids.append([(await scheduler.retry(firing, "jobs")).id for firing in firings])
        assert ids[-1] == [(await scheduler.retry(firing, "jobs")).id for firing in firings], "twice is once"
        await scheduler.advance(hours=1)
        assert {firing.id for firing in scheduler.firings[-2:]} == set(ids[-1])
    assert len(scheduler.firings) == 2 * 4
    assert len({each for pair in ids for each in pair}) == 2 * 3
    assert all(len(each.encode()) <= max(len(id.encode()), 128) for pair in ids for each in pair)
    assert all(each.startswith(id[:15]) for pair in ids for each in pair)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"initial": "soon"}, {"longest": "-1s"}, {"factor": 0.5}, {"factor": inf}, {"factor": nan}, {"attempts": -1}),
        *({"factor": "2"}, {"attempts": 1.5}),
    ],
    ids=str,
)
async def test_a_backoff_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    scheduler, record = await delivered()
    with pytest.raises(InvalidCommand, match=next(iter(wrong))):
        await scheduler.retry(Firing.parse(record), "jobs", **wrong)
    with pytest.raises(InvalidCommand, match=next(iter(wrong))):
        HandlingRules(**wrong)


async def test_the_largest_factor_ends_at_the_longest_delay() -> None:
    scheduler, _ = await delivered()
    for _ in range(3):
        await scheduler.retry(scheduler.firings[-1], "jobs", initial="1s", factor=1e308, longest="1m")
        await scheduler.advance(minutes=1)
    assert len(scheduler.firings) == 4


async def test_no_attempts_are_no_retry_at_all() -> None:
    scheduler, record = await delivered()
    with pytest.raises(RetriesExhausted, match="failed 1 times"):
        await scheduler.retry(Firing.parse(record), "jobs", attempts=0)


async def test_forged_headers_of_a_retry_are_refused() -> None:
    _, record = await delivered()
    firing = Firing(**{**_fields(Firing.parse(record)), "headers": [("retry-attempt", b"many")]})
    with pytest.raises(InvalidCommand, match="retry-attempt: 'many' is not a number"):
        again(firing, FIVE_S, 2.0, HOUR, 50)


def _fields(firing: Firing) -> dict[str, Any]:
    return {name: getattr(firing, name) for name in firing.__struct_fields__}


async def test_two_messages_with_one_firing_id_are_two_retries() -> None:
    scheduler = InMemoryScheduler(now=START)
    await scheduler.schedule("job", b"first", topic="jobs", at=START)
    await scheduler.retry(scheduler.firings[0], "jobs")
    await scheduler.schedule("job", b"second", topic="jobs", at=START)
    first, second = scheduler.firings
    assert first.firing_id == second.firing_id
    await scheduler.retry(second, "jobs")
    await scheduler.advance(minutes=1)
    assert [firing.payload for firing in scheduler.firings[2:]] == [b"first", b"second"]
    for firing in scheduler.firings[2:]:
        await scheduler.retry(firing, "jobs")
    await scheduler.advance(minutes=1)
    assert [firing.payload for firing in scheduler.firings[4:]] == [b"first", b"second"]


async def test_a_firing_that_comes_again_for_want_of_a_completion_is_retried_once() -> None:
    scheduler = InMemoryScheduler(now=START)
    await scheduler.schedule("job", b"", topic="jobs", ack_timeout="1s", max_attempts=2)
    await scheduler.advance(seconds=1)
    receipts = [await scheduler.retry(firing, "jobs") for firing in scheduler.firings]
    assert [receipt.id for receipt in receipts] == [receipts[0].id] * 2
