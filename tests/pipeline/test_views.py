"""An archive that is a table of Spark's catalog, and the views over it: what they say, and which files they read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from support.ledger import Ledger

from light_scheduler.cli import cli
from light_scheduler.engine import event_of
from light_scheduler.errors import JobError
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.model import BulkTotal, ControlCommand, EventType, HistoryEvent, Selection
from light_scheduler.pipeline.archive import ArchiveOptions, main, tenant_of
from light_scheduler.pipeline.job import Cluster, configured
from light_scheduler.pipeline.tables import read_table, write_table
from light_scheduler.pipeline.views import VIEWS, ViewsOptions
from light_scheduler.pipeline.views import main as create_views
from light_scheduler.testing import Kafka
from light_scheduler.wire import encode_history
from light_scheduler.wire.content_type import JSON_COMMAND

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900)]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, DAY = 1_000, 86_400_000
OF_ACME = "tenant = 'acme' AND date = DATE'2026-01-01'"


@pytest.fixture
def ledger(kafka: Kafka, prefix: str) -> Ledger:
    """Firings of two tenants on two days: of the first on both, 1 s late; of the second on the first day, at once."""
    ledger = Ledger(prefix)
    for day in (0, 1):
        for number in range(10):
            ledger.send(f"s-{day}-{number}", M, ("at", M + day * DAY + 60 * SECOND), ("tenant", "acme"))
    ledger.send("other", M, ("at", M + 120 * SECOND))
    ledger.send("ahead", M, ("at", M + 9 * DAY))
    ledger.send("gone", M, ("at", M + 9 * DAY))
    ledger.send("gone", M, ("command", "cancel"))
    for at in (M, M + 61 * SECOND, M + 120 * SECOND, M + DAY + 61 * SECOND):
        ledger.run(at)
    ledger.produce(kafka.bootstrap_servers)
    create_topic(kafka.bootstrap_servers, ledger.names.results, 1)
    return ledger


def filters_of(spark: SparkSession, query: str) -> str:
    """Return the filters by which a query leaves out files."""
    with configured(spark, {"spark.sql.maxMetadataStringLength": "10000"}):  # else filters are cut off
        plan = spark.sql(f"EXPLAIN {query}").collect()[0][0]
    return " ".join(re.findall(r"PartitionFilters: \[[^\]]*\]", plan))


def partitions(view: DataFrame) -> set[str]:
    """Return the folders of the files that a query reads."""
    return {"/".join(file.split("/")[-3:-1]) for file in view.inputFiles()}


@pytest.mark.soak
@pytest.mark.usefixtures("this_session", "compiled_plans")
@pytest.mark.every_case
def test_views_over_an_archive_by_name_read_the_day_and_the_tenant_that_are_asked_for(
    spark: SparkSession, kafka: Kafka, ledger: Ledger, prefix: str, tmp_path: Path
) -> None:
    schema = prefix.replace("-", "_")
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path}/a lake'")
    archive, broker = f"table:{schema}.archive", ["--broker", f"kafka://{kafka.bootstrap_servers}", "--app-id", prefix]
    try:
        for command in (
            ["archive", archive, "--by-tenant"],
            ["views", archive, "--by-tenant", "--create", "--schema", schema],
        ):
            ran = CliRunner().invoke(cli, ["pipeline", *command, *broker])
            assert ran.exit_code == 0, (ran.output, ran.exception)
        assert "The catalog of this session is in memory, so the views are gone when the session ends" in ran.output

        firings = spark.table(f"{schema}.firings")
        assert firings.groupBy("tenant", "lateness_ms").count().sort("tenant").collect() == [
            ("acme", 1_000, 20),
            ("default", 0, 1),
        ]
        query = f"SELECT * FROM {schema}.firings WHERE {OF_ACME}"
        some, filters = spark.sql(query), filters_of(spark, query)
        assert some.count() == 10
        assert re.search(r"tenant#\d+ = acme", filters)
        assert re.search(r"date#\d+ = 2026-01-01", filters)
        assert partitions(some) == {"date=2026-01-01/tenant=acme"}
        hours = spark.sql(f"SELECT firings, p50_ms, max_ms FROM {schema}.lateness WHERE {OF_ACME}")
        assert (hours.collect(), partitions(hours)) == ([(10, 1_000, 1_000)], {"date=2026-01-01/tenant=acme"})
        mine = spark.sql(f"SELECT * FROM {schema}.schedules WHERE tenant = 'default'")
        assert {row.id: (row.last_event, row.firings, row.version) for row in mine.collect()} == {
            "other": ("fired", 1, 1),
            "ahead": ("scheduled", 0, 1),
            "gone": ("cancelled", 0, 1),
        }
        assert {folder.rsplit("=", 1)[1] for folder in partitions(mine)} == {"default"}
        for name, view in VIEWS.items():
            assert spark.table(f"{schema}.{name}").columns == list(view.columns)

        told = CliRunner().invoke(cli, ["pipeline", "report", "--archive", archive, "--json", *broker])
        assert json.loads(told.stdout)["firings"] == 21

        # The table gets a column, and history events lack members, or have more.
        spark.sql(f"ALTER TABLE {schema}.archive ADD COLUMNS (remark STRING)")
        event = {"event": "fired", "tenant": "acme", "id": "new", "due": M, "at": M + 5, "hue": {"a": 1}}
        ledger.append(ledger.names.history, 0, M + DAY, b"acme/new", json.dumps(event).encode(), [])
        ledger.produce(kafka.bootstrap_servers)
        ran = CliRunner().invoke(cli, ["pipeline", "archive", archive, *broker])
        assert ran.exit_code == 0, (ran.output, ran.exception)
        new = spark.sql(f"SELECT * FROM {schema}.firings WHERE id = 'new'").collect()
        assert [(row.lateness_ms, row.attempt, str(row.date)) for row in new] == [(5, None, "2026-01-02")]
        assert spark.table(f"{schema}.firings").count() == 22
    finally:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.soak
def test_tables_by_name_are_read_and_written_as_those_by_path(spark: SparkSession, prefix: str, tmp_path: Path) -> None:
    schema = prefix.replace("-", "_")
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path}/lake'")
    rows = spark.createDataFrame([("a", 1)], "id string, number int").coalesce(1)
    try:
        for format in ("parquet", "delta"):
            name = f"table:{schema}.{format}"
            for mode in ("overwrite", "overwrite", "append"):
                write_table(rows, name, format, mode)
            assert read_table(spark, name, format).select("id").collect() == [("a",), ("a",)]
        with pytest.raises(JobError, match="is a Delta table: give its format as delta"):
            read_table(spark, f"table:{schema}.delta", "parquet")
        with pytest.raises(JobError, match="Spark's catalog has no table"):
            read_table(spark, f"table:{schema}.none", "parquet")
        spark.sql(f"CREATE VIEW {schema}.view AS SELECT 1 AS id")
        with pytest.raises(JobError, match="has no folder of files"):
            read_table(spark, f"table:{schema}.view", "delta")
        options = ArchiveOptions(Cluster("127.0.0.1:1"), [], f"table:{schema}.parquet")
        with pytest.raises(JobError, match="is a table of parquet, and an archive is one of Delta Lake"):
            main(spark, options)
    finally:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.soak
def test_a_schedule_whose_id_ends_in_a_star_has_a_row_and_a_bulk_command_of_that_id_has_none(
    spark: SparkSession, prefix: str, tmp_path: Path
) -> None:
    schema, archive = prefix.replace("-", "_"), tmp_path / "archive"

    def event(type: EventType, at: int) -> HistoryEvent:
        return HistoryEvent(type, "acme", "order-*", 1, M, at, 1, 1, "target", None, 0)

    def bulk(id: str) -> HistoryEvent:
        selection = Selection(id.removesuffix("*"))
        return event_of(
            BulkTotal(ControlCommand("cancel", "acme", id, b"k", 0, 9, M, selection=selection), (), 7), M + 9
        )

    events = [event(EventType.SCHEDULED, M - 9), event(EventType.FIRED, M), bulk("order-*"), bulk("o*")]
    rows = [("history", bytearray(encode_history(each)), offset) for offset, each in enumerate(events)]
    records = spark.createDataFrame(rows, "topic string, value binary, offset long")
    records.withColumn("date", F.lit("2026-01-01").cast("date")).write.format("delta").save(str(archive))
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path}/lake'")
    try:
        create_views(spark, ViewsOptions(str(archive), "history", schema))
        found = spark.table(f"{schema}.schedules").select("tenant", "id", "version", "last_event", "firings")
        assert found.collect() == [("acme", "order-*", 1, "fired", 1)]
        assert spark.table(f"{schema}.firings").select("id").collect() == [("order-*",)]
    finally:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


def test_a_record_is_filed_under_its_tenant_if_that_can_be_one(spark: SparkSession) -> None:
    as_json, in_value = ("content-type", bytearray(JSON_COMMAND)), bytearray(b'{"tenant": "acme", "id": "a"}')
    of_acme = ("schedule-tenant", bytearray(b"acme"))
    records = [
        ("c", bytearray(b""), [of_acme]),
        ("c", in_value, [as_json]),
        ("c", in_value, []),
        ("json", in_value, []),
        ("c", None, None),
        ("c", bytearray(b""), [("schedule-tenant", bytearray(b"x" * 300))]),
        ("c", bytearray(b""), [("schedule-tenant", bytearray(b"a/b"))]),
    ]
    schema = "topic string, value binary, headers array<struct<key: string, value: binary>>"
    tenants = spark.createDataFrame(records, schema).select(tenant_of({"json"}).alias("tenant")).collect()
    assert [row.tenant for row in tenants] == ["acme", "acme", "default", "acme", "default", "default", "default"]
