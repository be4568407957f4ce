"""Imports into a topic with another number of partitions: each schedule goes to that of its key."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.application import Application
from support.exporting import MORE, PARTITIONS, export_to, options_of

from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.model import Outcome
from light_scheduler.pipeline import importing
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire import partition_for

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


def more_partitions(kafka: Kafka, prefix: str) -> Settings:
    """Make the topics of an application with more partitions than the exported one has."""
    settings = Settings(app_id=f"{prefix}-more", broker=f"kafka://{kafka.bootstrap_servers}", partitions=MORE)
    create_topics(settings)
    return settings


@pytest.mark.soak
@pytest.mark.every_case
async def test_among_another_number_of_partitions_each_schedule_goes_to_that_of_its_key_and_is_found_there(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    applications = []
    for name, partitions in (("old", PARTITIONS), ("new", MORE)):
        (tmp_path / name).mkdir()
        made = await Application.create(kafka.bootstrap_servers, tmp_path / name, partitions=str(partitions))
        applications.append(made)
    old, new = applications
    ids, due = [f"s-{number}" for number in range(20)], SystemClock().now() + 3_600_000
    try:
        worker = await old.start_worker()
        async with old.client() as client:
            requests: list[ScheduleRequest] = [
                {"id": id, "payload": b"x", "topic": old.target, "at": due} for id in ids
            ]
            await client.schedule_many(requests, wait=True)
        assert await worker.end() == 0
        export_to(spark, old.settings, tmp_path / "table")
        options = replace(options_of(new.settings, tmp_path / "table"), topics={old.target: new.target})
        assert importing.main(spark, options).written == len(ids)
        assert importing.main(spark, options).written == 0
        running = await new.start_worker()
        homes = Counter(partition_for(id.encode(), MORE) for id in ids)
        await running.shows(lambda info: {lane["partition"]: lane["pending"] for lane in info["lanes"]} == dict(homes))
        async with new.client() as client:
            cancelled = [await client.cancel(id, wait=True) for id in ids]
        info = await running.get("/info")
    finally:
        for application in applications:
            application.close()
    assert {result.outcome for result in cancelled} == {Outcome.CANCELLED}
    assert sum(lane["forwarded"] for lane in info["lanes"]) == 0


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_bulk_command_reaches_what_was_imported_as_the_first_command_of_the_new_topic(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    applications = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        applications.append(await Application.create(kafka.bootstrap_servers, tmp_path / name, partitions="1"))
    old, new = applications
    count = 50
    due = SystemClock().now() + 3_600_000
    try:
        worker = await old.start_worker()
        async with old.client() as client:
            requests: list[ScheduleRequest] = [
                {"id": f"s-{number}", "payload": b"x", "topic": old.target, "at": due} for number in range(count)
            ]
            await client.schedule_many(requests, wait=True)
            assert (await client.pause_many(id_prefix="s-1")).count == 11
        assert await worker.end() == 0
        export_to(spark, old.settings, tmp_path / "table")
        options = replace(options_of(new.settings, tmp_path / "table"), topics={old.target: new.target})
        assert importing.main(spark, options).written == count
        running = await new.start_worker()
        async with new.client() as client:
            assert (await client.pause_many(everything=True)).count == count - 11
            assert (await client.cancel_many(everything=True)).count == count
        listed = await running.get("/api/v1/tenants/default/schedules")
    finally:
        for application in applications:
            application.close()
    assert listed["schedules"] == []
