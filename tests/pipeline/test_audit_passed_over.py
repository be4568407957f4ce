"""Commands that workers passed over, found by the order of the lines of a lane."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.ledger import Ledger

from light_scheduler.clock import SettableClock
from light_scheduler.pipeline.audit import AuditOptions, AuditSummary, main
from light_scheduler.pipeline.job import Cluster
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, HOUR = 60_000, 3_600_000
LOST, LATE = 5, 12

Audit = Callable[..., AuditSummary]


@pytest.fixture
def ledger(prefix: str) -> Ledger:
    """Cancels of half of the schedules are lost, or come when they have fired. All others are carried out in time."""
    ledger = Ledger(prefix)
    for number in range(20):
        ledger.send(f"s-{number}", M, ("at", M + HOUR + number))
    ledger.run(M)
    for number in range(LOST):
        ledger.send(f"s-{number}", M + 10 * MINUTE, ("command", "cancel"))
    ledger.forget()
    for number in range(200):
        ledger.send(f"later-{number}", M + 20 * MINUTE, ("at", M + 30 * MINUTE))
    ledger.run(M + 20 * MINUTE)
    ledger.run_until(M + HOUR + 20)
    for number in range(LOST, LATE):
        ledger.send(f"s-{number}", M + HOUR + MINUTE, ("command", "cancel"))
    ledger.send("last", M + HOUR + 2 * MINUTE, ("at", M + 3 * HOUR))
    ledger.run(M + HOUR + 2 * MINUTE)
    return ledger


@pytest.fixture
def audit(ledger: Ledger, spark: SparkSession, kafka: Kafka) -> Audit:
    def audit(end: int, **options: Any) -> AuditSummary:
        given: dict[str, Any] = {"end": end, "clock": SettableClock(end + MINUTE), **options}
        topics = ledger.names, {ledger.commands: "native"}, ledger.rules, ledger.limits
        return main(spark, AuditOptions(Cluster(kafka.bootstrap_servers), *topics, **given))

    return audit


def kinds(summary: AuditSummary) -> list[tuple[str, str]]:
    return sorted((fault.id, fault.kind) for fault in summary.faults)


def test_cancels_that_were_lost_before_schedules_fired_are_found_and_those_that_came_late_are_no_faults(
    ledger: Ledger, audit: Audit, kafka: Kafka, tmp_path: Path
) -> None:
    ledger.produce(kafka.bootstrap_servers)
    expected = [(f"s-{number}", "ignored") for number in range(LOST)]
    whole = audit(M + 2 * HOUR)
    assert kinds(whole) == expected
    assert (whole.waiting, whole.unjudged) == (0, 0)
    assert audit(M + 2 * HOUR, replays_all=True) == whole
    state = str(tmp_path / "state")
    assert kinds(audit(M + 2 * HOUR, since_last=state)) == expected
    assert kinds(audit(M + 2 * HOUR + MINUTE, since_last=state)) == []
