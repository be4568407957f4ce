"""The topics of an application as its lanes would write them: real cycles over tables in memory, without a broker.

Commands and instants go in; what is in the topics can be read back, changed, and produced to a real Kafka.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from msgspec import structs

from light_scheduler.engine import FiringRules, Limits
from light_scheduler.engine.command_rates import CommandRates
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.lanes.context.memory import LaneMemory
from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.lanes.cycle.budget import TurnBudget
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.lanes.cycle.steps import CycleSize, CycleSteps
from light_scheduler.lanes.failures.restrictions import Restrictions
from light_scheduler.model import DelayRule, Entry, Headers, Requester, TopicNames
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantState
from light_scheduler.pipeline.changelog import decoded
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.wire import change_record, delay_changes, dialect_named, partition_for
from light_scheduler.wire.events import CHANGES_PARTITION
from light_scheduler.wire.state import PROGRESS_KIND, SCHEDULE_KIND, encode_entry, identity_of
from light_scheduler.wire.tenant_changes import state_change

from .arriving import Arriving
from .ordering import ordered_producer
from .waiting import eventually_blocking

FLUSH_TIMEOUT_S = 120.0
BEGUN, HOUR = 1_793_491_200_000, 3_600_000
MOST = 5_000
"""Commands and firings of a cycle."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record, with the names that codecs use."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    by_sender: bool = True
    """Whether its sender has set its timestamp, and not the broker."""

    @property
    def timestampType(self) -> int:  # noqa: N802 (Spark's name for it)
        return 0 if self.by_sender else 1

    def header(self, name: str) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)

    def with_header(self, name: str, value: bytes) -> Record:
        """Return the record with another value of a header."""
        return replace(self, headers=[(key, value if key == name else old) for key, old in self.headers])


class _Batches:
    """What a cycle adds goes straight into the ledger."""

    def __init__(self, ledger: Ledger, now: int) -> None:
        self._ledger = ledger
        self._now = now

    def add(
        self,
        target: tuple[str, int],
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        *,
        limit: int = 0,
        origin: object = None,
    ) -> None:
        self.check(target[0], key, value, headers)
        self._ledger.append(*target, self._now, key, value, headers or [])

    def check(self, topic: str, _: object, value: bytes | None, *__: object) -> None:
        """Raise RecordTooLargeError for a value that the commands topic does not take; nothing else is too large."""
        most, size = self._ledger.most_bytes, len(value or b"")
        if topic == self._ledger.commands and most is not None and size > most:
            raise RecordTooLargeError(topic, size, most)


