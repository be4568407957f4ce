"""How a delay lane lives with failures: when it asks, when it waits, when it begins again."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.errors import (
    InvalidTimestampError,
    MessageSizeTooLargeError,
    UnknownError,
)
from support.delay_lanes import RULE, Broker, Outage, refusal, run

from light_scheduler.delays.lane import BLOCKED_WAIT_S
from light_scheduler.errors import CycleTimeout
from light_scheduler.kafka.refusals import PASSING_REFUSALS, RecordsRefusedError
from light_scheduler.kafka.target_outages import WHOLE_TOPIC
from light_scheduler.kafka.targets import TargetTopic


async def test_a_lane_that_failed_fences_nobody_until_its_partition_is_its_own_again() -> None:
    outage = Outage(given_at=3)
    lane = outage.lane()
    lane.start(None)
    async with asyncio.timeout(60):
        while outage.steps.count("fence") < 2:
            await asyncio.sleep(0)
    await lane.close()

    until_again = outage.steps[: outage.steps.index("fence", 1)]
    assert until_again == ["fence", "pause", "confirm", "pause", "confirm", "pause", "confirm"]


async def test_a_transaction_that_took_too_long_is_tried_smaller_and_grows_again() -> None:
    slow = iter([True, True])
    broker = Broker(lambda size: CycleTimeout("late") if size > 1_250 and next(slow, False) else None)
    await run(broker, lambda: len(broker.sizes) >= 6)

    assert broker.sizes[:5] == [5_000, 2_500, 1_250, 2_500, 5_000]


async def test_a_timestamp_that_a_topic_of_ours_refuses_condemns_no_record_and_is_tried_after_a_pause() -> None:
    refused = RecordsRefusedError("app-delay-positions", InvalidTimestampError(), [])
    broker = Broker(lambda _size: refused if len(broker.sizes) < 5 else None)
    await run(broker, lambda: len(broker.sizes) >= 6)

    assert broker.sizes[:5] == [5_000] * 5
    assert broker.steps.count("pause") >= 4
    assert broker.letters == 0


HALVINGS = 12
"""Transactions of 5,000 records, 2,500 and so on until one has a single record."""


async def test_a_record_that_is_refused_without_a_reason_is_tried_again_after_a_pause_and_delivered() -> None:
    broker = Broker(lambda size: refusal(UnknownError()) if size and len(broker.sizes) <= HALVINGS + 3 else None)
    await run(broker, lambda: len(broker.sizes) >= HALVINGS + 5)

    assert broker.sizes[HALVINGS:][:5] == [1, 1, 1, 1, 2]
    assert (broker.pauses, broker.letters) == ([BLOCKED_WAIT_S] * 3, 0)


async def test_a_record_that_is_refused_each_time_without_a_reason_becomes_a_dead_letter() -> None:
    broker = Broker(lambda size: refusal(UnknownError()) if size and not broker.letters_sent else None)
    await run(broker, lambda: len(broker.sizes) >= HALVINGS + PASSING_REFUSALS + 3)

    assert broker.sizes[HALVINGS:][: PASSING_REFUSALS + 3] == [1] * (PASSING_REFUSALS + 2) + [2]
    assert broker.pauses == [BLOCKED_WAIT_S] * PASSING_REFUSALS


async def test_a_record_that_is_refused_for_a_reason_becomes_a_dead_letter_at_once() -> None:
    broker = Broker(lambda size: refusal(MessageSizeTooLargeError()) if size and not broker.letters_sent else None)
    await run(broker, lambda: len(broker.sizes) >= HALVINGS + 3)

    assert (broker.sizes[HALVINGS:][:3], broker.pauses) == ([1, 1, 2], [])


async def test_a_record_without_a_key_for_a_compacted_topic_becomes_a_dead_letter_and_is_not_tried() -> None:
    broker = Broker(lambda _size: None, key=None)
    broker.topics[RULE.target] = TargetTopic(1, 1_000_000, None, 0.0, is_compacted=True)
    await run(broker, lambda: broker.letters > 0)

    assert broker.letters == sum(broker.sizes)


@pytest.mark.parametrize("topic", [RULE.source, RULE.target])
async def test_a_topic_that_was_deleted_a_moment_ago_is_waited_for_without_a_restart(topic: str) -> None:
    broker = Broker(lambda _size: None)
    broker.topics.outages.observe(topic, {WHOLE_TOPIC: "it was deleted"}, 0)
    lane = broker.lane()
    lane.start(None)
    async with asyncio.timeout(30):
        while len(broker.pauses) < 3:
            await asyncio.sleep(0)
        status = lane.status()
        broker.topics.outages.observe(topic, {}, 0)
        while not lane.status().forwarded:
            await asyncio.sleep(0)
    await lane.close()

    assert (status.waiting, status.reason) == (True, f"topic {topic} is unavailable: it was deleted")
    assert (status.forwarded, status.restarts) == (0, 0)
    assert (lane.status().waiting, lane.status().reason) == (False, None)


async def test_a_lane_whose_partition_is_somebody_elses_can_be_closed() -> None:
    outage = Outage(given_at=1_000_000)
    lane = outage.lane()
    lane.start(None)
    async with asyncio.timeout(60):
        while "confirm" not in outage.steps:
            await asyncio.sleep(0)
        await lane.close()
    assert outage.steps.count("fence") == 1
