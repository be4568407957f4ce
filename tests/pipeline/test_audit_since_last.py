"""Audits of topics in a real Kafka that continue one another."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import DataFrame, SparkSession
from support.ledger import Ledger, Record
from support.placing import delete_topic

from light_scheduler.clock import SettableClock
from light_scheduler.errors import JobError
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.model import DelayRule
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.pipeline.audit import AuditOptions, AuditSummary, main
from light_scheduler.pipeline.audit.continuing import ContinuedTopics
from light_scheduler.pipeline.audit.handled import Handled
from light_scheduler.pipeline.audit.sources import Topics
from light_scheduler.pipeline.audit.state import AuditState
from light_scheduler.pipeline.audit.watermark import Watermark
from light_scheduler.pipeline.exclusion import only_audit
from light_scheduler.pipeline.job import Cluster
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(1_800)]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, HOUR = 60_000, 3_600_000


@pytest.fixture
def ledger(prefix: str) -> Ledger:
    """The first hour of an application: everything is asked for, and half of it has been delivered, s-2 altered."""
    ledger = Ledger(prefix)
    for number in range(20):
        ledger.send(f"s-{number}", M + number, ("at", M + (50 + number) * MINUTE))
    ledger.send("rate", M, ("every", "10m"))
    ledger.send("cancelled", M, ("at", M + 70 * MINUTE))
    ledger.send("replaced", M, ("at", M + 70 * MINUTE))
    ledger.run(M + MINUTE)
    ledger.run_until(M + HOUR)
    altered = firings(ledger)[b"s-2"]
    ledger.change(altered, replace(altered, value=b"other"))
    return ledger


def firings(ledger: Ledger) -> dict[bytes, Record]:
    return {record.header("schedule-id") or b"": record for record in ledger.of(ledger.target)}


def second_hour(ledger: Ledger) -> dict[str, str]:
    """Run another hour, and plant faults in it; return the kind that is expected of each schedule."""
    ledger.send("cancelled", M + 65 * MINUTE, ("command", "cancel"))
    ledger.send("replaced", M + 65 * MINUTE, ("at", M + 80 * MINUTE))
    ledger.run_until(M + 90 * MINUTE)
    ledger.send("late", M + 91 * MINUTE, ("at", M + 92 * MINUTE))
    ledger.run(M + 110 * MINUTE)
    over, early, altered, lost = (firings(ledger)[b"s-%d" % number] for number in (2, 12, 13, 14))
    ledger.append(over.topic, 3, M + 100 * MINUTE, over.key, over.value, over.headers)
    for id in ("cancelled", "replaced"):
        fake(ledger, lost, id)
    ledger.change(early, early.with_header("schedule-fired-at", b"%d" % (M + 61 * MINUTE)))
    ledger.change(altered, replace(altered, value=b"other"))
    ledger.remove(lost)
    kinds = {"s-2": "duplicate", "s-12": "early", "s-13": "altered", "s-14": "missing", "late": "late"}
    return {**kinds, "cancelled": "after_cancel", "replaced": "superseded"}


def fake(ledger: Ledger, like: Record, id: str) -> None:
    """Deliver the first version of a schedule at its first time."""
    due = M + 70 * MINUTE
    for name, value in {"id": id, "due": due, "fired-at": due, "source-partition": ledger.lane_of(id)}.items():
        like = like.with_header(f"schedule-{name}", str(value).encode())
    ledger.append(like.topic, 0, due, like.key, like.value, like.headers)


@pytest.fixture
def audit(ledger: Ledger, spark: SparkSession, kafka: Kafka) -> Callable[..., AuditSummary]:
    def audit(end: int, **options: Any) -> AuditSummary:
        cluster, inputs = Cluster(kafka.bootstrap_servers), {ledger.names.commands: "native"}
        given: dict[str, Any] = {"end": end, "clock": SettableClock(end + MINUTE), **options}
        return main(spark, AuditOptions(cluster, ledger.names, inputs, ledger.rules, ledger.limits, **given))

    return audit


@pytest.mark.soak
@pytest.mark.usefixtures("compiled_plans")
@pytest.mark.every_case
def test_the_second_audit_finds_all_that_is_wrong_since_the_first_though_it_was_interrupted_before(
    ledger: Ledger, audit: Callable[..., AuditSummary], spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    path = str(tmp_path / "state")
    ledger.produce(kafka.bootstrap_servers)
    first = audit(M + HOUR, since_last=path)
    assert [(fault.id, fault.kind) for fault in first.faults] == [("s-2", "altered")]
    assert first.firings == len(ledger.of(ledger.target))
    state = AuditState(spark, path)
    assert state.carried(1).count() == 9 + 3, "a row for each schedule that is pending"
    leave_unfinished(state, path)
    expected = second_hour(ledger)
    ledger.produce(kafka.bootstrap_servers)

    second = audit(M + 2 * HOUR, since_last=path)

    assert {fault.id: fault.kind for fault in second.faults} == expected
    assert len(second.faults) == len(expected), "what the first audit has told is not told again"
    copies = 3
    assert first.firings + second.firings == len(ledger.of(ledger.target)) - copies
    assert (second.start, second.unjudged, second.waiting, second.expanded_by_spark) == (M + HOUR + 1, 0, 0, 1)
    assert second.lateness_ms["max"] == 18 * MINUTE
    for folder in (tmp_path / "state" / "scratch").iterdir():
        assert spark.read.parquet(str(folder)).isEmpty(), "scratch tables are of no use after an audit"
    with pytest.raises(JobError, match="ended at 2026-01-01T02:00:00"):
        audit(M + 2 * HOUR, since_last=path)


@pytest.mark.soak
@pytest.mark.every_case
def test_an_audit_without_the_evidence_of_the_first_ones_tells_of_nothing_but_what_is_wrong(
    ledger: Ledger, audit: Callable[..., AuditSummary], spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    path = str(tmp_path / "state")
    ledger.produce(kafka.bootstrap_servers)
    audit(M + HOUR, since_last=path)
    ledger.run_until(M + 90 * MINUTE)
    series = [record for record in ledger.of(ledger.target) if record.header("schedule-id") == b"rate"]
    altered = max(series, key=lambda record: record.timestamp)
    ledger.change(altered, replace(altered, value=b"other"))
    ledger.produce(kafka.bootstrap_servers)
    state = AuditState(spark, path)
    assert state.has_all_evidence(1)
    shutil.rmtree(tmp_path / "state" / "evidence" / "run=1")
    assert not state.has_all_evidence(1)

    second = audit(M + 90 * MINUTE + 1, since_last=path)

    assert [(fault.id, fault.kind, fault.due) for fault in second.faults] == [("rate", "altered", altered.timestamp)]


@pytest.mark.soak
@pytest.mark.every_case
def test_what_waited_while_its_tenant_was_paused_is_no_fault_in_any_audit(
    ledger: Ledger, audit: Callable[..., AuditSummary], kafka: Kafka, tmp_path: Path
) -> None:
    path = str(tmp_path / "state")
    for number in range(6):
        ledger.send(f"paused-{number}", M + HOUR, ("at", M + (61 + 10 * number) * MINUTE), ("tenant", "shop"))
    ledger.run(M + HOUR)
    ledger.run_until(M + 65 * MINUTE)
    ledger.stop("shop", TenantState.PAUSED, M + 65 * MINUTE)
    for minute in range(66, 101):
        ledger.run(M + minute * MINUTE)
    ledger.produce(kafka.bootstrap_servers)
    first = audit(M + 100 * MINUTE, since_last=path)
    ledger.stop("shop", TenantState.ACTIVE, M + 101 * MINUTE)
    ledger.run(M + 101 * MINUTE)
    ledger.run_until(M + 2 * HOUR)
    ledger.produce(kafka.bootstrap_servers)

    second = audit(M + 2 * HOUR, since_last=path)
    whole = audit(M + 2 * HOUR)

    assert {fault.id for fault in first.faults} == {"s-2"}
    assert (list(second.faults), second.unjudged) == ([], 0)
    assert (whole.faults, whole.unjudged) == (first.faults, 0)
    assert first.firings + second.firings == whole.firings == len(ledger.of(ledger.target))
    assert whole.lateness_ms["max"] <= MINUTE
    assert audit(M + 2 * HOUR, replays_all=True) == whole


@pytest.mark.soak
@pytest.mark.every_case
def test_commands_that_wait_for_a_quota_of_their_tenant_are_no_faults_in_any_audit(
    ledger: Ledger, audit: Callable[..., AuditSummary], spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    path = str(tmp_path / "state")
    rules = TenantRules(commands_per_second=1, over_rate=OverRate.DELAY)
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=rules)])
    for number in range(10):
        ledger.send(f"shop-{number}", M + HOUR, ("at", M + 2 * HOUR), ("tenant", "shop"), partition=0)
    ledger.send("other", M + HOUR, ("after", 0), ("tenant", "other"), partition=0)
    ledger.run(M + HOUR)
    ledger.produce(kafka.bootstrap_servers)
    end = M + HOUR + MINUTE // 2
    first = audit(end, since_last=path)
    handled = handled_in(AuditState(spark, path))
    whole = audit(end)
    replayed = audit(end, replays_all=True)
    for waited in range(31, 60):
        ledger.run(M + HOUR + waited * 1_000)
    ledger.produce(kafka.bootstrap_servers)

    second = audit(M + HOUR + MINUTE, since_last=path)

    assert {fault.id for fault in first.faults} == {"s-2"}
    assert replayed == whole
    assert (whole.faults, whole.waiting) == (first.faults, first.waiting)
    assert first.waiting > 0
    assert {queue.tenant for queue in handled} == {"shop"}, "all of others is decided"
    assert (list(second.faults), second.waiting, second.unjudged) == ([], 0, 0)


@pytest.mark.soak
@pytest.mark.every_case
def test_what_delay_rules_forward_is_no_fault_in_any_audit(
    ledger: Ledger, audit: Callable[..., AuditSummary], kafka: Kafka, tmp_path: Path
) -> None:
    later, last = f"{ledger.target}-later", f"{ledger.target}-last"
    ledger.delay(DelayRule("later", ledger.target, 5 * MINUTE, later), M + HOUR)
    configured = DelayRule("last", later, 50 * MINUTE, last)
    ledger.delay(configured)
    ledger.forward(M + HOUR)
    ledger.produce(kafka.bootstrap_servers)
    options: dict[str, Any] = {"targets": (later, last), "delays": (configured,)}
    first = audit(M + HOUR, since_last=str(tmp_path / "state"), **options)
    forwarded = len(ledger.of(later)) + len(ledger.of(last))
    ledger.run_until(M + 2 * HOUR)
    ledger.forward(M + 2 * HOUR)
    ledger.produce(kafka.bootstrap_servers)

    second = audit(M + 2 * HOUR, since_last=str(tmp_path / "state"), **options)
    whole = audit(M + 2 * HOUR, **options)

    assert 0 < forwarded < len(ledger.of(later)) + len(ledger.of(last))
    assert {fault.id for fault in first.faults} == {"s-2"}
    assert (list(second.faults), second.unjudged) == ([], 0)
    assert (whole.faults, whole.unjudged) == (first.faults, 0)
    assert audit(M + 2 * HOUR, replays_all=True, **options) == whole


def handled_in(state: AuditState) -> Handled:
    """Return how far queues were handled, as the last audit left it."""
    last = state.last()
    assert last is not None
    return last.handled


def leave_unfinished(state: AuditState, path: str) -> None:
    """Leave what a second audit leaves that is killed before its last step."""
    state.carry(2, state.carried(1).limit(1))
    for table in ("evidence", "faults"):
        shutil.copytree(f"{path}/{table}/run=1", f"{path}/{table}/run=2")


def test_a_fault_is_told_once_and_one_of_a_message_that_was_sent_again_is_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    state = AuditState(spark, str(tmp_path / "state"))
    columns = "name string, tenant string, id string, lane int, due bigint, topic string, partition int, offset bigint"

    def faults(*found: tuple[str, str, int, int, bytes | None], value: bytes | None = None) -> DataFrame:
        rows = [
            (kind, "default", id, 0, M, "history", 0, offset, M + at, key, value) for kind, id, offset, at, key in found
        ]
        return spark.createDataFrame(rows, f"{columns}, at bigint, key binary, value binary")

    lost, untold = ("missing", "lost", 5, 0, b"%d" % M), ("missing", "untold", 6, 0, None)
    copied = ("duplicate", "copied", 7, 0, None)
    old = faults(("missing", "old-lost", 8, 3, None), ("missing", "old-untold", 8, 3, None)).drop("key", "value")
    state.keep_faults(1, faults(lost, untold, copied))
    old.write.parquet(str(tmp_path / "state" / "faults" / "run=2"))

    again = faults(
        *(lost, untold, copied),
        ("missing", "untold", 9, 4, None),
        ("missing", "old-lost", 9, 3, b"%d" % (M + 3)),
        ("missing", "old-untold", 9, 4, None),
    )
    assert state.unreported(2, again).isEmpty()
    others = (
        ("missing", "lost", 5, 4, b"%d" % (M + 4)),
        ("missing", "lost", 5, 0, None),
        ("missing", "untold", 6, 0, b"%d" % M),
        ("missing", "old-lost", 9, 4, b"%d" % (M + 4)),
        ("duplicate", "copied", 8, 0, None),
    )
    assert state.unreported(2, faults(*others)).count() == len(others)
    came_late = ("missing", "untold", 12, 4, b"%d" % (M + 4))
    assert state.unreported(2, faults(came_late, value=b"history:0:6")).isEmpty(), "it has the same command"
    assert state.unreported(2, faults(came_late, ("missing", "lost", 12, 4, None), value=b"history:0:5")).count() == 2
    assert state.unreported(1, again).count() == 2


@pytest.mark.soak
@pytest.mark.every_case
def test_two_audits_do_not_use_one_state_at_once(kafka: Kafka, prefix: str) -> None:
    create_topic(kafka.bootstrap_servers, prefix, 1)
    cluster = Cluster(kafka.bootstrap_servers)

    def audit(path: str) -> AbstractContextManager[None]:
        return only_audit(cluster, prefix, path, prefix)

    with audit("/data/audits"):
        with audit("/data/other-audits"):
            pass
        with pytest.raises(JobError, match="another audit uses /data/audits: wait"), audit("/data/audits"):
            pass
    with audit("/data/audits"):
        pass


def test_since_when_a_topic_has_all_is_told_by_the_first_record_that_is_left_of_it(kafka: Kafka, prefix: str) -> None:
    ledger = Ledger(prefix)
    for number in range(10):
        ledger.send(f"s-{number}", M + number, ("at", M + HOUR), partition=number % 2)
    ledger.produce(kafka.bootstrap_servers)
    cluster, topic = Cluster(kafka.bootstrap_servers), ledger.names.commands
    admin = AdminClient(cluster.configuration())
    for done in admin.delete_records([TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 5)]).values():
        done.result()
    topics = Topics(None, cluster)  # type: ignore[arg-type]  # a record is read without Spark
    truncated = topics.logs([topic])[topic].truncated
    assert (truncated, topics.firsts(topic, truncated)) == (frozenset({0, 1}), {0: M + 6})


def test_topics_can_be_looked_up_as_soon_as_they_are_created(kafka: Kafka, prefix: str) -> None:
    cluster = Cluster(kafka.bootstrap_servers)
    admin = AdminClient(cluster.configuration())
    topics = Topics(None, cluster)  # type: ignore[arg-type]  # looking topics up needs none
    for number in range(5):  # a broker leads new partitions a moment after it has told of them
        names = [f"{prefix}-{number}-{which}" for which in ("commands", "history")]
        for created in admin.create_topics([NewTopic(name, num_partitions=20) for name in names]).values():
            created.result()
        assert all(log.truncated == frozenset() for log in topics.logs(names).values())


def test_a_topic_that_is_another_one_or_has_lost_unread_records_is_refused(kafka: Kafka, prefix: str) -> None:
    ledger = Ledger(prefix)
    for number in range(10):
        ledger.send(f"s-{number}", M, ("at", M + HOUR), partition=0)
    ledger.produce(kafka.bootstrap_servers)
    topic, cluster = ledger.names.commands, Cluster(kafka.bootstrap_servers)
    admin = AdminClient(cluster.configuration())

    def topics(last: Watermark | None) -> ContinuedTopics:
        return ContinuedTopics(None, cluster, last, [topic])  # type: ignore[arg-type]  # looking topics up needs none

    beginning = topics(None)
    beginning.logs([topic])
    reached = replace(beginning.reached(), offsets={(topic, 0): 4, (topic, 1): 0})
    last = Watermark(1, prefix, (topic,), M, reached, whole_since={topic: 0})
    for gone in (4, 5):
        for done in admin.delete_records([TopicPartition(topic, 0, gone)]).values():
            done.result()
        if gone == 4:
            assert not topics(last).logs([topic])[topic].truncated, "all that is gone has been read"
    with pytest.raises(JobError, match=f"retention has deleted records of topic {topic}.*up to offset 4.*begins at 5"):
        topics(last).logs([topic])
    delete_topic(kafka.bootstrap_servers, topic)
    create_topic(kafka.bootstrap_servers, topic, 2)
    with pytest.raises(JobError, match=f"topic {topic} was deleted and created again"):
        topics(last).logs([topic])
