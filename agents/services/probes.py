"""Sends probes to the commands topics of a worker's partitions, where the lanes execute them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from mode import Service

from light_scheduler.clock import Clock
from light_scheduler.connection import Address
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.lasting_producer import LastingProducer
from light_scheduler.lanes.lane import Lane
from light_scheduler.model.probe import ProbeMark
from light_scheduler.wire.probe import NO_VALUE, probe_headers

SEND_TIMEOUT_S = 10.0

LOOK_MS, LOOK_AT_MS = 1_000, 200
"""Partitions are checked once a second, `LOOK_AT_MS` after the full second. So probes run between firings that are due
at full seconds.
"""


class Probes(Service):
    """The service of a worker. `lanes` yields its lanes; each is probed once every `interval` (ms).

    `secret` returns the key with which workers sign their records; None if it is not known yet.
    """

    def __init__(
        self,
        lanes: Callable[[], Iterable[Lane]],
        connection: Address,
        interval: int,
        clock: Clock,
        secret: Callable[[], bytes | None],
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._lanes = lanes
        self._interval = interval
        self._clock = clock
        self._secret = secret
        self._producer = LastingProducer(connection)
        self._probed: dict[TopicPartition, int] = {}

    @Service.task
    async def _look(self) -> None:
        while not self.should_stop:
            await self.sleep(((LOOK_AT_MS - self._clock.now()) % LOOK_MS or LOOK_MS) / 1_000)
            await self._look_once()

    async def on_stop(self) -> None:
        await self._producer.close()

    async def _look_once(self) -> None:
        """Give up late probes and send due ones."""
        for lane in self._lanes():
            lane.context.memory.probe.give_up_late(self._clock.now())
        if (secret := self._secret()) is not None:
            await asyncio.gather(*(self._probe(lane, secret) for lane in self._due()))

    def _due(self) -> list[Lane]:
        """Return the lanes to probe now. Lanes of a topic are probed one after another, a second apart."""
        now = self._clock.now()
        turns = {lane.tp: (now + lane.tp.partition * LOOK_MS) // self._interval for lane in self._lanes()}
        due = [lane for lane in self._lanes() if self._probed.get(lane.tp) != turns[lane.tp] and not lane.is_closing()]
        self._probed = turns
        return due

    async def _probe(self, lane: Lane, secret: bytes) -> None:
        topic, partition = lane.tp
        probe = lane.context.memory.probe
        if (number := probe.begin(self._clock.now())) is None:
            return
        headers = probe_headers(ProbeMark("sent", number), topic, partition, secret)
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                sent = await self._producer.send(topic, NO_VALUE, partition=partition, headers=headers)
                await sent
        except (BrokerError, KafkaError, TimeoutError, OSError) as error:
            reason = f"the probe cannot be written to {topic}-{partition}: {error or type(error).__name__}"
            probe.not_sent(number, self._clock.now(), reason)
            await self._producer.reset()
