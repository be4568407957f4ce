"""The load ahead and the punctuality of what was delivered: figures that can be counted by hand, tables, and pages."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.ledger import Ledger

from light_scheduler.clock import SettableClock
from light_scheduler.engine import preview
from light_scheduler.model import EventType, ScheduleCommand
from light_scheduler.pipeline import forecast, report
from light_scheduler.pipeline.job import Cluster
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_history, dialect_named, format_instant

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(600)]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


@pytest.mark.usefixtures("compiled_plans")
def test_a_forecast_counts_every_firing_that_the_engine_will_make(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    ledger = Ledger(prefix)
    for number in range(60):
        ledger.send(f"once-{number}", M, ("at", M + number * 5 * MINUTE), ("tenant", "acme"))
    ledger.send("overdue", M, ("at", M - HOUR))
    ledger.send("rate", M, ("every", "90s"), ("jitter", "1m"), value=b"x" * 2_000)
    ledger.send("cron", M, ("cron", "*/7 * * * *"), ("max-firings", 9))
    ledger.send("delay", M, ("every", "20m"), ("mode", "fixed-delay"))
    ledger.send("backoff", M, ("backoff", "1m,2m,4m,8h"))
    ledger.send("paused", M, ("every", "1m"), ("paused", "true"))
    ledger.send("gone", M, ("at", M + HOUR))
    ledger.send("gone", M, ("command", "cancel"))
    ledger.run(M)
    ledger.run_until(M + 10 * MINUTE)  # the large series has moved on, and is split
    ledger.produce(kafka.bootstrap_servers)
    now, end = M + 10 * MINUTE, M + 10 * MINUTE + 2 * HOUR

    expected: Counter[int] = Counter()
    for record in ledger.of(ledger.names.commands):
        command = dialect_named("native").decode(record)
        if isinstance(command, ScheduleCommand) and command.id not in ("gone", "paused"):
            expected.update(due // MINUTE * MINUTE for due in preview(command, 1_000) if now < due < end)

    options = forecast.ForecastOptions(
        cluster=Cluster(kafka.bootstrap_servers),
        names=ledger.names,
        inputs=[ledger.names.commands],
        ahead=2 * HOUR,
        table=str(tmp_path / "load"),
        page=str(tmp_path / "load.html"),
        clock=SettableClock(now),
    )
    summary = forecast.main(spark, options)

    assert {load.minute: load.firings for load in summary.minutes} == {
        format_instant(minute): firings for minute, firings in sorted(expected.items())
    }
    assert (summary.firings, summary.paused, summary.cut) == (expected.total(), 1, 0)
    assert summary.peak is not None
    assert summary.peak.firings == max(expected.values())
    assert summary.tenants["acme"] == 23
    rows = spark.read.parquet(str(tmp_path / "load")).collect()
    assert sum(row.firings for row in rows) == expected.total()
    assert {row.topic for row in rows} == {ledger.target}
    assert len(list((tmp_path / "load").glob("*.parquet"))) == 1
    assert "data:image/png" in (tmp_path / "load.html").read_text()
    json.dumps(dataclasses.asdict(summary))


@pytest.mark.usefixtures("compiled_plans")
def test_a_report_tells_how_late_what_was(spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path) -> None:
    ledger = Ledger(prefix)
    for number in range(200):
        tenant = ("tenant", "acme" if number % 4 else "beta")
        ledger.send(f"s-{number}", M, ("at", M + HOUR * (number % 2) + number * SECOND), tenant)
    ledger.send("expired", M, ("at", M + SECOND), ("ttl", "1s"))
    ledger.run(M)
    for at in range(M, M + 2 * HOUR, 30 * SECOND):
        ledger.run(at)
    ledger.produce(kafka.bootstrap_servers)
    told = [decode_history(record.value) for record in ledger.of(ledger.names.history)]
    late = sorted(event.at - (event.due or 0) for event in told if event.event is EventType.FIRED)

    page = tmp_path / "report.html"
    summary = report.main(spark, report.ReportOptions(Cluster(kafka.bootstrap_servers), ledger.names, page=str(page)))

    assert summary.firings == 200
    assert summary.lateness_ms["max"] == late[-1]
    assert summary.lateness_ms["p50"] == late[99]
    assert summary.events == {"scheduled": 201, "fired": 200, "expired": 1}
    assert [(hour.name, hour.firings) for hour in summary.hours] == [
        (format_instant(M), 100),
        (format_instant(M + HOUR), 100),
    ]
    assert [(tenant.name, tenant.firings) for tenant in summary.tenants] == [("acme", 150), ("beta", 50)]
    assert sum(partition.firings for partition in summary.partitions) == 200
    assert page.read_text().count("data:image/png") == 4
    json.dumps(dataclasses.asdict(summary))
    of_hour = report.ReportOptions(Cluster(kafka.bootstrap_servers), ledger.names, start=M + HOUR, end=M + 2 * HOUR)
    assert report.main(spark, of_hour).firings == 100
