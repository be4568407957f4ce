"""Fixtures of the tests of `load`: a commands topic of each test's own, and loads into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.kafka_records import committed_records
from support.loading import PARTITIONS, Load, marks_of
from support.waiting import eventually_blocking

from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.load import LoadOptions, LoadSummary, main
from light_scheduler.testing import Kafka


@pytest.fixture
def topic(kafka: Kafka, prefix: str) -> str:
    create_topic(kafka.bootstrap_servers, prefix, PARTITIONS)
    create_topic(kafka.bootstrap_servers, marks_of(prefix), 1, configs={"cleanup.policy": "compact"})
    return prefix


@pytest.fixture
def load(spark: SparkSession, kafka: Kafka, topic: str) -> Load:
    """Load a table into the topic, with options as keywords."""

    def load(table: Path, **options: Any) -> LoadSummary:
        given = {
            "cluster": Cluster(kafka.bootstrap_servers),
            "commands_topic": topic,
            "marks_topic": marks_of(topic),
            **options,
        }
        return main(spark, LoadOptions(table=str(table), **given))

    return load


@pytest.fixture
def sent(kafka: Kafka, prefix: str) -> Callable[[int], None]:
    """Wait until the topic has so many commands, each of another id."""

    def wait(count: int) -> None:
        eventually_blocking(
            lambda: len(committed_records(kafka, prefix)) >= count, within=300, every=0.5, what=f"{count} commands"
        )
        keys = [record.key for record in committed_records(kafka, prefix)]
        assert len(keys) == len(set(keys)) == count

    return wait
