"""An application of each test's own, without workers, and a client for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.responder import with_topics

from light_scheduler.client import SchedulerClient
from light_scheduler.model import TopicNames
from light_scheduler.testing import Kafka


@pytest.fixture
async def names(kafka: Kafka) -> TopicNames:
    return await with_topics(kafka)


@pytest.fixture
async def client(kafka: Kafka, names: TopicNames) -> AsyncIterator[SchedulerClient]:
    async with SchedulerClient(kafka.bootstrap_servers, app_id=names.app_id) as client:
        yield client


@pytest.fixture(autouse=True)
async def no_task_is_left_behind() -> AsyncIterator[None]:
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}
