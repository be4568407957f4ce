"""Audits of topics in a real Kafka: what was planted is found, one in very many, and nothing else."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from support.application import Application
from support.cases import by_day
from support.growing import grow as add_partitions
from support.ledger import Ledger, Record
from support.reading import marks_passed, read_until

from light_scheduler.cli.growing import grow, moved
from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SettableClock, SystemClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.errors import JobError
from light_scheduler.model import Requester, TopicNames
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.pipeline import archive, export
from light_scheduler.pipeline.audit import AuditOptions, AuditSummary, Imported, main
from light_scheduler.pipeline.audit.evidence import HISTORY, IMPORTED, SCHEMA
from light_scheduler.pipeline.audit.gathering import where_told
from light_scheduler.pipeline.import_decisions import adopted
from light_scheduler.pipeline.job import Cluster
from light_scheduler.testing import Kafka
from light_scheduler.wire import change_record

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(7_200)]

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, HOUR = 60_000, 3_600_000

Audit = Callable[..., AuditSummary]


@pytest.fixture
def ledger(prefix: str) -> Ledger:
    return Ledger(prefix, partitions=3)


@pytest.fixture
def audit(spark: SparkSession, kafka: Kafka) -> Audit:
    """Produce a ledger, unless it was produced before, and audit it at 03:00."""
    produced: list[Ledger] = []

    def audit(ledger: Ledger, **options: Any) -> AuditSummary:
        if ledger not in produced:
            produced.append(ledger)
            ledger.produce(kafka.bootstrap_servers)
        return main(spark, options_for(kafka, ledger.names, rules=ledger.rules, limits=ledger.limits, **options))

    return audit


def options_for(kafka: Kafka, names: TopicNames, **options: Any) -> AuditOptions:
    defaults: dict[str, Any] = {
        "inputs": {names.commands: "native"},
        "rules": FiringRules(),
        "limits": Limits(1_000_000, 512),
        "clock": SettableClock(M + 3 * HOUR),
    }
    return AuditOptions(Cluster(kafka.bootstrap_servers), names, **{**defaults, **options})


def fill(ledger: Ledger, count: int) -> None:
    """Fire so many one-shots, some of them updated or cancelled before, and some series."""
    for number in range(count):
        due = M + HOUR + number % HOUR
        ledger.send(f"s-{number}", M + number % 1_000, ("at", due), value=b"payload %d" % number)
    ledger.run(M + MINUTE)
    for number in range(0, count, 10):
        if number % 20:
            ledger.send(f"s-{number}", M + MINUTE, ("command", "cancel"))
        else:
            ledger.send(f"s-{number}", M + MINUTE, ("at", M + 2 * HOUR))
    for number in range(min(count // 50, 1_000)):
        ledger.send(f"rate-{number}", M + MINUTE + number, ("every", "10m"), ("end", M + 2 * HOUR))
        ledger.send(f"cron-{number}", M + MINUTE, ("cron", "*/15 * * * *"), ("jitter", "1m"), ("end", M + 2 * HOUR))
    for at in range(M + MINUTE, M + 2 * HOUR + MINUTE, MINUTE):
        ledger.run(at)


def reject_for_many(ledger: Ledger) -> None:
    """Let a quota reject a command for many schedules, and schedule one of them again after it."""
    rules = TenantRules(commands_per_second=1, over_rate=OverRate.REJECT)
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=rules)])
    lane, of_shop = ledger.lane_of("r-1"), ("tenant", "shop")
    ledger.send("r-1", M, ("at", M + HOUR), of_shop)
    ledger.run(M)
    for number in range(30):
        ledger.send(f"x-{number}", M + 1_000, ("at", M + HOUR), of_shop, partition=lane)
    ledger.send("r-*", M + 1_000, ("command", "pause"), ("id", "r-*"), of_shop, value=None, partition=lane)
    ledger.run(M + 1_000)
    ledger.send("r-1", M + MINUTE // 2, ("at", M + 2 * HOUR), of_shop)


class Planted:
    """A fault of each kind, each at a schedule of its own; `expected` is what an audit should say of them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._firings: dict[str, Record] = {}
        for record in ledger.of(ledger.target):
            self._firings.setdefault((record.header("schedule-id") or b"").decode(), record)
        ids = iter([id for id in self._firings if id.startswith("s-") and not id.endswith("0")])
        self.expected: dict[str, str] = {}
        for kind, plant in (
            ("duplicate", self._append),
            ("early", lambda firing: self._change(firing.with_header("schedule-fired-at", b"%d" % (M + MINUTE)))),
            ("altered", lambda firing: self._change(replace(firing, value=b"other"))),
            ("altered", lambda firing: self._change(firing.with_header("user", b"other"))),
            ("missing", ledger.remove),  # at last: it moves those behind it
        ):
            id = next(ids)
            plant(self._firings[id])
            self.expected[id] = kind
        self._fake("s-10", "after_cancel")
        self._fake("s-20", "superseded")
        self._fake(next(ids), "unexpected", too_soon=7)
        self.expected["late"] = "late"
        ledger.send("late", M + 2 * HOUR + MINUTE, ("at", M + 2 * HOUR + MINUTE))
        ledger.run(M + 2 * HOUR + 10 * MINUTE)
        self.expected["forgotten"] = "ignored"
        # A command that a lane passed over: those after it had their effect.
        ledger.send("forgotten", M + 2 * HOUR + 11 * MINUTE, ("at", M + 2 * HOUR + 12 * MINUTE))
        ledger.forget()
        ledger.send("last", M + 2 * HOUR + 12 * MINUTE, ("after", 0), partition=ledger.lane_of("forgotten"))
        ledger.run(M + 2 * HOUR + 12 * MINUTE)

    def _append(self, record: Record) -> None:
        self._ledger.append(record.topic, 0, record.timestamp, record.key, record.value, record.headers)

    def _change(self, record: Record) -> None:
        self._ledger.change(record, record)

    def _fake(self, id: str, kind: str, too_soon: int = 0) -> None:
        """Add a firing of a schedule's first version, due at its first time or so many ms before."""
        like = next(iter(self._firings.values()))
        due = M + HOUR + int(id.removeprefix("s-")) - too_soon
        for name, value in {"id": id, "due": due, "fired-at": due}.items():
            like = like.with_header(f"schedule-{name}", str(value).encode())
        like = like.with_header("schedule-source-partition", b"%d" % self._ledger.lane_of(id))
        self._append(replace(like, timestamp=due))
        self.expected[id] = kind


