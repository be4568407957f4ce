"""Prometheus metrics of the delay rules at work on this worker."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from light_scheduler.delays import DelayLaneStatus
from light_scheduler.model.lane_state import LaneState
from light_scheduler.web.interfaces import Delays

from .families import Counters, Gauges, LaneFamilies

_GAUGES: Gauges[DelayLaneStatus] = (
    ("delay_running", "1 if the rule works on the partition.", lambda lane: lane.state == LaneState.RUNNING),
    ("delay_waiting", "1 if records are due and cannot be forwarded.", lambda lane: lane.waiting),
    ("delay_lag", "Offsets that wait in the source, due or not.", lambda lane: lane.lag),
    ("delay_position", "Offset of the next record to forward.", lambda lane: lane.position),
    (
        "delay_next_due_timestamp_seconds",
        "When the next record is due.",
        lambda lane: None if lane.next_due is None else lane.next_due / 1_000,
    ),
)

_COUNTERS: Counters[DelayLaneStatus] = (
    ("delay_forwarded", "Records forwarded.", lambda lane: lane.forwarded),
    ("delay_dead_letters", "Records that the target does not take.", lambda lane: lane.dead_letters),
    ("delay_expired", "Offsets that retention took away before they were due.", lambda lane: lane.expired),
    ("delay_restarts", "Times a rule started again after a failure.", lambda lane: lane.restarts),
)

_FAMILIES = LaneFamilies[DelayLaneStatus](
    ("rule", "source", "partition"),
    lambda lane: [lane.rule, lane.source, str(lane.partition)],
    _GAUGES,
    _COUNTERS,
)


class DelayCollector(Collector):
    """Labels are the rule, its source topic and the partition."""

    def __init__(self, delays: Delays) -> None:
        self._delays = delays

    def describe(self) -> list[Metric]:
        """Return nothing: that keeps registration from collecting."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        lanes = self._delays.lanes()
        yield from _FAMILIES.of(lanes)
        yield _FAMILIES.lateness(
            "delay_lateness_seconds", "Commit of a forwarded record minus its due.", lanes, lambda lane: lane.lateness
        )
