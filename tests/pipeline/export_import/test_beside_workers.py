"""`export` and `forecast` beside workers: what compaction removes while they read is not missing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from support.exporting import NOW, defined, ended, entry, export_to, moved, with_progress
from support.kafka_records import committed_records
from support.ordering import ordered_producer
from support.topic_configs import configure
from support.waiting import eventually_blocking

from light_scheduler.clock import SettableClock
from light_scheduler.errors import JobError
from light_scheduler.kafka.topic_admin import create_topics, topic_configuration
from light_scheduler.model import CHANGELOG_LAG_MS, Entry
from light_scheduler.pipeline import export, forecast, snapshots, tables
from light_scheduler.pipeline.catching_up import Ends
from light_scheduler.pipeline.exported import read_export
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.kafka.log_ends import LogEnds
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire.state import decode_entry

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

TIMEOUT_S = 60.0

Meanwhile = Callable[[], None]


class Changelog:
    """The changelog of an application, of one partition."""

    def __init__(self, kafka: Kafka, app_id: str) -> None:
        broker = f"kafka://{kafka.bootstrap_servers}"
        self.settings = Settings(app_id=app_id, broker=broker, partitions=1)
        create_topics(self.settings)
        self.name = self.settings.topics.changelog(self.settings.topics.commands)
        self._kafka = kafka
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        self._producer: Producer = ordered_producer(kafka.bootstrap_servers)

    def write(self, *records: tuple[bytes, bytes | None]) -> None:
        for key, value in records:
            self._producer.produce(self.name, value, key, partition=0)
        assert self._producer.flush(15) == 0

    def configure(self, **configs: str) -> None:
        changes = {name.replace("_", "."): value for name, value in configs.items()}
        configure(self.settings.bootstrap_servers, self.name, changes)

    def lose(self, end: int) -> None:
        """Delete the records before an offset, which have no place in the log any more then."""
        (done,) = self._admin.delete_records([TopicPartition(self.name, 0, end)]).values()
        done.result(TIMEOUT_S)

    def replace(self, stored: Entry) -> None:
        """Write a record of a schedule again, and wait until Kafka has compacted the one before it away."""
        self.configure(min_compaction_lag_ms="0", min_cleanable_dirty_ratio="0.001", segment_ms="100")
        self.write(defined(stored))
        numbers = count()

        def is_compacted() -> bool:
            self.write(defined(entry(f"filler-{next(numbers)}")))  # the last segment is not compacted
            keys = [record.key for record in committed_records(self._kafka, self.name)]
            return keys.count(defined(stored)[0]) == 1

        eventually_blocking(is_compacted, within=120, every=0.5, what="compaction")

    def exported(self, spark: SparkSession, table: Path) -> dict[str, Entry]:
        """Export the schedules; return those of the table by id."""
        number = export_to(spark, self.settings, table).schedules
        rows = spark.read.parquet(str(table)).collect()
        assert len(rows) == number
        return {row.id: decode_entry(bytes(row.record)) for row in rows}

    def forecast(self, spark: SparkSession, table: Path | None = None) -> forecast.ForecastSummary:
        """Forecast the hour from when the schedules were made."""
        options = forecast.ForecastOptions(
            cluster=Cluster(self.settings.bootstrap_servers),
            names=self.settings.topics,
            inputs=[self.settings.topics.commands],
            ahead=3_600_000,
            table=None if table is None else str(table),
            clock=SettableClock(NOW),
        )
        return forecast.main(spark, options)


@pytest.fixture
def changelog(kafka: Kafka, prefix: str) -> Changelog:
    return Changelog(kafka, prefix)


@pytest.fixture
def meanwhile(changelog: Changelog, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let things happen behind each look at the end of a log that is compacted at once."""
    changelog.configure(min_compaction_lag_ms="0")
    look = LogEnds.latest

    def happen(*steps: Meanwhile) -> None:
        left = list(steps)

        def latest(logs: LogEnds) -> Ends:
            ends = look(logs)
            if left:
                left.pop(0)()
            return ends

        monkeypatch.setattr(LogEnds, "latest", latest)

    return happen


def at(stored: Entry, sequence: int) -> Entry:
    return with_progress(stored, sequence=sequence)


RATE, SPLIT, ONCE, QUIET = entry("rate", every="1m"), entry("split", every="2m"), entry("once"), entry("quiet")


