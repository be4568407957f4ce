"""What a lane remembers of targets, with what surrounds it: outages, topics, and a producer that only settles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from typing import Any

from aiokafka.errors import KafkaError

from light_scheduler.errors import LaneError
from light_scheduler.kafka.batches import Written
from light_scheduler.kafka.half_open import MANY_REFUSED
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.kafka.topic_facts import TargetTopic, refused
from light_scheduler.lanes.context.lane_context import Refusals
from light_scheduler.lanes.failures.attempt import Attempt
from light_scheduler.lanes.failures.held_firings import Holding
from light_scheduler.lanes.failures.markers import Markers
from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.model.place import Place
from light_scheduler.tables import MemoryStore, ScheduleTable
from light_scheduler.tables.due_scan import Waits

from .known_topics import KnownTopics
from .partition import AT, Partition
from .producing import FakeProducer

A, B = ("reminders", 0), ("reminders", 1)
NO_LEADER = "it has no leader"


class Settling:
    """Takes the place of a lane's producer; `settled` is what it has ended, `tried` what it was asked to end.

    It fails with the error of the first of its places that has one in `errors`.
    """

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.continuity: Any = None
        self.settled: list[tuple[list[Place], bool]] = []
        self.tried: list[list[Place]] = []
        self.errors: dict[Place, Exception] = {}

    async def settle(self, places: Collection[Place], *, commits: bool) -> None:
        self.tried.append(sorted(places))
        for place in sorted(places):
            if (error := self.errors.get(place)) is not None:
                raise error
        self.settled.append((sorted(places), commits))


class Topics(KnownTopics):
    """What is denied is refused from the next time on that it is resolved."""

    def __init__(self, known: KnownTopics, outages: Outages) -> None:
        super().__init__(known, outages)
        self.denied: dict[str, str] = {}
        self.forgotten: dict[str, TargetTopic] = {}
        self.doubted: set[str] = set()
        self._lifted: dict[str, TargetTopic] = {}

    async def resolve(self, topics: Set[str]) -> None:
        for topic in topics:
            if topic in self.forgotten:
                self[topic] = self.forgotten.pop(topic)
            if topic in self.denied:
                self._lifted.setdefault(topic, self[topic])
                self[topic] = refused(self.denied[topic], 0.0, is_denied=True)
            elif topic in self._lifted:
                self[topic] = self._lifted.pop(topic)

    def doubt(self, topics: Iterable[str]) -> None:
        self.doubted |= set(topics)

    def leave_alone(self, place: Place, reason: str, times: int | None = None) -> None:
        self.outages.suspect([place], reason, AT, times)


class HoldingLane:
    """A holding with what surrounds it; `ends` is where what is committed in places ends."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.outages = Outages(lambda: self.seconds)
        partition = Partition(FakeProducer())
        partition.topics = self.topics = Topics(partition.topics, self.outages)
        self.context = partition.context
        self.ends: dict[Place, int | KafkaError] = {}
        self.asked: list[list[Place]] = []
        self.open_from: dict[Place, int | Exception] = {}
        """Where what the lane has open begins, if not before any commit."""
        self.stuck: set[str] = set()
        self.marked: list[tuple[str, Place, bool]] = []
        markers = Markers(self.context, self._last_stable, self._may_be_open, self._mark, self._deny)
        self.holding = Holding(self.context, markers)
        self.refusals: Refusals = {}
        self.producer: Any = Settling("id")
        self.table = ScheduleTable(MemoryStore())

    async def leader_answers(self, place: Place) -> None:
        """Wait for the answer of a place's leader to what the lane has open there; at once, unless a test says so."""

    def fail(self, *places: Place, transactional_id: str = "id", written: Collection[Place] = ()) -> None:
        """Have a transaction be aborted after some of its places took what was sent."""
        taken = dict.fromkeys(written, Written(1, 1))
        self.holding.failed(Attempt(transactional_id, places=list(places), written=taken))

    async def _last_stable(self, places: list[Place]) -> dict[Place, int | KafkaError]:
        self.asked.append(sorted(places))
        return {place: self.ends[place] for place in places if place in self.ends}

    async def _may_be_open(self, _: str, place: Place, end: int) -> bool:
        await self.leader_answers(place)
        begin = self.open_from.get(place, -1)
        if isinstance(begin, Exception):
            raise begin
        return begin < end

    async def _mark(self, transactional_id: str, place: Place, commits: bool) -> None:
        if (error := self.producer.errors.get(place)) is not None:
            raise error
        if transactional_id in self.stuck:
            raise LaneError(f"{transactional_id} is stuck")
        self.marked.append((transactional_id, place, commits))

    def _deny(self, topic: str, error: KafkaError) -> None:
        self.topics.denied[topic] = repr(error)

    def waits(self) -> Waits | None:
        return self.holding.waits(self.refusals)

    def put_on_trial(self, place: Place = A, *origins: tuple[str, str]) -> None:
        """Have a place refuse one record after the other, those of tenants' schedules in turn; it may be tried."""
        for number in range(max(MANY_REFUSED, len(origins))):
            self.topics.trials.refused(place, origins[number : number + 1])

    def sent(self, *entries: Entry) -> list[str]:
        """Return the ids of what would be sent of what is due."""
        waits = self.waits()
        taken = [entry for entry in entries if waits is None or waits(entry) is None]
        waits = self.holding.sends(self.refusals, taken)
        return [entry.schedule.id for entry in taken if waits is None or waits(entry) is None]

    def waits_for(self, id: str, topic: str = "reminders", partition: int = 0) -> Place | None:
        """Return which place a schedule would wait for."""
        waits = self.waits()
        return None if waits is None else waits(entry(id, topic, partition))

    def lose_leader(self, *partitions: int, topic: str = "reminders") -> None:
        """Have partitions lose their leader, and the lane notice."""
        self.outages.observe(topic, dict.fromkeys(partitions, NO_LEADER), AT)
        self.waits()

    def come_back(self, topic: str = "reminders") -> None:
        self.outages.observe(topic, {}, AT)

    def leave_open(self, *partitions: int, topic: str = "reminders") -> None:
        """Have commits end in partitions that lose their leader, and are back without their markers."""
        self.holding.committed({(topic, partition): 5 for partition in partitions}, "id")
        self.lose_leader(*partitions, topic=topic)
        self.come_back(topic)
        self.ends |= {(topic, partition): 3 for partition in partitions}

    async def release(self) -> list[tuple[list[Place], bool]]:
        """Return what was settled by a release."""
        self.producer.settled.clear()
        self.producer.tried.clear()
        await self.holding.release(self.table, self.producer)
        settled: list[tuple[list[Place], bool]] = self.producer.settled
        return list(settled)


def entry(id: str, topic: str = "reminders", partition: int = 0, tenant: str = "acme") -> Entry:
    """A schedule that is due."""
    target = Target(topic, partition=partition)
    return Entry(Schedule(tenant, id, 1, Once(AT), target, b"x", [], 0, 7, AT), Progress(AT, 7))
