"""Audits of an application with commands topics of its own and in the dialects of other schedulers, in a real Kafka."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.application import Application
from support.foreign import SENDERS, task, task_key
from support.ledger import Ledger, Record
from support.reading import read_until

from light_scheduler.clock import SettableClock, SystemClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.pipeline import archive
from light_scheduler.pipeline.audit import AuditOptions, AuditSummary, main
from light_scheduler.pipeline.job import Cluster
from light_scheduler.testing import Kafka
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(1_800)]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, HOUR = 60_000, 3_600_000
NUMBER = 20
BEAT = b"beat"
TRACED = ("karafka", "etf1", "light4j")


class Mixed:
    """An application with a topic of its own, and one in each dialect; ids begin with the name of their dialect."""

    def __init__(self, app_id: str) -> None:
        self.native = Ledger(app_id, partitions=2)
        self.others = {name: Ledger(app_id, partitions=2, dialect=name, beside=self.native) for name in SENDERS}
        self.ledgers = [self.native, *self.others.values()]
        for number in range(NUMBER):
            self.native.send(f"native-{number}", M, ("at", M + HOUR + number))
            for name in SENDERS:
                self.schedule(name, number, M, M + HOUR)
        self.native.send("native-series", M, ("every", "10m"))
        # It concerns schedules of its own topic alone.
        self.native.send("*", M + MINUTE, ("command", "pause"), ("id", "*"), value=None, partition=0)
        self.native.send("*", M + MINUTE + 1, ("command", "resume"), ("id", "*"), value=None, partition=0)

    def schedule(self, dialect: str, number: int, at: int, due: int) -> None:
        ledger, id = self.others[dialect], f"{dialect}-{number}"
        key, value, headers = SENDERS[dialect].schedule(id, due, b"of " + id.encode(), ledger.target)
        ledger.append(ledger.commands, number % ledger.partitions, at, key, value, headers)

    def beat(self, dialect: str, at: int) -> None:
        """Schedule a series of equal messages every ten minutes, as HTTP does."""
        ledger = self.others[dialect]
        body = json.dumps(every(10 * MINUTE, f"{dialect}-beat", ledger.target)).encode()
        ledger.append(ledger.commands, 0, at, b"beat", body, [(CONTENT_TYPE, JSON_COMMAND)])

    def lose_beat(self, dialect: str, at: int) -> None:
        """Take the message of an instant out."""
        beats = [each for each in self.native.of(self.native.target) if each.timestamp == at and each.value == BEAT]
        (lost,) = [each for each in beats if bool(each.headers) == (dialect != "skyuk")]
        self.native.remove(lost)

    def read_until(self, instant: int) -> None:
        """Leave in the history what there was at an instant: messages are read after it, and series go on."""
        for log in (self.native.records[self.native.names.history, partition] for partition in (0, 1)):
            log[:] = [record for record in log if record.timestamp <= instant]

    def cancel(self, dialect: str, number: int, at: int) -> None:
        ledger = self.others[dialect]
        key, value, headers = SENDERS[dialect].cancel(f"{dialect}-{number}")
        ledger.append(ledger.commands, number % ledger.partitions, at, key, value, headers)

    def run_until(self, end: int) -> None:
        for ledger in self.ledgers:
            ledger.run_until(end)

    def firing(self, id: str) -> Record:
        """Return the message of a schedule."""
        (found,) = [record for record in self.native.of(self.native.target) if id in _names(record)]
        return found

    @property
    def inputs(self) -> dict[str, str]:
        return {ledger.commands: ledger.dialect for ledger in self.ledgers}

    def plant(self, numbers: Mapping[str, int]) -> dict[str, str]:
        """Plant faults at schedules of these numbers; return what an audit should say of each."""
        ledger = self.native
        kinds: dict[str, str] = {}
        for name in ("native", "karafka", "etf1", "light4j"):
            altered, copied = self.firing(f"{name}-{numbers['altered']}"), self.firing(f"{name}-{numbers['copied']}")
            value = (altered.value or b"").replace(b"payload", b"Payload").replace(b"of ", b"OF ")
            ledger.change(altered, replace(altered, value=value))
            ledger.append(copied.topic, 3, copied.timestamp + 1, copied.key, copied.value, copied.headers)
            kinds |= {f"{name}-{numbers['altered']}": "altered", f"{name}-{numbers['copied']}": "duplicate"}
        for name in ("native", *SENDERS):
            ledger.remove(self.firing(f"{name}-{numbers['lost']}"))
            kinds[f"{name}-{numbers['lost']}"] = "missing"
        return kinds


def every(interval: int, id: str, topic: str, **members: Any) -> dict[str, Any]:
    """Return a command for a series of equal messages in the JSON form."""
    target = {"target": {"topic": topic}, "payload": {"text": BEAT.decode()}}
    return {"command": "schedule", "id": id, "trigger": {"every": interval}, **target, **members}


def _names(record: Record) -> list[str]:
    named = (record.header(name) or b"" for name in ("schedule-id", "schedule_source_key", "scheduler-key"))
    payload = (record.value or b"").rpartition(b"of ")[2].rstrip(b"\0")
    return [name.decode(errors="replace") for name in (*named, payload)]


@pytest.fixture
def mixed(prefix: str) -> Mixed:
    return Mixed(prefix)


@pytest.fixture
def audit(mixed: Mixed, spark: SparkSession, kafka: Kafka) -> Callable[..., AuditSummary]:
    def audit(end: int, **options: Any) -> AuditSummary:
        cluster, ledger = Cluster(kafka.bootstrap_servers), mixed.native
        given: dict[str, Any] = {"end": end, "clock": SettableClock(end + MINUTE), **options}
        return main(spark, AuditOptions(cluster, ledger.names, mixed.inputs, ledger.rules, ledger.limits, **given))

    return audit


def kinds(summary: AuditSummary) -> dict[str, str]:
    assert len({fault.id for fault in summary.faults}) == len(summary.faults)
    return {fault.id: fault.kind for fault in summary.faults}


@pytest.mark.usefixtures("compiled_plans")
def test_faults_are_found_in_each_topic_and_what_cannot_be_found_is_told(
    mixed: Mixed, audit: Callable[..., AuditSummary], kafka: Kafka, tmp_path: Path
) -> None:
    for name in SENDERS:
        mixed.cancel(name, 9, M + MINUTE)
    for name in ("karafka", "skyuk"):
        mixed.beat(name, M)
    mixed.run_until(M + 2 * HOUR + 20 * MINUTE)
    mixed.read_until(M + 2 * HOUR)
    expected = mixed.plant({"altered": 1, "copied": 2, "lost": 3})
    for name in ("karafka", "skyuk"):
        mixed.lose_beat(name, M + 30 * MINUTE)
        expected[f"{name}-beat"] = "missing"
    mixed.native.produce(kafka.bootstrap_servers)

    summary = audit(M + 2 * HOUR, page=str(tmp_path / "audit.html"))

    assert kinds(summary) == expected
    assert {fault.due for fault in summary.faults if fault.id.endswith("beat")} == {M + 30 * MINUTE}
    assert (summary.unjudged, summary.ambiguous, summary.unclaimed, summary.waiting) == (0, 0, 0, 0)
    of_many = 3  # commands for many in two partitions, and the report of one of these, are counted like schedules
    assert summary.schedules == NUMBER * len(mixed.ledgers) + 3 + of_many
    assert summary.untraced == NUMBER - 1 + 12, "those of sky-uk's dialect"
    assert any(line.startswith(f"{summary.untraced} firings could only be looked up") for line in summary.lines())
    assert "looked up by content" in (tmp_path / "audit.html").read_text()


@pytest.mark.soak
def test_an_archive_is_judged_alike(
    mixed: Mixed, audit: Callable[..., AuditSummary], kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    mixed.run_until(M + 2 * HOUR)
    expected = mixed.plant({"altered": 1, "copied": 2, "lost": 3})
    mixed.native.produce(kafka.bootstrap_servers)
    path, topics = str(tmp_path / "archive"), tuple(mixed.native.topics)
    archive.main(spark, archive.ArchiveOptions(Cluster(kafka.bootstrap_servers), topics, path))

    assert kinds(audit(M + 2 * HOUR, archive=path)) == expected


@pytest.mark.soak
def test_series_of_a_compacted_topic_are_judged_as_far_as_their_commands_are_left(
    mixed: Mixed, audit: Callable[..., AuditSummary], kafka: Kafka
) -> None:
    ledger = mixed.others["light4j"]
    for at, id, data in ((M, "stays", "once"), (M, "changes", "first"), (M + HOUR, "changes", "second")):
        mixed.run_until(at)
        frequency = {"timeUnit": "MINUTES", "time": 7}
        value = task(M, data, name=id, topic=ledger.target, frequency=frequency, start=M)
        ledger.append(ledger.commands, 0, at, task_key(id), value, [])
    mixed.run_until(M + 2 * HOUR)
    ledger.remove(next(record for record in ledger.of(ledger.commands) if b"first" in (record.value or b"")))
    lost = [record for record in ledger.of(ledger.target) if b"second" in (record.value or b"")][3]
    ledger.remove(lost)
    mixed.native.compacted = {ledger.commands}
    mixed.native.produce(kafka.bootstrap_servers)

    summary = audit(M + 2 * HOUR)

    assert [(fault.id, fault.kind) for fault in summary.faults] == [("changes", "missing")]
    assert summary.unjudged == 1 + HOUR // (7 * MINUTE), (
        "that it was scheduled, and what it fired until it was replaced"
    )
    assert summary.expanded_by_spark == 0, (
        "what they were before may be gone, and a command for many paused the native one"
    )


@pytest.mark.soak
def test_audits_that_continue_one_another_find_the_same(
    mixed: Mixed, audit: Callable[..., AuditSummary], kafka: Kafka, tmp_path: Path
) -> None:
    state = str(tmp_path / "state")
    for name in SENDERS:
        for number in range(NUMBER, 2 * NUMBER):
            mixed.schedule(name, number, M, M + 2 * HOUR)
    for number in range(NUMBER, 2 * NUMBER):
        mixed.native.send(f"native-{number}", M, ("at", M + 2 * HOUR))
    mixed.run_until(M + HOUR + MINUTE)
    expected = mixed.plant({"altered": 1, "copied": 2, "lost": 3})
    billing = f"{mixed.native.target}-billing"
    mixed.native.further[billing] = 1
    before = Mixed(mixed.native.names.app_id)
    for name in TRACED:
        before.schedule(name, 100, M, M + HOUR)
    before.run_until(M + HOUR + MINUTE)
    for name in TRACED:
        old = before.firing(f"{name}-100")
        mixed.native.append(billing, 0, old.timestamp, old.key, old.value, old.headers)
    mixed.native.produce(kafka.bootstrap_servers)

    first = audit(M + HOUR + 2 * MINUTE, since_last=state)

    assert kinds(first) == expected
    mixed.run_until(M + 2 * HOUR + MINUTE)
    later = mixed.plant({"altered": 21, "copied": 22, "lost": 23})
    # Copies of what the first audit has read, of schedules that have ended.
    for name in ("native", "karafka", "etf1", "light4j"):
        over = mixed.firing(f"{name}-5")
        mixed.native.append(over.topic, 3, M + 2 * HOUR, over.key, over.value, over.headers)
        late = mixed.firing(f"{name}-6")  # one that became visible only then
        mixed.native.append(late.topic, 3, late.timestamp, late.key, late.value, late.headers)
        later |= {f"{name}-5": "duplicate", f"{name}-6": "duplicate"}
    for name in TRACED:
        over = mixed.firing(f"{name}-7")
        mixed.native.append(billing, 0, over.timestamp, over.key, over.value, over.headers)
        later[f"{name}-7"] = "duplicate"
    mixed.native.produce(kafka.bootstrap_servers)

    second = audit(M + 2 * HOUR + 3 * MINUTE, since_last=state, targets=(billing,))

    assert kinds(second) == later
    assert (second.unjudged, second.untraced) == (0, NUMBER)
    assert (first.unclaimed, second.unclaimed) == (0, len(TRACED)), "those in the topic that is read for the first time"


@pytest.mark.soak
async def test_a_run_of_a_real_worker_is_clean(kafka: Kafka, spark: SparkSession, tmp_path: Path) -> None:
    begun, firings = SystemClock().now(), 9 * 4 + 2 * 3 + 10
    topics = {dialect: f"{tmp_path.name}-{begun}-{dialect}" for dialect in ("native", "json", *SENDERS)}
    setting = ",".join(f"{topic}:{dialect}" for dialect, topic in topics.items())
    application = await Application.create(kafka.bootstrap_servers, tmp_path, commands_topics=setting)
    await application.configure_topic(topics["etf1"], **{"cleanup.policy": "compact"})
    producer = await started_producer({"bootstrap_servers": kafka.bootstrap_servers})
    settings = application.settings
    try:
        worker = await application.start_worker()
        due = (SystemClock().now() // 1_000 + 8) * 1_000
        for dialect, sender in SENDERS.items():
            for number in range(10):
                id = f"{dialect}-{number}"
                key, value, headers = sender.schedule(id, due, b"of " + id.encode(), application.target)
                await producer.send_and_wait(topics[dialect], value, key, headers=headers)
            key, value, headers = sender.cancel(f"{dialect}-9")
            await producer.send_and_wait(topics[dialect], value, key, headers=headers)
        for dialect in ("karafka", "skyuk"):
            series = every(1_000, f"{dialect}-beat", application.target, max_firings=3)
            of_json = [(CONTENT_TYPE, JSON_COMMAND)]
            await producer.send_and_wait(topics[dialect], json.dumps(series).encode(), BEAT, headers=of_json)
        for number in range(10):
            told = [("schedule-at", b"%d" % due), ("schedule-target-topic", application.target.encode())]
            await producer.send_and_wait(topics["native"], b"native", b"native-%d" % number, headers=told)
        await read_until(kafka.bootstrap_servers, [application.target], lambda records: len(records) == firings)
        assert await worker.end() == 0
        names, inputs = settings.topics, {source.name: source.dialect for source in settings.inputs}
        rules, limits = FiringRules(), Limits(settings.max_payload_bytes, settings.max_id_bytes)
        options = AuditOptions(
            Cluster(kafka.bootstrap_servers), names, inputs, rules, limits, end=SystemClock().now(), patience=HOUR
        )
        summary = await asyncio.to_thread(main, spark, options)
    finally:
        await stop_producer(producer)
        application.close()
    assert (list(summary.faults), summary.unjudged, summary.unclaimed, summary.waiting) == ([], 0, 0, 0)
    assert (summary.firings, summary.untraced) == (firings, 9 + 3)
