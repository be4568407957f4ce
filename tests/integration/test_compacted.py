"""A compacted topic that is followed while it is deleted and made again."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from support.waiting import eventually

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration


async def test_what_is_written_to_a_topic_that_was_made_again_is_read_back_and_the_rest_is_forgotten(
    kafka: Kafka,
) -> None:
    name = "settings-made-again"
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    topic = CompactedTopic(kafka.bootstrap_servers, name)
    await admin.create_topics([NewTopic(name, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    following = asyncio.create_task(topic.follow(lambda: None))
    try:
        await eventually(lambda: topic.is_loaded)
        await topic.write_all((b"%d" % number, b"before") for number in range(20))
        assert len(topic.entries) == 20
        await admin.delete_topics([name])

        async def is_made_again() -> bool:
            return (await admin.create_topics([NewTopic(name, 1, 1)])).topic_errors[0][1] in (0, 36)

        await eventually(is_made_again)

        async def is_written() -> bool:
            try:
                await topic.write(b"a", b"after")
            except BrokerError:
                return False
            return True

        await eventually(is_written, within=60)
        assert topic.entries == {b"a": b"after"}
    finally:
        following.cancel()
        await asyncio.wait([following])
        await admin.close()
