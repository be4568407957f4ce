"""The dead letters of delay rules: for whom they are, and what is in them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from support.delay_lanes import NOW, RULE, AllTopics, Broker, run
from support.producing import FakeProducer, Sent

from light_scheduler.delays.writes import Writes
from light_scheduler.kafka.fetching import UNREADABLE, Command
from light_scheduler.kafka.targets import TargetTopic
from light_scheduler.model import TopicNames


async def letter_of(record: Command, topics: AllTopics | None = None) -> Sent:
    """Return the dead letter of a record that cannot be forwarded."""
    writes = Writes(RULE, TopicPartition(RULE.source, 0), TopicNames("app"), topics or AllTopics())
    batches, dead_letters = writes.forwarding([record], record.offset + 1, NOW)
    assert dead_letters == 1
    sent = FakeProducer()
    await batches.send(cast(Any, sent))
    (letter,) = sent.to("app-dead-letters")
    return letter


async def test_a_dead_letter_of_a_rule_is_of_no_known_tenant_so_that_only_who_sees_all_tenants_sees_it() -> None:
    broker = Broker(lambda _size: None, key=None)
    broker.topics[RULE.target] = TargetTopic(1, 1_000_000, None, 0.0, is_compacted=True)
    await run(broker, lambda: broker.letters > 0)

    assert broker.letter is not None
    assert ("dead-letter-tenant-unknown", b"true") in broker.letter.headers


TOO_LARGE = b"x" * 1_000_000


@pytest.mark.parametrize(
    ("record", "due"),
    [
        (Command(0, 5, NOW, b"k", TOO_LARGE, []), b"%d" % (NOW + RULE.delay)),
        (Command(0, 5, -1, b"k", TOO_LARGE, []), None),
        (Command(0, 5, 0, None, None, UNREADABLE), None),
    ],
    ids=["with a timestamp", "without a timestamp", "unreadable"],
)
async def test_a_dead_letter_says_when_its_record_was_due_if_that_is_known(record: Command, due: bytes | None) -> None:
    assert dict((await letter_of(record)).headers).get("dead-letter-due") == due


async def test_a_record_that_cannot_be_read_is_not_late() -> None:
    broker = Broker(lambda _size: None)
    broker.headers = UNREADABLE
    lane = await run(broker, lambda: broker.letters > 0)

    assert lane.status().dead_letters > 0
    assert sum(lane.status().lateness.counts) == 0


async def test_a_dead_letter_that_is_too_large_has_its_content_dropped_and_says_so() -> None:
    letter = await letter_of(Command(0, 5, NOW, b"k", TOO_LARGE, [("h", b"1")]))
    assert (letter.key, letter.value) == (None, None)
    assert letter.headers[0] == ("dead-letter-cause", b"refused")
    assert letter.headers[-1] == ("dead-letter-dropped", b"key, value and headers: too large for this topic")


async def test_a_dead_letter_of_a_record_that_cannot_be_read_says_that_its_content_is_dropped() -> None:
    letter = await letter_of(Command(0, 5, 0, None, None, UNREADABLE))
    assert letter.headers[-1] == ("dead-letter-dropped", b"key, value and headers: they cannot be read")


@pytest.mark.parametrize("value", [b"x" * 1_000, None])
async def test_a_dead_letter_that_fits_keeps_key_value_and_headers(value: bytes | None) -> None:
    topics = AllTopics()
    topics[RULE.target] = TargetTopic(1, 500, None, 0.0)
    letter = await letter_of(Command(0, 5, NOW, b"k" * 500, value, [("h", b"1")]), topics)
    assert (letter.key, letter.value, letter.headers[0]) == (b"k" * 500, value, ("h", b"1"))
    assert "dead-letter-dropped" not in dict(letter.headers)
