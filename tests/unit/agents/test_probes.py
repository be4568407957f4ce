"""When a worker probes which of its partitions, and what it sends."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError

from light_scheduler.agents.services.probes import Probes
from light_scheduler.clock import SettableClock
from light_scheduler.errors import BrokerUnreachable
from light_scheduler.kafka import lasting_producer
from light_scheduler.lanes.context.probe import TIMEOUT_MS, LaneProbe
from light_scheduler.wire.probe import PROBE
from light_scheduler.wire.signatures import require_signed_for

AT = 1_767_225_600_200
SECRET = b"of the workers"


class Lane:
    """All that a probe needs of a lane."""

    def __init__(self, partition: int) -> None:
        self.tp = TopicPartition("commands", partition)
        self.context = self.memory = self
        self.probe = LaneProbe()
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing


class Producer:
    """Keeps what is sent, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.sent: list[tuple[str, bytes, int, Any]] = []
        self.error = error
        self.is_stopped = False

    async def send(
        self, topic: str, value: bytes, *, key: bytes | None, partition: int, headers: Any
    ) -> asyncio.Future[None]:
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.error is not None:
            sent.set_exception(self.error)
        else:
            self.sent.append((topic, value, partition, headers))
            sent.set_result(None)
        return sent

    async def flush(self) -> None:
        pass

    async def stop(self) -> None:
        self.is_stopped = True


class Sent:
    """A record as it was sent."""

    def __init__(self, partition: int, headers: Any) -> None:
        self.partition = partition
        self.headers = headers


def service(lanes: list[Lane], clock: SettableClock, interval: int = 5_000) -> Probes:
    return Probes(lambda: lanes, "127.0.0.1:9092", interval, clock, lambda: SECRET)  # type: ignore[arg-type, return-value]


def test_each_partition_is_probed_at_once_and_then_once_in_an_interval() -> None:
    lanes, clock = [Lane(number) for number in range(7)], SettableClock(AT)
    worker, turns = service(lanes, clock), []
    for _ in range(20):
        turns.append([lane.tp.partition for lane in worker._due()])
        clock.set(clock.now() + 1_000)
    assert turns[0] == list(range(7))
    later = turns[5:]
    assert set(Counter(partition for turn in later for partition in turn).values()) == {3}
    assert max(map(len, later)) == 2


def test_a_partition_that_comes_back_is_probed_at_once() -> None:
    lanes, clock = [Lane(0)], SettableClock(AT)
    worker = service(lanes, clock, interval=60_000)
    assert worker._due()
    kept = lanes.pop()
    assert not worker._due()
    lanes.append(kept)
    assert worker._due()


def test_a_lane_that_closes_is_not_probed() -> None:
    lane = Lane(0)
    lane.closing = True
    assert not service([lane], SettableClock(AT))._due()


async def test_a_probe_is_one_signed_record_for_its_partition() -> None:
    lane, producer = Lane(3), Producer()
    worker = service([lane], SettableClock(AT))
    worker._producer._producer = producer
    await worker._probe(lane, SECRET)  # type: ignore[arg-type]
    ((topic, value, partition, headers),) = producer.sent
    assert (topic, value, partition, [name for name, _ in headers]) == ("commands", b"", 3, [PROBE])
    require_signed_for(Sent(partition, headers), topic, SECRET)  # type: ignore[arg-type]
    await worker._probe(lane, SECRET)  # type: ignore[arg-type]
    assert len(producer.sent) == 1


@pytest.mark.parametrize("error", [KafkaConnectionError("it is gone"), TimeoutError()])
async def test_a_probe_that_cannot_be_written_is_a_failure_and_the_next_one_has_another_producer(
    error: Exception,
) -> None:
    lane, producer = Lane(0), Producer(error)
    worker = service([lane], SettableClock(AT))
    worker._producer._producer = producer
    await worker._probe(lane, SECRET)  # type: ignore[arg-type]
    assert lane.probe.status is not None
    assert lane.probe.status.failures == 1
    assert "cannot be written to commands-0" in (lane.probe.status.reason or "")
    assert producer.is_stopped
    assert worker._producer._producer is None


async def test_probes_of_several_partitions_share_a_connection_and_fail_together_without_one() -> None:
    lanes = [Lane(0), Lane(1)]
    worker, begun = service(lanes, SettableClock(AT)), []

    async def start(options: Any) -> Any:
        begun.append(options)
        raise BrokerUnreachable("127.0.0.1:9092")

    with patch.object(lasting_producer, "started_producer", start):
        await asyncio.gather(*(worker._probe(lane, SECRET) for lane in lanes))  # type: ignore[arg-type]
    assert [lane.probe.status.failures for lane in lanes if lane.probe.status] == [1, 1]


async def test_a_probe_that_is_not_back_is_a_failure_long_before_the_next_one() -> None:
    lane, clock, producer = Lane(0), SettableClock(AT), Producer()
    worker = service([lane], clock, interval=3_600_000)
    worker._producer._producer = producer
    await worker._look_once()
    assert len(producer.sent) == 1
    for failures, ms in ((0, TIMEOUT_MS - 1), (1, 1), (1, TIMEOUT_MS)):
        clock.advance(ms)
        await worker._look_once()
        assert lane.probe.status is not None
        assert lane.probe.status.failures == failures
    assert len(producer.sent) == 1
