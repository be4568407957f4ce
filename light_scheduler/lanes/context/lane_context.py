"""The context that the cycles of a lane share (topic, settings, targets, rules), and keys of refused records."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache, cached_property

from light_scheduler.engine import FiringRates, FiringRules, Limits
from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.refusals import UserRecord
from light_scheduler.kafka.target_lookup import TargetLookup, TopicFacts
from light_scheduler.model import EQUAL_SHARES, BulkCommand, Entry, Schedule, Shares, TopicNames
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.place import Place
from light_scheduler.model.rate_lending import RatePart
from light_scheduler.wire import CommandRecord, Dialect, partition_for
from light_scheduler.wire.lane_marks import new_token
from light_scheduler.wire.probe import is_of_probe
from light_scheduler.wire.state import identity

from .memory import LaneMemory
from .partitionings import Partitionings
from .rate_post import NoPost, RatePost
from .shared import SharedByLanes
from .staging import NO_STAGING, Staging
from .tenancy import FixedTenancy, Tenancy

OriginKey = tuple[str, str | None, int | None, int]

Refusals = dict[OriginKey, str]
"""Records that a user's topic refuses: key -> reason."""


def origin_key(origin: UserRecord) -> OriginKey:
    """Return the key of a schedule's next firing or of a command's answer, the same in every retry of a cycle."""
    if isinstance(origin, Entry):
        schedule = origin.schedule  # another version may be due at the same instant, and be acceptable
        return schedule.tenant, schedule.id, origin.progress.due, schedule.version
    return "", None, origin.offset, -1 if origin.partition is None else origin.partition


@dataclass(frozen=True)
class CycleContext:
    """The context that the cycles of a partition share. Its topics have been resolved."""

    commands_topic: str
    partition: int
    dialect: Dialect
    names: TopicNames
    limits: Limits
    rules: FiringRules
    targets: TopicFacts
    shares: Shares = EQUAL_SHARES
    staging: Staging = NO_STAGING
    new_token: Callable[[], str] = new_token
    secret: Callable[[], bytes | None] = lambda: None
    """Returns the key with which workers sign the sender of a command over HTTP."""
    rate_post: RatePost = field(default_factory=NoPost)
    """Reaches lanes that share rates, but no log, with this one."""
    tenants: Tenancy = field(default_factory=FixedTenancy)

    plain_paths: bool = True
    """Whether plain commands and firings take the fast path, which has the same result as the general one."""

    partitionings: Partitionings | None = None
    """The number of partitions that keys are hashed over. None: the current number, as the topic never grows."""

    memory: LaneMemory = field(default_factory=LaneMemory)
    shared: SharedByLanes = field(default_factory=SharedByLanes)

    @property
    def partitioning(self) -> Partitioning:
        """The partitioning of keys in the commands topic, which must have been resolved."""
        if self.partitionings is not None and (known := self.partitionings.of(self.commands_topic)) is not None:
            return known
        return _settled(self.targets[self.commands_topic].partitions)

    @property
    def rate_part(self) -> RatePart:
        """The part of each rate that this lane earns. Commands topics have equal parts."""
        part = self.partitioning.rate_part(self.partition)
        return part._replace(share=part.share / self.rate_post.topics)

    @property
    def writes_rates(self) -> bool:
        """Whether lanes of the topic lend each other tokens through its log."""
        return self.dialect.forwards and bool(self.partitioning.secret)

    @cached_property
    def firing_rates(self) -> FiringRates:
        """The caps of this lane's firings."""
        return FiringRates(self.shares, self.memory.demand)

    @cached_property
    def changelog(self) -> tuple[str, int]:
        """The topic and partition that state is written to."""
        return self.names.changelog(self.commands_topic), self.partition

    def own_place(self, topic: str) -> tuple[str, int]:
        """Return the one partition of an own topic that the lane writes to.

        A single one keeps the order, and transactions small in partitions.
        """
        return topic, self.partition % self.targets[topic].partitions

    def new_batches(self, timestamp: int, one_by_one: Collection[str] = ()) -> RecordBatches:
        """Return empty batches for resolved topics. `timestamp` (UTC epoch ms) is that of their records."""
        return RecordBatches(
            timestamp, one_by_one, lambda topic: self.targets[topic].max_message_bytes, {self.commands_topic}
        )

    def place_of(self, schedule: Schedule) -> Place:
        """Return the topic and partition of a schedule's firings. The topic must have been resolved."""
        target = schedule.target
        if target.partition is not None:
            return target.topic, target.partition
        key = target.key if target.partition_key is None else target.partition_key
        partitions = self.targets[target.topic].partitions
        return target.topic, partition_for(schedule.id.encode() if key is None else key, partitions)

    @cached_property
    def own_topics(self) -> frozenset[str]:
        """The scheduler's topics that any cycle may write to."""
        return frozenset((self.commands_topic, self.changelog[0], self.names.history, self.names.dead_letters))

    def concerns(self, record: CommandRecord, schedules: Collection[bytes]) -> bool:
        """Return whether a command may change one of these schedules, given by identity (`wire.state`).

        Return False only if the command is certain to be about another schedule, or is a probe.
        """
        if is_of_probe(record):
            return False
        try:
            command = self.dialect.decode(record)
        except InvalidCommand:
            return True
        if isinstance(command, BulkCommand) and command.selection is not None:
            return True
        return identity(command.tenant, command.id) in schedules


@dataclass(frozen=True)
class LaneContext(CycleContext):
    """The context of a lane. It also resolves topics for the cycles."""

    targets: TargetLookup


@cache
def _settled(partitions: int) -> Partitioning:
    return Partitioning(partitions)
