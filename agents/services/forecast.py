"""Publishes the number of due schedules by minute in this worker's partitions, if the forecast topic exists.

Changes are published some seconds later, outside the lanes' transactions, so lanes never wait for it. The topic is
compacted. Once nothing changes, its last records match the pending schedules.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka.errors import KafkaError
from mode import Service

from light_scheduler.clock import Clock
from light_scheduler.connection import Address, connection_to
from light_scheduler.errors import SchedulerError
from light_scheduler.kafka.connection import broker_errors
from light_scheduler.kafka.lasting_producer import LastingProducer
from light_scheduler.kafka.log_reader import Span, opened_log
from light_scheduler.lanes.lane import Lane
from light_scheduler.model.lane_state import LaneState
from light_scheduler.tables.ahead import ahead
from light_scheduler.tables.table import ScheduleTable
from light_scheduler.wire.forecast import Interval, forecast_key, forecast_value, parse_forecast

LOOK_S = 5.0
SEND_TIMEOUT_S = 10.0
READ_AGAIN_MS = 600_000
"""How often the published counts are read again, since a worker that was believed dead may have written some."""

SLICE_S, REST = 0.005, 50
"""Time of counting between two pauses. A pause is `REST` times as long as the counting before it."""

DAY_MS = 86_400_000

log = logging.getLogger(__name__)


@dataclass
class _Published:
    """A lane's counts in the topic, the time (ms) they were read from it, and the table state that they represent."""

    lane: Lane
    read_at: int
    pending: Mapping[Interval, int]
    state: tuple[int, int] = field(default=(-1, -1))  # offset of the changelog, day


class Forecast(Service):
    """The service of a worker: `lanes` yields its lanes, `topic` is the forecast topic."""

    def __init__(
        self, lanes: Callable[[], Iterable[Lane]], topic: str, connection: Address, clock: Clock, **options: Any
    ) -> None:
        super().__init__(**options)
        self._lanes = lanes
        self._topic = topic
        self._connection = connection_to(connection)
        self._clock = clock
        self._producer = LastingProducer(connection)
        self._published: dict[tuple[str, int], _Published] = {}
        self._failures: dict[tuple[str, int], str] = {}

    @Service.task
    async def _look(self) -> None:
        while not self.should_stop:
            await self.sleep(LOOK_S)
            lanes = [lane for lane in self._lanes() if _is_at_work(lane)]
            self._published = {
                lane.tp: last for lane in lanes if (last := self._published.get(lane.tp)) and last.lane is lane
            }
            for lane in lanes:
                if not self.should_stop:
                    await self._publish_safely(lane)

    async def on_stop(self) -> None:
        await self._producer.close()

    async def _publish_safely(self, lane: Lane) -> None:
        failure = ""
        try:
            await self._publish(lane)
        except (SchedulerError, KafkaError) as error:  # the lane itself handles unreadable state
            failure = str(error) or type(error).__name__
            self._published.pop(lane.tp, None)  # it is unknown which records arrived
            await self._producer.reset()
        if failure and failure != self._failures.get(lane.tp):
            log.warning("cannot write the forecast of %s-%d: %s", *lane.tp, failure)
        self._failures[lane.tp] = failure

    async def _publish(self, lane: Lane) -> None:
        targets, now = lane.context.targets, self._clock.now()
        await targets.resolve({self._topic})
        if targets[self._topic].refusal is not None:
            return
        place = lane.tp.partition % targets[self._topic].partitions
        last = self._published.get(lane.tp)
        if last is None or now - last.read_at >= READ_AGAIN_MS:
            last = self._published[lane.tp] = _Published(lane, now, await self._read(lane, place))
        table, today = lane.copy.table, now // DAY_MS
        if table is None or last.state == (state := (table.checkpoint.changelog_offset, today)):
            return
        pending = await _counted(lane, table, today)
        if pending is not None:
            await self._send(lane, place, _changes(last.pending, pending), now)
            last.pending, last.state = pending, state

    async def _read(self, lane: Lane, place: int) -> dict[Interval, int]:
        """Return the published counts of a lane."""
        found: dict[bytes, tuple[Interval, int]] = {}
        async with opened_log(self._connection, self._topic) as reader:
            span = (await reader.extents(0)).get(place, Span(0, 0))
            async for records in reader.read({place: span}):
                for record in records:
                    key = record.key or b""
                    found.pop(key, None)
                    said = None if record.value is None else parse_forecast(record.value)
                    if said is not None and said[0] == lane.tp:
                        found[key] = said[1:]
        return dict(found.values())

    async def _send(self, lane: Lane, place: int, changes: Mapping[Interval, int], now: int) -> None:
        if not changes:
            return
        with broker_errors(f"writing to {self._topic}"):
            async with asyncio.timeout(SEND_TIMEOUT_S):
                (topic, partition), sent = lane.tp, []
                for interval, pending in changes.items():
                    value = forecast_value(topic, partition, interval, pending, now)
                    key = forecast_key(topic, partition, interval)
                    sent.append(await self._producer.send(self._topic, value, key=key, partition=place))
                await asyncio.gather(*sent)


def _changes(last: Mapping[Interval, int], pending: Mapping[Interval, int]) -> dict[Interval, int]:
    """Return the counts that differ from the last published ones, by interval."""
    changed = sorted(each for each in last.keys() | pending.keys() if last.get(each, 0) != pending.get(each, 0))
    return {each: pending.get(each, 0) for each in changed}


async def _counted(lane: Lane, table: ScheduleTable, today: int) -> dict[Interval, int] | None:
    """Count future firings, with pauses; None if the lane's table was replaced or closed meanwhile."""
    found: Counter[Interval] = Counter()
    begun = time.monotonic()
    for interval, change in ahead(table.counts, today):
        found[interval] += change
        if (taken := time.monotonic() - begun) > SLICE_S:
            await asyncio.sleep(REST * taken)
            if lane.copy.table is not table or not _is_at_work(lane):
                return None
            begun = time.monotonic()
    return {interval: pending for interval, pending in found.items() if pending}


def _is_at_work(lane: Lane) -> bool:
    return lane.state is LaneState.RUNNING and lane.intake.backlog_taken