class Ledger:
    """`target` has four partitions; topics that do not exist refuse what is sent to them.

    One that is `beside` another has a commands topic of its own in the same application.
    """

    def __init__(
        self,
        app_id: str = "app",
        partitions: int = 2,
        rules: FiringRules | None = None,
        dialect: str = "native",
        beside: Ledger | None = None,
    ) -> None:
        self.names = TopicNames(app_id)
        self.target = f"{app_id}-target"
        self.commands = self.names.commands if beside is None else f"{app_id}-{dialect}"
        self.partitions = partitions
        self.dialect = dialect
        self.rules = rules or FiringRules()
        self.limits = Limits(1_000_000, 512, frozenset({self.names.history, self.names.dead_letters}))
        self.records: dict[tuple[str, int], list[Record]] = defaultdict(list) if beside is None else beside.records
        self._tables = [ScheduleTable(MemoryStore()) for _ in range(partitions)]
        self._taken = [0] * partitions
        self._steps = [CycleSteps() for _ in range(partitions)]
        self._command_rates = [CommandRates() for _ in range(partitions)]
        self.tenants = FixedTenancy()
        self.away: frozenset[int] = frozenset()
        """Partitions of the commands topic that take nothing from lanes."""
        self.most_bytes: int | None = None
        """The largest value that the commands topic takes from lanes; None: any."""
        self.delays: list[DelayRule] = []
        self.others: list[Ledger] = []
        self.further: dict[str, int] = {}
        """Topics that the application does not know of, and their partitions."""
        self.compacted: set[str] = set()
        """Topics that are produced with this policy."""
        if beside is not None:
            beside.others.append(self)
        self._topics = _Topics(self)
        self._produced: defaultdict[tuple[str, int], int] = defaultdict(int)

    @property
    def changelog(self) -> str:
        return self.names.changelog(self.commands)

    @property
    def topics(self) -> dict[str, int]:
        """The topics that an audit reads, and their partitions."""
        names = self.names
        own = {self.commands: self.partitions, names.history: 2, names.dead_letters: 1, self.target: 4}
        others = {other.commands: other.partitions for other in self.others}
        return {**own, **others, **dict.fromkeys((rule.target for rule in self.delays), 4), **self.further}

    def append(
        self, topic: str, partition: int, at: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Record:
        """Add a record to a topic."""
        log = self.records[topic, partition]
        record = Record(topic, partition, len(log), at, key, value, headers)
        log.append(record)
        return record

    def send(
        self,
        key: str,
        at: int,
        *headers: tuple[str, Any],
        value: bytes | None = b"payload",
        partition: int | None = None,
    ) -> Record:
        """Send a native command for the target, recorded at an instant; headers without their prefix.

        It goes to the partition of its key unless another one is given. With the target topic None it has none.
        """
        control: Headers = [(f"schedule-{name}", str(text).encode()) for name, text in headers if text is not None]
        name = dict(headers).get("command", "schedule")
        if name == "schedule" and value is not None and "target-topic" not in dict(headers):
            control.append(("schedule-target-topic", self.target.encode()))
        if name == "schedule":
            control += [("user", key.encode()), ("none", None)]
        if partition is None:
            partition = self.lane_of(key)
        return self.append(self.commands, partition, at, key.encode(), value, control)

    def stop(self, tenant: str, state: TenantState, at: int) -> None:
        """Pause, resume or delete a tenant, as `light-scheduler tenants` does."""
        before = self.tenants.book.get(tenant) or Tenant(name=tenant)
        key, value = change_record(tenant, state_change(tenant, before.state, state), Requester("ops", ""), at)
        self.append(self.names.history, CHANGES_PARTITION, at, key, value, [])
        others = [each for each in self.tenants.book.tenants.values() if each.name != tenant]
        self.tenants.book = TenantBook([*others, structs.replace(before, state=state)])

    def delay(self, rule: DelayRule, at: int | None = None) -> None:
        """Add a delay rule: at an instant, as `light-scheduler delays` does, or by the configuration."""
        self.delays.append(rule)
        if at is not None:
            key, value = change_record("", delay_changes.put(None, rule), Requester("ops", ""), at)
            self.append(self.names.history, CHANGES_PARTITION, at, key, value, [])

    def forward(self, until: int) -> None:
        """Forward what delay rules have to, if that is due by an instant and was not forwarded before."""
        for rule in self.delays:
            there = [record.headers for record in self.of(rule.target)]
            for record in self.of(rule.source):
                at = record.timestamp + rule.delay
                if at <= until and record.headers not in there:
                    self.append(rule.target, record.partition, at, record.key, record.value, record.headers)

    def run(self, now: int) -> None:
        """Let every lane carry out what was recorded by then, and what is due."""
        lanes = range(self.partitions)
        while sum(self.cycle(lane, now) for lane in lanes):  # each of them every time: they send each other commands
            pass

    def cycle(self, lane: int, now: int) -> bool:
        """Let one lane carry out what is there for it, once; return whether there was anything."""
        table, names = self._tables[lane], self.names
        overlay, batches = Overlay(table), _Batches(self, now)
        context = CycleContext(
            self.commands,
            lane,
            dialect_named(self.dialect),
            names,
            self.limits,
            self.rules,
            self._topics,
            tenants=self.tenants,
            memory=LaneMemory(self._command_rates[lane]),
        )
        cycle = Cycle(context, overlay, batches, now, Restrictions(away=self.away))  # type: ignore[arg-type]
        log, start = self.records[self.commands, lane], self._taken[lane]
        commands = list(takewhile(lambda record: record.timestamp <= now, log[start : start + MOST]))
        steps, size, arriving = self._steps[lane], CycleSize(MOST, 1 << 30, MOST), Arriving(commands)
        steps.begin(arriving)
        self._taken[lane] += len(commands)
        taken = steps.take(cycle, arriving, size)
        stopped = self.tenants.book.stopped
        due = overlay.due(now, size.most, size.max_bytes, None, lambda tenant: 0 if tenant in stopped else None)
        steps.fire(cycle, due, TurnBudget(size.most, size.max_bytes))
        cycle.keep_bulk()
        overlay.apply(changelog_offset=len(self.records[self.changelog, lane]), complete_at=now)
        steps.commit(cycle, taken, self._command_rates[lane])
        return bool(taken.read or due.entries or taken.is_bulk_at_work)

    def run_until(self, end: int) -> None:
        """Let the lanes wake whenever something is due, up to an instant."""
        while (wakes_at := min(self._wakes(), default=None)) is not None and wakes_at <= end:
            self.run(wakes_at)

    def pending(self) -> list[Entry]:
        """Return the schedules that are pending, as their changelog has them."""
        schedules: dict[bytes, bytes | None] = {}
        progress: dict[bytes, bytes | None] = {}
        for record in self.of(self.changelog):
            kind, identity = (record.key or b"")[:1], (record.key or b"")[1:]
            if kind == SCHEDULE_KIND:
                schedules[identity], progress[identity] = record.value, None
            elif kind == PROGRESS_KIND:
                progress[identity] = record.value
        return [decoded(schedule, progress[name]) for name, schedule in schedules.items() if schedule is not None]

    def adopt(self, entries: Iterable[Entry]) -> None:
        """Give lanes schedules to begin with, as an import does; each goes to the partition of its id."""
        for entry in entries:
            lane = self.lane_of(entry.schedule.id)
            overlay = Overlay(self._tables[lane])
            overlay.replay(SCHEDULE_KIND + identity_of(entry), encode_entry(entry))
            overlay.apply(changelog_offset=len(self.records[self.changelog, lane]), complete_at=0)

    def forget(self) -> None:
        """Let every lane pass over the commands that wait, as if it had lost them."""
        self._taken = [len(self.records[self.commands, lane]) for lane in range(self.partitions)]

    def lane_of(self, key: str) -> int:
        """Return the partition of a key."""
        return partition_for(key.encode(), self.partitions)

    def of(self, topic: str) -> list[Record]:
        """Return what is in a topic, partition by partition."""
        return [record for (name, _), log in sorted(self.records.items()) if name == topic for record in log]

    def remove(self, record: Record) -> None:
        """Take a record out, as if it had never been written."""
        log = self.records[record.topic, record.partition]
        log[:] = [
            replace(each, offset=offset) for offset, each in enumerate(each for each in log if each is not record)
        ]

    def change(self, record: Record, changed: Record) -> None:
        """Put a record in the place of another one."""
        self.records[record.topic, record.partition][record.offset] = changed

    def produce(self, bootstrap_servers: str) -> None:
        """Write all of it to a Kafka, with its timestamps, making the topics; later what has been added since."""
        topics = {**self.topics, self.changelog: self.partitions}
        if not self._produced:
            # A broker deletes by a record's own timestamp, and those of a ledger may be long past.
            forever, compacted = {"retention.ms": "-1"}, {"cleanup.policy": "compact"}
            new = [
                NewTopic(topic, partitions, 1, config=compacted if topic in self.compacted else forever)
                for topic, partitions in topics.items()
            ]
            admin = AdminClient({"bootstrap.servers": bootstrap_servers})
            for made in admin.create_topics(new).values():
                made.result(FLUSH_TIMEOUT_S)

            def are_known() -> bool:
                return topics.keys() <= admin.list_topics(timeout=FLUSH_TIMEOUT_S).topics.keys()

            eventually_blocking(are_known, within=FLUSH_TIMEOUT_S, what=f"the topics of {self.names.app_id}")
        producer = ordered_producer(bootstrap_servers)
        for place, log in ((place, log) for place, log in self.records.items() if place[0] in topics):
            before, self._produced[place] = self._produced[place], len(log)
            for record in log[before:]:
                while True:
                    try:
                        producer.produce(
                            record.topic,
                            record.value,
                            record.key,
                            partition=record.partition,
                            timestamp=record.timestamp,
                            headers=list(record.headers),
                        )
                        break
                    except BufferError:
                        producer.poll(0.1)
        assert producer.flush(FLUSH_TIMEOUT_S) == 0

    def _wakes(self) -> Iterator[int]:
        for lane, table in enumerate(self._tables):
            waiting = self.records[self.commands, lane][self._taken[lane] :]
            if waiting:
                yield waiting[0].timestamp
            next_due = Overlay(table).due(0, 1, 1).next_due
            if next_due is not None:
                yield next_due


def delivered_ledger(prefix: str, servers: str) -> Ledger:
    """Produce the topics of an application: 20 schedules that were delivered, and one far ahead."""
    ledger = Ledger(prefix)
    for number in range(20):
        ledger.send(f"s-{number}", BEGUN, ("at", BEGUN + HOUR + number))
    ledger.send("ahead", BEGUN, ("at", "2100-01-01T00:00:00Z"))
    ledger.run(BEGUN)
    ledger.run_until(BEGUN + 2 * HOUR)
    ledger.produce(servers)
    create_topic(servers, ledger.names.results, 1)
    create_topic(servers, ledger.names.loads, 1, configs={"cleanup.policy": "compact"})
    return ledger


class _Topics(dict[str, TargetTopic]):
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        super().__init__()

    def __missing__(self, name: str) -> TargetTopic:
        partitions = self._ledger.topics.get(name, 0 if name == "missing" else 2)
        refusal = None if partitions else f"topic {name} does not exist"
        return TargetTopic(partitions, 1 << 20, refusal, 0.0)
