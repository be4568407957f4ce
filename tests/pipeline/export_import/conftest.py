"""Two applications on one broker: schedules of the first are exported, to be imported into the second."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.exporting import (
    BACKOFF,
    CRON,
    NOW,
    ONCE,
    PARTITIONS,
    PROBE,
    RATE,
    TARGET,
    Write,
    defined,
    ended,
    entry,
    export_to,
    moved,
    options_of,
    with_progress,
)
from support.ordering import ordered_producer

from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.pipeline import importing
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire.state import POSITION_KEY, encode_position


@pytest.fixture
def write(kafka: Kafka) -> Write:
    """Write records to a partition of a changelog: values by key."""
    producer = ordered_producer(kafka.bootstrap_servers)

    def write(settings: Settings, partition: int, *records: tuple[bytes, bytes | None]) -> None:
        changelog = settings.topics.changelog(settings.topics.commands)
        for key, value in records:
            producer.produce(changelog, value, key, partition=partition)
        assert producer.flush(15) == 0

    return write


@pytest.fixture
def applications(kafka: Kafka, prefix: str) -> tuple[Settings, Settings]:
    """Two applications on the same broker, with the topic that schedules go to."""
    create_topic(kafka.bootstrap_servers, TARGET, 1)
    made = []
    for name in ("old", "new"):
        app_id, broker = f"{prefix}-{name}", f"kafka://{kafka.bootstrap_servers}"
        made.append(Settings(app_id=app_id, broker=broker, partitions=PARTITIONS))
        create_topics(made[-1])
    return made[0], made[1]


@pytest.fixture
def exported(
    spark: SparkSession, write: Write, applications: tuple[Settings, Settings], tmp_path: Path
) -> importing.ImportOptions:
    """Export four schedules of the first application, and not its probe; return how to import them into the second."""
    old, new = applications
    first = with_progress(RATE, sequence=1, paused=False)
    write(
        old, 0, defined(first), defined(ONCE), (POSITION_KEY, encode_position(3)), defined(entry("done", at=str(NOW)))
    )
    write(old, 0, moved(with_progress(RATE, sequence=2)), moved(RATE), ended(entry("done", at=str(NOW))))
    write(old, 1, moved(with_progress(CRON, sequence=9)), defined(CRON), defined(BACKOFF), ended(ONCE))
    write(old, 1, defined(PROBE))
    assert export_to(spark, old, tmp_path / "table").schedules == 4
    return options_of(new, tmp_path / "table")
