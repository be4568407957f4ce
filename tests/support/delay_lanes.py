"""A delay lane beside brokers that fail, refuse and forget, without any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError

from light_scheduler.clock import SettableClock
from light_scheduler.delays.lane import DelayLane, DelayServices
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.fetching import Command
from light_scheduler.kafka.refusals import RecordsRefusedError
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.model import DelayRule, TopicNames
from light_scheduler.model.lane_state import LaneState

from .known_topics import KnownTopics
from .producing import FakeProducer, Sent

RULE = DelayRule("later", "orders", 60_000, "reminders")
NOW = 1_767_225_600_000


class AllTopics(KnownTopics):
    """What is known of topics: they are all there, unless `outages` tells otherwise."""

    def __init__(self) -> None:
        super().__init__({})

    def __missing__(self, topic: str) -> TargetTopic:
        return TargetTopic(1, 1_000_000, None, 0.0)


class Outage:
    """A broker that no producer reaches; and a group that gives the partition back at the `given_at`-th question."""

    transaction_timeout_ms = 10_000

    def __init__(self, given_at: int) -> None:
        self.steps: list[str] = []
        self.pauses: list[float] = []
        self.topics = AllTopics()
        self._given_at = given_at

    def producer(self, transactional_id: str) -> Any:
        self.steps.append("fence")
        raise KafkaConnectionError(transactional_id)

    async def confirm(self, tp: TopicPartition) -> bool:
        self.steps.append("confirm")
        await asyncio.sleep(0)
        return self.steps.count("confirm") >= self._given_at

    def lane(self) -> DelayLane:
        unused = cast(Any, None)
        services = DelayServices(
            connection="127.0.0.1:1",
            names=TopicNames("app"),
            clients=cast(Any, self),
            longest_wait_ms=1_000,
            clock=SettableClock(NOW),
            targets=self.topics,
            positions=unused,
            topic_ids=unused,
            confirm=self.confirm,
            fail=unused,
        )
        lane = DelayLane(RULE, TopicPartition("orders", 0), services)

        async def pause(seconds: float) -> None:
            self.steps.append("pause")
            self.pauses.append(seconds)
            await asyncio.sleep(0)

        lane._supervision.pause = pause  # type: ignore[method-assign]  # so that no test waits
        return lane


class Broker(Outage):
    """A broker of a hundred thousand due records, on which a transaction has a reason to fail, or none."""

    def __init__(self, fails: Callable[[int], Exception | None], key: bytes | None = b"k") -> None:
        super().__init__(given_at=0)
        self._key = key
        self.headers: Any = []
        self.sizes: list[int] = []
        self.letters = self.letters_sent = 0
        self.letter: Sent | None = None
        self._fails = fails
        self._next = 0

    @property
    def position(self) -> int:
        return self._next

    def lane(self) -> DelayLane:
        lane = super().lane()

        async def take_over() -> Any:
            lane._move(LaneState.FENCED)
            lane._move(LaneState.RESTORING)
            lane._move(LaneState.RUNNING)
            self._next = lane._position or 0
            return self, self

        lane._take_over = take_over  # type: ignore[method-assign]
        return lane

    async def read(self, _timeout_s: float) -> list[Command]:
        await asyncio.sleep(0)
        first, self._next = self._next, min(self._next + 10_000, 100_000)
        return [Command(0, offset, 0, self._key, b"v", self.headers) for offset in range(first, self._next)]

    async def commit(self, batches: RecordBatches, _group: str, _offsets: object, **_: object) -> None:
        await asyncio.sleep(0)
        sent = FakeProducer()
        await batches.send(cast(Any, sent))
        letters = len(sent.to("app-dead-letters"))
        self.letter = next(iter(sent.to("app-dead-letters")), self.letter)
        size = len(sent.to(RULE.target)) + letters
        self.letters_sent += letters
        self.sizes.append(size)
        if (error := self._fails(size)) is not None:
            raise error
        self.letters += letters


async def run(broker: Broker, until: Callable[[], bool]) -> DelayLane:
    lane = broker.lane()
    lane.start(None)
    async with asyncio.timeout(30):
        while not until():
            await asyncio.sleep(0)
    await lane.close()
    return lane


def refusal(cause: KafkaError) -> RecordsRefusedError:
    return RecordsRefusedError(RULE.target, cause, [])