@pytest.mark.soak
def test_each_kind_of_fault_is_found_among_very_many_firings_and_within_a_range(
    ledger: Ledger, audit: Audit, tmp_path: Path, request: pytest.FixtureRequest, spark: SparkSession
) -> None:
    fill(ledger, request.config.getoption("--audited"))
    planted = Planted(ledger)

    summary = audit(ledger, page=str(tmp_path / "audit.html"), faults=str(tmp_path / "faults"))

    assert {fault.id: fault.kind for fault in summary.faults} == planted.expected
    assert len(summary.faults) == len(planted.expected)
    assert summary.failed
    assert summary.unjudged == 0
    for fault in summary.faults:
        record = ledger.records[fault.topic, fault.partition][fault.offset]
        assert fault.id.encode() in (record.key or b"") + (record.header("schedule-id") or b"")
    page = (tmp_path / "audit.html").read_text()
    assert all(f"default/{id}" in page for id in planted.expected)
    assert "://" not in page, "it needs no network"
    assert spark.read.parquet(str(tmp_path / "faults")).count() == len(planted.expected)

    replayed = audit(ledger, faults=str(tmp_path / "faults of a replay"), replays_all=True)

    assert replayed == summary
    tables = [spark.read.parquet(str(tmp_path / name)) for name in ("faults", "faults of a replay")]
    assert tables[0].exceptAll(tables[1]).isEmpty()

    of_range = audit(ledger, start=M + 2 * HOUR + 5 * MINUTE, end=M + 2 * HOUR + 11 * MINUTE)

    assert [(fault.id, fault.kind) for fault in of_range.faults] == [("late", "late"), ("forgotten", "ignored")]


