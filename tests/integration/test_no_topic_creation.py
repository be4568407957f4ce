"""Nothing that is asked creates a topic, on a broker that creates what it is asked for, as brokers do by default."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from support.application import Application
from support.reading import read_until

from light_scheduler.client import BlockingSchedulerClient, SchedulerClient
from light_scheduler.connection import Connection
from light_scheduler.delays import positions
from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.errors import BrokerError, JobError
from light_scheduler.kafka.targets import Targets
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.topics import require_topic
from light_scheduler.wire import decode_dead_letter

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(properties={"auto.create.topics.enable": "true"}) as broker:
        yield broker


async def topics_of(broker: EmbeddedBroker) -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await admin.start()
    try:
        return set(await admin.list_topics())
    finally:
        await admin.close()


async def test_a_misspelt_target_stays_missing_and_its_message_becomes_a_dead_letter(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    application = await Application.create(broker.bootstrap_servers, tmp_path, delivery_retries="0")
    try:
        await application.start_worker()
        async with application.client() as client:
            result = await client.schedule("a", b"", topic="remnders")
        assert result.reason is not None
        assert "remnders" in result.reason
        letters = [application.settings.topics.dead_letters]
        (record, *_) = await read_until(broker.bootstrap_servers, letters, lambda found: len(found) == 1)
        assert "remnders" in decode_dead_letter(record)[0].reason
        assert "remnders" not in await topics_of(broker)
    finally:
        application.close()


async def test_looking_for_topics_creates_none(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "STALL_TIMEOUT_S", 3.0)
    targets = Targets(broker.bootstrap_servers)
    try:
        await targets.resolve({"nowhere"})
        assert targets["nowhere"].refusal is not None
    finally:
        await targets.close()
    async with SchedulerClient(broker.bootstrap_servers, app_id="never-set-up") as client:
        with pytest.raises(BrokerError, match="never-set-up-commands"):
            await client.schedule("a", b"", topic="t", wait=False, timeout=3)
    with (
        BlockingSchedulerClient(broker.bootstrap_servers, app_id="never-made") as client,
        pytest.raises(BrokerError, match="never-made-commands"),
    ):
        await asyncio.to_thread(client.schedule, "a", b"", topic="t", wait=False, timeout=3)
    with pytest.raises(JobError, match="topic misspelt cannot be used"):
        await asyncio.to_thread(require_topic, Cluster(broker.bootstrap_servers), "misspelt")
    with pytest.raises((BrokerError, KafkaError)):
        await positions.Positions(Connection(broker.bootstrap_servers), "unknown-positions").read(b"key")
    asked = {"nowhere", "never-set-up-commands", "never-made-commands", "misspelt", "unknown-positions"}
    assert not asked & await topics_of(broker)
