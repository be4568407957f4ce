"""Commands topics of other schedulers get more partitions from their owners, and more than once."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]
from support.application import Application
from support.foreign import Headers, etf1_headers, karafka_headers
from support.reading import read_all, read_until

from light_scheduler.clock import SystemClock
from light_scheduler.devkit.readiness import admin_client
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.kafka.topic_admin import check_topics
from light_scheduler.lanes.context.status import NO_CHANGELOG
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

HEADERS: dict[str, Callable[..., Headers]] = {"etf1": etf1_headers, "karafka": karafka_headers}
SECOND = 1_000


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    prefix = f"g{tmp_path.name[-8:]}-{SystemClock().now()}"
    topics = ",".join(f"{prefix}-{dialect}:{dialect}" for dialect in HEADERS)
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="2", commands_topics=topics)
    yield application
    application.close()


async def test_each_partition_that_is_added_to_a_topic_of_another_scheduler_is_used(application: Application) -> None:
    """Its schedules fire once, and so do those that were pending before."""
    inputs = {source.dialect: source.name for source in application.settings.inputs}
    worker = await application.start_worker()
    sent = await schedule_in_each_partition(application, inputs, 2, 10 * SECOND)
    for former, partitions in ((2, 3), (3, 5)):
        for topic in inputs.values():
            await asyncio.to_thread(add_partitions, application.bootstrap_servers, topic, partitions)
        await worker.shows(partial(added_wait_for_changelog, former, partitions * len(inputs)))
        await asyncio.to_thread(follow_advice, application)
        await worker.shows(partial(all_run, partitions * len(inputs)))
        sent += await schedule_in_each_partition(application, inputs, partitions, SECOND)
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= len(sent))
    await worker.shows(lambda info: not any(lane["pending"] for lane in info["lanes"]))
    records = await read_all(application.bootstrap_servers, application.target)
    assert sorted(record.value or b"" for record in records) == sorted(sent)


def added_wait_for_changelog(former: int, lanes: int, info: Any) -> bool:
    expected = [NO_CHANGELOG if lane["partition"] >= former else None for lane in info["lanes"]]
    return len(info["lanes"]) == lanes and [lane["reason"] for lane in info["lanes"]] == expected


def all_run(lanes: int, info: Any) -> bool:
    return len(info["lanes"]) == lanes and all(lane["state"] == "running" for lane in info["lanes"])


async def schedule_in_each_partition(
    application: Application, inputs: dict[str, str], partitions: int, after: int
) -> list[bytes]:
    """Schedule a message in each partition of each topic, due so many ms later. Return the payloads."""
    producer = await started_producer({"bootstrap_servers": application.bootstrap_servers})
    sent = []
    for dialect, topic in inputs.items():
        for partition in range(partitions):
            payload = f"{dialect} {partition} of {partitions}".encode()
            headers = HEADERS[dialect](SystemClock().now() + after, topic=application.target)
            await producer.send_and_wait(topic, payload, payload, partition=partition, headers=headers)
            sent.append(payload)
    await stop_producer(producer)
    return sent


def follow_advice(application: Application) -> None:
    """Add partitions to changelogs as `topics check` says."""
    changelogs = {application.settings.topics.changelog(source.name) for source in application.settings.inputs}
    findings = [finding for finding in check_topics(application.settings) if finding.kind == "partitions"]
    assert {finding.topic for finding in findings} >= changelogs
    for finding in findings:
        words = shlex.split(finding.fix or "")
        assert words[0] == "kafka-topics.sh"
        given = {option: words[words.index(option) + 1] for option in ("--topic", "--partitions")}
        add_partitions(application.bootstrap_servers, given["--topic"], int(given["--partitions"]))


def add_partitions(bootstrap_servers: str, topic: str, partitions: int) -> None:
    admin = admin_client(bootstrap_servers)
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)