@pytest.mark.usefixtures("compiled_plans")
@pytest.mark.soak
def test_a_clean_application_has_no_faults_and_its_series_are_what_spark_makes_of_them(
    ledger: Ledger, audit: Audit
) -> None:
    elsewhere = (ledger.lane_of("passed on") + 1) % ledger.partitions
    ledger.send("passed on", M + MINUTE // 2, ("every", "10m"), ("end", M + 2 * HOUR), partition=elsewhere)
    reject_for_many(ledger)
    fill(ledger, 200)
    ledger.send("waiting", M + 2 * HOUR + 2 * MINUTE, ("after", "1m"))  # no worker has come to it
    summary = audit(ledger)
    assert (list(summary.faults), summary.failed, summary.unjudged, summary.waiting) == ([], False, 0, 1)
    assert summary.expanded_by_spark == 4 + 2, "the one that was passed on, in both lanes"
    assert summary.firings == len(ledger.of(ledger.target))
    assert json.loads(json.dumps(dataclasses.asdict(summary)))["lateness_ms"]["max"] <= MINUTE


@pytest.mark.soak
@pytest.mark.every_case
def test_changes_of_tenants_are_no_evidence_and_tell_nothing_of_the_time(
    ledger: Ledger, audit: Audit, spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    fill(ledger, 50)
    ledger.send("pending", M + 2 * HOUR, ("at", M + 3 * HOUR))
    ledger.run(M + 2 * HOUR + MINUTE)
    for at in (M, M + HOUR, M + 5 * HOUR):  # the last one by a clock that is ahead of the workers'
        key, value = change_record("default", "tenant default: active -> paused", Requester("ops", ""), at)
        ledger.append(ledger.names.history, 0, at, key, value, [])
    firings = len(ledger.of(ledger.target))
    summary = audit(ledger, end=M + 2 * HOUR + 2 * MINUTE)
    assert (list(summary.faults), summary.unjudged, summary.firings) == ([], 0, firings)
    lake = str(tmp_path / "lake")
    archive.main(spark, archive.ArchiveOptions(Cluster(kafka.bootstrap_servers), sorted(ledger.topics), lake))
    summary = audit(ledger, archive=lake)
    assert (list(summary.faults), summary.unjudged, summary.firings) == ([], 0, firings)


@pytest.mark.soak
def test_spark_finds_a_series_that_history_has_wrong_by_itself(ledger: Ledger, audit: Audit) -> None:
    """As if the engine had the series wrong: commands say another interval than lanes went by."""
    fill(ledger, 100)
    (record,) = (each for each in ledger.of(ledger.names.commands) if each.key == b"rate-1")
    ledger.change(record, record.with_header("schedule-every", b"20m"))
    summary = audit(ledger)
    told = [fault for fault in summary.faults if fault.id == "rate-1" and "sequence" in fault.detail]
    assert len(told) == 6
    assert {fault.kind for fault in told} == {"unexpected"}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("partitions", "grown", "kinds"),
    by_day(1, [(2, 3, {"unexpected", "missing"}), (3, 3, {"unexpected"}), (3, 8, {"unexpected"})]),
    ids=["more partitions", "as many partitions", "partitions added since"],
)
def test_an_application_that_began_with_an_import_is_judged_by_the_table_that_was_imported(
    partitions: int,
    grown: int,
    kinds: set[str],
    ledger: Ledger,
    audit: Audit,
    spark: SparkSession,
    kafka: Kafka,
    prefix: str,
    tmp_path: Path,
) -> None:
    old = Ledger(f"{prefix}-old", partitions=partitions)
    for number in range(10):
        old.send(f"s-{number}", M, ("at", M + (1 + number % 2) * HOUR))
    old.send("rate", M, ("every", "10m"), ("end", M + 2 * HOUR))
    old.run(M)
    old.run_until(M + HOUR)
    old.produce(kafka.bootstrap_servers)
    table, names = str(tmp_path / "schedules.parquet"), old.names
    cluster, topics = Cluster(kafka.bootstrap_servers), (names.commands,)
    options = export.ExportOptions(table=table, cluster=cluster, app_id=names.app_id, commands_topics=topics)
    assert export.main(spark, options).schedules == 6
    ledger.adopt(adopted(entry, {old.target: ledger.target}) for entry in old.pending())
    ledger.send("s-1", M + HOUR + MINUTE, ("command", "cancel"), value=None)
    ledger.run(M + HOUR + MINUTE)
    ledger.run_until(M + 2 * HOUR)

    assert set(audit(ledger).fault_counts) == kinds, "what nobody asked for"
    if grown > ledger.partitions:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        add_partitions(admin, ledger.names.commands, grown)
    summary = audit(ledger, imported=Imported(table, topics={old.target: ledger.target}))

    assert (list(summary.faults), summary.unjudged, summary.schedules) == ([], 0, 6)
    assert summary.firings == len(ledger.of(ledger.target)) == 4 + 6


TOLD: dict[str, tuple[list[int], list[tuple[int, str]], list[int]]] = {
    "of nothing": ([4], [], [4]),
    "where it is taken to be": ([4], [(4, "fired")], [4]),
    "elsewhere": ([4], [(0, "fired"), (0, "finished")], [0]),
    "elsewhere, with refusals before": ([4], [(0, "rejected"), (0, "fired")], [0]),
    "elsewhere first": ([4], [(0, "fired"), (4, "fired")], [4]),
    "of a command that was passed on": ([4], [(0, "moved")], [4]),
    "elsewhere, by a command": ([4], [(0, "scheduled"), (0, "fired")], [4]),
    "elsewhere, and later by a command": ([4], [(0, "fired"), (0, "scheduled")], [0]),
    "in two other places": ([4], [(0, "fired"), (1, "fired")], [4]),
    "of one of two": ([0, 1], [(0, "fired")], [0, 1]),
}
"""Lanes that an import is taken to have put an id into, what history tells of it in which lane, and where it was."""


def test_an_imported_schedule_was_where_history_tells_of_it(spark: SparkSession) -> None:
    table: list[tuple[Any, ...]] = []
    for id, (lanes, lines, _) in TOLD.items():
        table += [("default", id, lane, IMPORTED, "topic", lane, 0, 0, None, b"", []) for lane in lanes]
        for offset, (lane, event) in enumerate(lines):
            value = json.dumps({"event": event}).encode()
            table.append(("default", id, lane, HISTORY, "topic", 0, offset, 0, None, value, []))
    evidence = spark.createDataFrame(table, SCHEMA)
    found = where_told(evidence.where(f"kind = {IMPORTED}"), evidence.where(f"kind = {HISTORY}"))
    assert found.columns == evidence.columns
    places: dict[str, list[int]] = {id: [] for id in TOLD}
    for row in sorted(found.collect(), key=lambda row: row.lane):
        places[row.id].append(row.lane)
        assert row.partition == row.lane
    assert places == {id: expected for id, (_, _, expected) in TOLD.items()}


def test_a_wrong_application_id_is_told(spark: SparkSession, kafka: Kafka, prefix: str) -> None:
    with pytest.raises(JobError, match=f"there is no topic {prefix}-commands"):
        main(spark, options_for(kafka, TopicNames(prefix)))


SECONDS_EACH = 1 / 5_000
"""At which schedules of a long run are due, and SENDING_EACH is how long sending one takes at most."""
SENDING_EACH = 1 / 10_000


@pytest.mark.soak
@pytest.mark.every_case
async def test_schedules_that_moved_to_partitions_that_were_added_are_no_faults(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="2")
    settings, names, count = application.settings, application.settings.topics, 40
    start = SystemClock().now()
    try:
        worker = await application.start_worker()
        async with application.client() as client:
            requests: list[ScheduleRequest] = [
                {"id": f"s-{number}", "payload": b"x", "topic": application.target, "at": start + 3_600_000}
                for number in range(count)
            ]
            await client.schedule_many(requests, wait=True)
            await asyncio.to_thread(grow, settings, names.commands, 5)
            assert await asyncio.to_thread(moved, settings, names.commands, 5, 120.0, lambda _: None)
            for number in range(0, count, 4):
                await client.cancel(f"s-{number}", wait=True)
            fired = [f"s-{number}" for number in range(count) if number % 4]
            for id in fired:
                await client.reschedule(id, at=SystemClock().now(), wait=True)
        await read_until(kafka.bootstrap_servers, [application.target], lambda records: len(records) == len(fired))
        has_moved = sum(lane["moved"] for lane in (await worker.get("/info"))["lanes"])
        assert await worker.end() == 0
        options: dict[str, Any] = {"end": SystemClock().now(), "clock": SystemClock(), "patience": HOUR}
        summary = main(spark, options_for(kafka, names, **options))
    finally:
        application.close()
    assert (list(summary.faults), summary.unjudged, summary.waiting) == ([], 0, 0)
    assert summary.moved >= has_moved > 0


@pytest.mark.chaos
@pytest.mark.soak
async def test_a_run_of_real_workers_with_kills_is_clean(
    kafka: Kafka, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count, kills = request.config.getoption("--audited"), request.config.getoption("--audit-kills")
    application = await Application.create(kafka.bootstrap_servers, tmp_path)
    workers = [application.new_worker(), application.new_worker()]
    for worker in workers:
        worker.start()
    await asyncio.gather(*(worker.ready() for worker in workers))
    start = SystemClock().now() + 2_000 + int(1_000 * count * SENDING_EACH)
    spread = max(8_000, int(1_000 * count * SECONDS_EACH))
    cancelled = range(0, count, 20)

    def request_of(number: int) -> ScheduleRequest:
        at = start + number * spread // count if number % 20 else start + 24 * HOUR
        return {"id": f"s-{number}", "payload": b"%d" % number, "topic": application.target, "at": at}

    async with application.client() as client:
        await client.schedule_many(map(request_of, range(count)))
        for number in range(5):
            await client.schedule(f"rate-{number}", b"rate", topic=application.target, every="1s", max_firings=6)
        for first in range(0, len(cancelled), 1_000):
            await asyncio.gather(*(client.cancel(f"s-{number}") for number in cancelled[first : first + 1_000]))
    expected = count - len(cancelled) + 30
    patience = 120 + count / 1_000
    marks = [expected * number // (kills + 1) for number in range(1, kills + 1)]
    async for mark in marks_passed(application.bootstrap_servers, application.target, [*marks, expected], patience):
        if mark < expected:
            workers[0].kill()
            workers[0].start()
            workers.reverse()
    history = application.settings.topics.history
    async for _ in marks_passed(application.bootstrap_servers, history, [2 * expected], patience):
        pass

    options: dict[str, Any] = {"end": SystemClock().now(), "clock": SystemClock(), "patience": 24 * HOUR}
    summary = main(spark, options_for(kafka, application.settings.topics, **options))

    application.close()
    assert (list(summary.faults), summary.unjudged, summary.waiting) == ([], 0, 0)
    assert (summary.firings, summary.schedules, summary.expanded_by_spark) == (expected, count + 5, 5)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"start": M + 4 * HOUR}, "would begin at 2026-01-01T04:00:00.000Z .* and judge nothing"),
        ({"targets": ("no-such-topic",)}, "topic no-such-topic cannot be used"),
    ],
)
def test_an_audit_that_would_judge_nothing_is_an_error(
    ledger: Ledger, audit: Audit, options: dict[str, Any], why: str
) -> None:
    ledger.run(M)
    with pytest.raises(JobError, match=why):
        audit(ledger, **options)