@pytest.mark.soak
@pytest.mark.every_case
def test_a_schedule_that_goes_on_while_the_log_is_read_is_not_lost_with_its_old_record(
    spark: SparkSession, changelog: Changelog, meanwhile: Callable[..., None], tmp_path: Path
) -> None:
    changelog.configure(**{"cleanup_policy": "compact,delete"})
    changelog.write(defined(RATE), defined(SPLIT), moved(at(SPLIT, 1)), defined(ONCE), defined(QUIET))
    late = entry("late")

    def first() -> None:
        changelog.write(defined(at(RATE, 1)), moved(at(SPLIT, 2)), ended(ONCE), defined(late))
        changelog.lose(1)  # the only record of `rate` that the first look has seen

    def second() -> None:
        changelog.write(moved(at(SPLIT, 3)))

    meanwhile(first, second)
    assert changelog.exported(spark, tmp_path / "table") == {
        "rate": at(RATE, 1),
        "split": at(SPLIT, 3),
        "quiet": QUIET,
        "late": late,
    }


@pytest.mark.soak
@pytest.mark.every_case
def test_a_forecast_counts_a_schedule_that_goes_on_while_the_log_is_read(
    spark: SparkSession, changelog: Changelog, meanwhile: Callable[..., None]
) -> None:
    changelog.configure(**{"cleanup_policy": "compact,delete"})
    changelog.write(defined(RATE), defined(ONCE))

    def first() -> None:
        changelog.write(defined(at(RATE, 1)), ended(ONCE), defined(entry("late", at=str(NOW + 1))), defined(QUIET))
        changelog.lose(1)  # the only record of `rate` that the first look has seen

    meanwhile(first)
    summary = changelog.forecast(spark)
    assert (summary.schedules, summary.firings) == (3, 59 + 2)


@pytest.mark.soak
@pytest.mark.every_case
def test_what_kafka_compacts_while_the_log_is_read_is_in_the_table(
    spark: SparkSession, changelog: Changelog, meanwhile: Callable[..., None], tmp_path: Path
) -> None:
    changelog.write(defined(RATE))
    meanwhile(lambda: changelog.replace(at(RATE, 1)))
    assert changelog.exported(spark, tmp_path / "table")["rate"] == at(RATE, 1)


@pytest.mark.soak
@pytest.mark.parametrize(
    "job", [export, pytest.param(forecast, marks=pytest.mark.every_case)], ids=["export", "forecast"]
)
@pytest.mark.every_case
def test_a_job_fails_that_lost_what_it_had_read_and_cannot_read_it_again(
    spark: SparkSession, changelog: Changelog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: ModuleType
) -> None:
    changelog.write(defined(RATE), defined(QUIET))

    def loses_an_executor(*arguments: object) -> None:
        changelog.replace(at(RATE, 1))
        spark.catalog.clearCache()
        tables.write_table(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(job, "write_table", loses_an_executor)
    run: Callable[[SparkSession, Path], object] = changelog.exported if job is export else changelog.forecast
    with pytest.raises(JobError, match=r"an executor was lost .* Run the job again"):
        run(spark, tmp_path / "table")
    with pytest.raises(JobError, match="has no file _SUCCESS"):
        read_export(spark, str(tmp_path / "table"), "parquet")


def test_it_is_said_that_a_table_is_not_to_be_used_which_cannot_be_marked(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(*_: object) -> None:
        raise Py4JError("an executor is gone")

    monkeypatch.setattr(snapshots, "unmark", fails)
    with (
        pytest.raises(JobError, match=r"^lost\. Until then, \S*/table shows what was written: do not use it$"),
        snapshots.unmarked_if_lost(spark, str(tmp_path / "table"), "parquet"),
    ):
        raise snapshots.RecordsLostError("lost")


def test_topics_are_made_so_that_compaction_waits_until_an_export_has_read(changelog: Changelog) -> None:
    lag = topic_configuration(changelog.settings.bootstrap_servers, changelog.name).min_compaction_lag_ms
    assert lag == CHANGELOG_LAG_MS
    cluster = Cluster(changelog.settings.bootstrap_servers)
    assert snapshots._lag_s(cluster, changelog.name) == CHANGELOG_LAG_MS / 2_000
