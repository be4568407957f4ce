"""An archive that an older release made, with fewer columns: it is read, goes on, and gets what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.ledger import Ledger

from light_scheduler.engine import FiringRules, Limits
from light_scheduler.errors import JobError
from light_scheduler.model import TopicNames
from light_scheduler.pipeline import archive, report, views
from light_scheduler.pipeline.archive import KAFKA_COLUMNS, ArchiveOptions, read_archive
from light_scheduler.pipeline.audit import AuditOptions, AuditSummary
from light_scheduler.pipeline.audit import main as audit
from light_scheduler.pipeline.job import Cluster
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900)]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, DAY = 60_000, 86_400_000
NEW = "timestampType"
"""The column that the older release does not have."""


class Place:
    """An archive of an application, by its path or its name, and the jobs that work with it."""

    def __init__(self, spark: SparkSession, kafka: Kafka, path: str, prefix: str) -> None:
        self.spark, self.path, self.cluster = spark, path, Cluster(kafka.bootstrap_servers)
        self.ledger = Ledger(prefix)

    def deliver(self, *, day: int, number: int) -> None:
        """Have one-shots delivered on a day."""
        begin = M + day * DAY
        for each in range(number):
            self.ledger.send(f"s-{day}-{each}", begin, ("at", begin + MINUTE + each))
        self.ledger.run(begin)
        self.ledger.run(begin + 2 * MINUTE)
        self.ledger.produce(self.cluster.bootstrap_servers)

    def archive(self) -> archive.ArchiveSummary:
        return archive.main(self.spark, ArchiveOptions(self.cluster, sorted(self.ledger.topics), self.path))

    def audit(self, end: int | None, start: int = 0) -> AuditSummary:
        options: dict[str, Any] = {"inputs": {self.ledger.names.commands: "native"}, "rules": FiringRules()}
        options |= {"limits": Limits(1_000_000, 512), "start": start, "end": end, "archive": self.path}
        return audit(self.spark, AuditOptions(cluster=self.cluster, names=self.ledger.names, **options))

    def reported(self) -> int:
        options = report.ReportOptions(self.cluster, self.ledger.names, archive=self.path)
        return report.main(self.spark, options).firings

    def firings_by_day(self, schema: str) -> list[tuple[str, int]]:
        views.main(self.spark, views.ViewsOptions(self.path, self.ledger.names.history, schema))
        days = self.spark.sql(f"SELECT CAST(date AS STRING) AS day, count(*) AS n FROM {schema}.firings GROUP BY date")
        return sorted((row.day, row.n) for row in days.collect())


@pytest.fixture
def schema(spark: SparkSession, prefix: str, tmp_path: Path) -> Iterator[str]:
    schema = prefix.replace("-", "_")
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path}/lake'")
    yield schema
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.soak
@pytest.mark.parametrize(
    "by_name", [pytest.param(False, id="by path", marks=pytest.mark.every_case), pytest.param(True, id="by name")]
)
@pytest.mark.every_case
def test_an_archive_of_an_older_release_is_read_and_goes_on(
    spark: SparkSession,
    kafka: Kafka,
    prefix: str,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by_name: bool,
) -> None:
    place = Place(spark, kafka, f"table:{schema}.archive" if by_name else str(tmp_path / "archive"), prefix)
    place.deliver(day=0, number=20)
    with monkeypatch.context() as older:
        older.setattr(archive, "KAFKA_COLUMNS", tuple(name for name in KAFKA_COLUMNS if name != NEW))
        older.setattr(archive, "_SCHEMA", archive._SCHEMA.replace(f"{NEW} INT, ", ""))
        assert place.archive().records == 80
        assert NEW not in read_archive(spark, place.path).columns

    assert read_archive(spark, place.path).where(f"{NEW} IS NULL").count() == 80
    before = place.audit(M + 3 * MINUTE)
    assert (list(before.faults), before.firings, before.unjudged) == ([], 20, 0)
    assert (place.reported(), place.firings_by_day(schema)) == (20, [("2026-01-01", 20)])

    place.deliver(day=1, number=10)
    assert place.archive().records == 40
    assert place.archive().records == 0, "once"
    spark.sql(f"OPTIMIZE {f'{schema}.archive' if by_name else f'delta.`{place.path}`'}")

    kept = read_archive(spark, place.path)
    assert (kept.count(), kept.where(f"{NEW} IS NULL").count()) == (120, 80)
    after = place.audit(M + DAY + 3 * MINUTE)
    assert (list(after.faults), after.firings, after.unjudged) == ([], 30, 0)
    assert (place.reported(), place.firings_by_day(schema)) == (30, [("2026-01-01", 20), ("2026-01-02", 10)])
    another = report.ReportOptions(place.cluster, TopicNames("another"), archive=place.path)
    with pytest.raises(JobError, match="has no records of another-history: is another the id of the application"):
        report.main(spark, another)
    with pytest.raises(JobError, match="run the job archive first"):
        place.audit(end=None, start=M + 2 * DAY)
