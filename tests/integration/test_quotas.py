"""A broker that throttles a client for its quota is well: its connections are kept."""

from __future__ import annotations

import time

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.conn import CloseReason
from support.application import Application
from support.quotas import throttle_consumers
from support.waiting import eventually

from light_scheduler.kafka.connection import started_producer, stop_consumer, stop_producer
from light_scheduler.kafka.promptness import ANSWER_S, Promptness

pytestmark = pytest.mark.integration

RECORDS, SIZE = 5, 56_000
BYTES_PER_S = 20_000
"""On the average of ten seconds: a fetch takes what is left of it, and the next one is made to wait for seconds."""


@pytest.mark.soak
async def test_a_throttled_fetch_is_waited_for_and_no_connection_given_up(application: Application) -> None:
    servers, place, client_id = application.bootstrap_servers, TopicPartition(application.target, 0), application.target
    producer = await started_producer({"bootstrap_servers": servers})
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, client_id=client_id, auto_offset_reset="earliest")
    closed: list[CloseReason] = []
    consumer._client._on_connection_closed = lambda _, reason: closed.append(reason)
    Promptness().bound(consumer._client, ANSWER_S, marks_silent=True)

    async def is_throttled() -> bool:
        """Read everything. A broker that was told of a quota keeps to it some time later."""
        await consumer.seek_to_beginning(place)
        begun, count = time.monotonic(), 0
        while count < RECORDS:
            count += sum(map(len, (await consumer.getmany(timeout_ms=1_000)).values()))
        return time.monotonic() - begun > ANSWER_S

    try:
        for _ in range(RECORDS):
            await producer.send_and_wait(place.topic, b"x" * SIZE, partition=place.partition)
        await throttle_consumers(servers, BYTES_PER_S, client_id)
        await consumer.start()
        consumer.assign([place])
        await eventually(is_throttled, what="the broker to throttle")
    finally:
        await throttle_consumers(servers, None, client_id)
        await stop_consumer(consumer)
        await stop_producer(producer)
    assert CloseReason.CONNECTION_TIMEOUT not in closed
