"""What open transactions keep from being read is not missing: an audit ends before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from support.ledger import Ledger

from light_scheduler.clock import SettableClock
from light_scheduler.errors import JobError
from light_scheduler.pipeline.audit import AuditOptions, AuditSummary, main
from light_scheduler.pipeline.audit.reading import LONGEST_TRANSACTION_MS
from light_scheduler.pipeline.job import Cluster
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, MINUTE = 1_000, 60_000
OPENED, NOW = M + 10 * MINUTE, M + 20 * MINUTE
FIRINGS = 19

Audit = Callable[..., AuditSummary]


@pytest.fixture
def ledger(prefix: str) -> Ledger:
    ledger = Ledger(prefix)
    for number in range(1, FIRINGS + 1):
        ledger.send(f"s-{number}", M, ("at", M + number * MINUTE + SECOND))
    ledger.run_until(OPENED)
    return ledger


@pytest.fixture
def audit(ledger: Ledger, spark: SparkSession, kafka: Kafka) -> Audit:
    def audit(**options: Any) -> AuditSummary:
        given = {"clock": SettableClock(NOW), **options}
        topics = ledger.names, {ledger.commands: "native"}, ledger.rules, ledger.limits
        return main(spark, AuditOptions(Cluster(kafka.bootstrap_servers), *topics, **given))

    return audit


@contextmanager
def opened(ledger: Ledger, topic: str, kafka: Kafka, at: int = OPENED) -> Iterator[None]:
    """Have somebody's transaction open in all partitions of a topic, while the application goes on."""
    ledger.produce(kafka.bootstrap_servers)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-open"})
    producer.init_transactions()
    producer.begin_transaction()
    for partition in range(ledger.topics[topic]):
        producer.produce(topic, b"theirs", partition=partition, timestamp=at)
    assert producer.flush(60) == 0
    ledger.run_until(NOW)
    ledger.produce(kafka.bootstrap_servers)
    yield
    producer.abort_transaction()


@pytest.mark.parametrize("is_history", [False, True])
def test_an_audit_ends_before_what_an_open_transaction_hides(
    ledger: Ledger, audit: Audit, kafka: Kafka, tmp_path: Path, is_history: bool
) -> None:
    state = str(tmp_path / "state")
    with opened(ledger, ledger.names.history if is_history else ledger.target, kafka):
        first = audit(since_last=state)
        assert (list(first.faults), first.end, first.firings) == ([], OPENED - 10 * SECOND, 9)
        with pytest.raises(JobError, match="has been open since 2026-01-01T00:10:00"):
            audit(since_last=state)
        with pytest.raises(JobError, match="run the audit again when it has ended"):
            audit(start=OPENED)
    second = audit(since_last=state)
    assert (list(second.faults), second.end, second.firings) == ([], NOW - 10 * SECOND, FIRINGS - 9)


def test_timestamps_that_are_older_than_any_transaction_tell_nothing(
    ledger: Ledger, audit: Audit, kafka: Kafka
) -> None:
    with opened(ledger, ledger.target, kafka, at=M - 1_000 * MINUTE):
        summary = audit()
    assert (list(summary.faults), summary.end) == ([], NOW - LONGEST_TRANSACTION_MS - 10 * SECOND)
