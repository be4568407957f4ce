"""A partition without a lane: real cycles over a table, with a changelog to rebuild it from.

Commands and instants go in; what each cycle would commit can be read back. There is no broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from aiokafka.structs import ConsumerRecord

from light_scheduler.engine import CommandRates, FiringRules, Limits, RateDemand
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.lanes.context.lane_context import LaneContext, OriginKey
from light_scheduler.lanes.context.memory import LaneMemory
from light_scheduler.lanes.context.overdue_totals import OverdueTotals
from light_scheduler.lanes.context.probe import LaneProbe
from light_scheduler.lanes.context.queue_ends import QueueEnds
from light_scheduler.lanes.context.rate_post import NoPost, RatePost
from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.lanes.cycle.budget import TurnBudget
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.lanes.cycle.steps import CycleSize, CycleSteps
from light_scheduler.lanes.failures.condemned_work import NOTHING_CONDEMNED
from light_scheduler.lanes.failures.failing_work_search import EVERYTHING, Work
from light_scheduler.lanes.failures.restrictions import Restrictions
from light_scheduler.lanes.growing.handover import HandoverPass
from light_scheduler.lanes.input.readable import CanRead, all_can_be_read
from light_scheduler.model import DeadLetter, Headers, HistoryEvent, Result, TopicNames
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.tables.due_scan import Waits
from light_scheduler.tables.store import Store
from light_scheduler.wire import decode_dead_letter, decode_history, decode_result, dialect_named
from light_scheduler.wire.schemas import Schemas
from light_scheduler.wire.state import CommandsLog

from .arriving import Arriving
from .known_topics import KnownTopics
from .producing import FakeProducer

AT = 1_767_225_600_000
HOUR = 3_600_000
MEGABYTE = 1_048_588
PARTITION = 0
"""The only one of its topic, unless a test has it otherwise: every key belongs here."""
NAMES = TopicNames("app")
SECRET = b"of the workers"
CHANGELOG = "app-schedules-changelog"

TO_REMINDERS: Headers = [("schedule-target-topic", b"reminders")]
ANSWER: Headers = [("schedule-reply-topic", b"answers"), ("schedule-correlation-id", b"\xff\x01")]


def topic(partitions: int, max_message_bytes: int = MEGABYTE, refusal: str | None = None) -> TargetTopic:
    return TargetTopic(partitions, max_message_bytes, refusal, 0.0)


def command(
    *headers: tuple[str, bytes | None],
    key: bytes | None = b"a",
    value: bytes | None = b"payload",
    offset: int = 42,
    partition: int = PARTITION,
    timestamp: int = AT,
) -> ConsumerRecord:
    return ConsumerRecord(NAMES.commands, partition, offset, timestamp, 0, key, value, None, -1, -1, headers)


def due_at(due: int) -> tuple[str, bytes]:
    return "schedule-at", b"%d" % due


class Kept(NamedTuple):
    """A record of the changelog."""

    offset: int
    key: bytes
    value: bytes | None


class Partition:
    """A partition's table, and the topics that its cycles write to; it is number `number` of `of`."""

    def __init__(
        self,
        producer: FakeProducer,
        store: Store | None = None,
        *,
        number: int = PARTITION,
        of: int = 1,
        dialect: str = "native",
        schemas: Schemas | None = None,
    ) -> None:
        self.producer = producer
        self.dialect = dialect_named(dialect, schemas)
        self.number = number
        self.table = ScheduleTable(store or MemoryStore())
        self.changelog: list[Kept] = []
        self.topics = KnownTopics(
            {
                NAMES.commands: topic(of),
                CHANGELOG: topic(of),
                NAMES.history: topic(3),
                NAMES.dead_letters: topic(2),
                "reminders": topic(4),
                "answers": topic(7),
                "missing": topic(0, 0, "topic missing does not exist"),
            }
        )
        self.rules = FiringRules(retries=0)
        self.limits = Limits(1_000_000, 512, frozenset({NAMES.commands, CHANGELOG, NAMES.history}))
        self.tenants = FixedTenancy()
        self.command_rates = CommandRates()
        self.demand = RateDemand()
        self.rate_post: RatePost = NoPost()
        self.lost_results = 0
        self.most_bulk = 1_000
        self.max_bytes = 1 << 30
        self.kinds = EVERYTHING
        self.plain_paths = True
        self.can_read: CanRead = all_can_be_read
        self.partitionings: Any = None
        self.probe = LaneProbe()
        self.queue_ends = QueueEnds()
        self.overdue_totals = OverdueTotals()
        self.handover: HandoverPass | None = None
        self.steps = CycleSteps()
        self.left_alone: frozenset[int] = frozenset()
        """Other partitions that are not asked for room or tokens, and not answered."""
        self.away: frozenset[int] = frozenset()
        """Partitions of the commands topic that take nothing."""
        self.follows_rules = False
        """Whether the next cycle is the first one after a change of rules."""

    @property
    def context(self) -> LaneContext:
        return LaneContext(
            NAMES.commands,
            self.number,
            self.dialect,
            NAMES,
            self.limits,
            self.rules,
            self.topics,
            secret=lambda: SECRET,
            rate_post=self.rate_post,
            tenants=self.tenants,
            plain_paths=self.plain_paths,
            partitionings=self.partitionings,
            memory=LaneMemory(self.command_rates, self.demand, self.queue_ends, self.overdue_totals, self.probe),
        )

    async def run(
        self,
        *commands: ConsumerRecord,
        now: int = AT,
        refusals: dict[OriginKey, str] | None = None,
        applies: bool = True,
        limit: int = 1_000,
        allowed: Mapping[str, int] = {},
        condemned: Mapping[Work, str] = NOTHING_CONDEMNED,
        waits: Waits | None = None,
        holding: Any = None,
        is_behind: bool = False,
        in_another_log: bool = False,
        commits: bool = True,
    ) -> Cycle:
        """Run one cycle as a lane does, and forget what cycles before it sent.

        Without `applies` it is committed and never reaches the table: what a crash between the two leaves behind.
        With a `handover`, schedules are handed over. `waits` is asked after everything due was taken: a target that was
        lost in between. With `is_behind` the commands are of a backlog. A cycle is `in_another_log` after the topic was
        created again. Unless it `commits`, nothing came of it.
        """
        self.producer.records.clear()
        overlay, batches = Overlay(self.table), self.context.new_batches(now)
        restrictions = Restrictions(condemned, self.can_read, self.left_alone | self.away, away=self.away)
        cycle = Cycle(self.context, overlay, batches, now, restrictions)
        if in_another_log:
            cycle.moving.forget_progress()
        if self.follows_rules:
            cycle.room_lending.follow_rules()
        self.follows_rules = False
        arriving = Arriving([*commands], is_behind)
        size = CycleSize(limit, self.max_bytes, self.most_bulk, self.kinds)
        self.steps.begin(arriving)
        taken = self.steps.take(cycle, arriving, size)
        due = overlay.due(now, limit, self.max_bytes, allowed=allowed.get)
        self.lost_results = self.steps.fire(
            cycle, due, TurnBudget(limit, self.max_bytes), refusals=refusals, waits=waits, holding=holding
        )
        slice = None
        if self.handover is not None and self.handover.is_due(cycle.moving, now):
            slice = self.handover.advance(cycle.moving, overlay, limit)
        cycle.keep_bulk()
        if not commits:
            return cycle
        await batches.send(self.producer)
        self._keep()
        self.steps.commit(cycle, taken, self.command_rates)
        if applies:
            overlay.apply(changelog_offset=self._end, complete_at=now)
        if self.handover is not None and slice is not None:
            self.handover.learn(slice, now)
        return cycle

    def restart(self, store: Store, *, now: int) -> int:
        """Go on with what a store holds, brought up to date from the changelog; return how many records that took."""
        self.table = ScheduleTable(store)
        overlay = Overlay(self.table)
        missing = [record for record in self.changelog if record.offset >= self.table.checkpoint.changelog_offset]
        for record in missing:
            overlay.replay(record.key, record.value)
        overlay.apply(changelog_offset=self._end, complete_at=now)
        return len(missing)

    def read_from(self, topic_id: str, of: int) -> None:
        """Have commands come from the topic with this id, of so many partitions, as if it was just created (again)."""
        known = self.table.checkpoint.commands_log
        log = CommandsLog(topic_id, NAMES.app_id, NAMES.commands, 0 if known is None else known.number + 1)
        self.table.checkpoint = msgspec.structs.replace(self.table.checkpoint, commands_log=log)
        self.topics[NAMES.commands] = topic(of)

    def compact(self) -> None:
        """Keep the last record of each key of the changelog, tombstones included."""
        last = {record.key: record.offset for record in self.changelog}
        self.changelog = [record for record in self.changelog if record.offset == last[record.key]]

    def sent(self, topic: str) -> list[Any]:
        found: list[Any] = self.producer.to(topic)
        return found

    @property
    def wakes_at(self) -> int | None:
        """When the next schedule wakes."""
        return Overlay(self.table).due(-1, 0, 1).next_due

    @property
    def history(self) -> list[HistoryEvent]:
        return [decode_history(record.value) for record in self.sent(NAMES.history)]

    @property
    def results(self) -> list[Result]:
        return [decode_result(record.value) for record in self.sent("answers")]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        return [decode_dead_letter(record)[0] for record in self.sent(NAMES.dead_letters)]

    @property
    def _end(self) -> int:
        return self.changelog[-1].offset + 1 if self.changelog else 0

    def _keep(self) -> None:
        for offset, record in enumerate(self.sent(CHANGELOG), self._end):
            self.changelog.append(Kept(offset, record.key, record.value))
