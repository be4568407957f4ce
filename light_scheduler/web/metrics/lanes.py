"""Prometheus metrics, made from the lanes' status at each scrape."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.lanes.context.status import LaneStatus, TargetStatus
from light_scheduler.lanes.context.tenant_firings import MOST_TENANTS, TenantFirings
from light_scheduler.tables.status import StandbyStatus
from light_scheduler.web.interfaces import Delays, Lanes

from .delays import DelayCollector
from .families import PREFIX, Counters, Gauges, LaneFamilies
from .tenants import TenantCollector

_LANE = ("topic", "partition")

MOST_TARGETS = 100
"""Number of unavailable target topics with their own metrics."""

_GAUGES: Gauges[LaneStatus] = (
    ("pending", "Schedules held.", lambda lane: lane.pending),
    ("command_lag", "Commands that wait to be read.", lambda lane: lane.lag),
    ("input_position", "Offset of the next command to read.", lambda lane: lane.position),
    (
        "next_due_timestamp_seconds",
        "Due time of the next pending firing.",
        lambda lane: None if lane.oldest_due is None else lane.oldest_due / 1_000,
    ),
    (
        "restore_remaining",
        "Changelog offsets to be read until the lane runs.",
        lambda lane: lane.restore.total - lane.restore.done if lane.restore else None,
    ),
    (
        "restore_seconds",
        "How long bringing its state up to date took, or has taken.",
        lambda lane: lane.restore.seconds if lane.restore else None,
    ),
    (
        "restored_records",
        "Changelog records that were applied when the lane began.",
        lambda lane: lane.restore.records if lane.restore else None,
    ),
    (
        "clock_skew_seconds",
        "How far the worker's clock is ahead of the broker's at least; negative: behind.",
        lambda lane: None if lane.clock_skew is None else lane.clock_skew / 1_000,
    ),
    ("commands_waiting", "Commands that are delayed and wait.", lambda lane: lane.waiting),
    (
        "commands_unsent",
        "Commands and reports that wait for another partition of the commands topic.",
        lambda lane: lane.unsent,
    ),
    ("partitions", "Partitions of the commands topic that keys are distributed over.", lambda lane: lane.partitions),
    ("settled", "0 while schedules move since partitions were added, else 1.", lambda lane: int(lane.settled)),
    ("lateness_max_seconds", "Largest lateness so far.", lambda lane: lane.lateness.max_ms / 1_000),
    (
        "probe_last_success_timestamp_seconds",
        "When a probe last came back.",
        lambda lane: lane.probe.last_success / 1_000 if lane.probe and lane.probe.last_success is not None else None,
    ),
    (
        "probe_latency_seconds",
        "How long the last probe took that came back, less the time that it had to wait.",
        lambda lane: lane.probe.latency_ms / 1_000 if lane.probe and lane.probe.latency_ms is not None else None,
    ),
)

_COUNTERS: Counters[LaneStatus] = (
    ("firings", "Firings delivered.", lambda lane: lane.firings),
    ("firings_expired", "Firings not delivered, because their time to live was over.", lambda lane: lane.expired),
    ("firings_throttled", "Firings delivered that had waited for a rate cap.", lambda lane: lane.throttled),
    ("commands_over_quota", "Commands rejected for a quota of their tenant.", lambda lane: lane.over_quota),
    ("commands_delayed", "Commands delayed for a quota of their tenant.", lambda lane: lane.delayed),
    ("dead_letters", "Commands and firings that became dead letters.", lambda lane: lane.dead_letters),
    ("lost_results", "Answers whose reply topic could not take them.", lambda lane: lane.lost_results),
    ("commands_forwarded", "Commands passed on to the partition of their key.", lambda lane: lane.forwarded),
    ("schedules_moved", "Schedules handed over to partitions that were added.", lambda lane: lane.moved),
    ("schedules_adopted", "Schedules taken over from other partitions.", lambda lane: lane.adopted),
    ("commands_relayed", "Commands passed on while schedules move.", lambda lane: lane.relayed),
    (
        "unsent_dropped",
        "Records of workers for another partition of the commands topic that could not be sent any more.",
        lambda lane: lane.dropped,
    ),
    (
        "bulk_unreported",
        "Bulk commands that ended though partitions had not reported for a day.",
        lambda lane: lane.unreported,
    ),
    ("transactions", "Transactions committed.", lambda lane: lane.transactions),
    ("staged", "Transactions prepared ahead of time and committed at it.", lambda lane: lane.staged),
    ("unstaged", "Transactions prepared ahead of time and dropped for a command.", lambda lane: lane.unstaged),
    ("state_rebuilds", "Times a local copy was thrown away, to be built anew.", lambda lane: lane.rebuilds),
    (
        "input_jumps",
        "Times that reading could not continue at its position, because the log had changed.",
        lambda lane: lane.jumps,
    ),
    (
        "commands_expired",
        "Offsets of commands that were deleted before they were read.",
        lambda lane: lane.expired_commands,
    ),
    ("probe_successes", "Probes that came back.", lambda lane: lane.probe.successes if lane.probe else 0),
    (
        "probe_failures",
        "Probes that were not sent, or not back in time.",
        lambda lane: lane.probe.failures if lane.probe else 0,
    ),
    ("lane_restarts", "Times a lane started again after a failure.", lambda lane: lane.restarts),
)

_FAMILIES = LaneFamilies[LaneStatus](_LANE, lambda lane: [lane.topic, str(lane.partition)], _GAUGES, _COUNTERS)


def registry_of(
    lanes: Lanes, tenants: TenantCollector, delays: Delays, topics: Collection[str], *, app_id: str, version: str
) -> CollectorRegistry:
    """Return a registry for this worker's lanes, their tenants, its delays, its commands topics and its process."""
    registry = CollectorRegistry()
    registry.register(LaneCollector(lanes, topics, app_id=app_id, version=version))
    registry.register(tenants)
    registry.register(DelayCollector(delays))
    ProcessCollector(registry=registry)
    return registry


class LaneCollector(Collector):
    """Metrics of this worker's lanes. Labels are the commands topic and the partition.

    The commands topics come from the settings, so a deleted topic is still exported, although no worker has a lane of
    it.
    """

    def __init__(
        self, lanes: Lanes, topics: Collection[str], *, app_id: str, version: str, clock: Clock | None = None
    ) -> None:
        self._lanes = lanes
        self._topics = topics
        self._now = (clock or SystemClock()).now
        self._info = {"app_id": app_id, "version": version}

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration does not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        lanes = self._lanes.status()
        yield InfoMetricFamily(PREFIX + "worker", "What this worker is.", value=self._info)
        yield _commands_topics(self._topics)
        yield _states(lanes)
        yield from _FAMILIES.of(lanes)
        yield _commands(lanes)
        yield from _standbys(self._lanes.standbys())
        yield from _targets(self._lanes.targets(), self._now())
        yield from _tenants(self._lanes.tenant_firings())
        yield _FAMILIES.lateness(
            "lateness_seconds", "Commit of a firing minus its due.", lanes, lambda lane: lane.lateness
        )


def _commands_topics(topics: Collection[str]) -> Metric:
    metric = InfoMetricFamily(
        PREFIX + "commands_topic", "A commands topic that this worker is set to read.", labels=("topic",)
    )
    for topic in topics:
        metric.add_metric([topic], {})
    return metric


def _states(lanes: list[LaneStatus]) -> Metric:
    states = GaugeMetricFamily(PREFIX + "lane_state", "1 for the state that a lane is in.", labels=(*_LANE, "state"))
    for lane in lanes:
        states.add_metric([*_FAMILIES.labels_of(lane), lane.state], 1)
    return states


def _commands(lanes: list[LaneStatus]) -> Metric:
    commands = CounterMetricFamily(PREFIX + "commands", "Commands carried out.", labels=(*_LANE, "outcome"))
    for lane in lanes:
        for outcome, count in lane.outcomes.items():
            commands.add_metric([*_FAMILIES.labels_of(lane), outcome], count)
    return commands


def _targets(targets: list[TargetStatus], now: int) -> Iterator[Metric]:
    seconds = GaugeMetricFamily(
        PREFIX + "target_unavailable_seconds", "For how long a target topic has taken nothing.", labels=("topic",)
    )
    waiting = GaugeMetricFamily(
        PREFIX + "target_waiting_firings", "Firings that wait for a target topic.", labels=("topic",)
    )
    for target in targets[:MOST_TARGETS]:
        seconds.add_metric([target.topic], max(0, now - target.unavailable_since) / 1_000)
        waiting.add_metric([target.topic], target.waiting)
    yield seconds
    yield waiting


def _tenants(firings: TenantFirings) -> Iterator[Metric]:
    delivered = CounterMetricFamily(
        PREFIX + "tenant_firings",
        f"Firings delivered, of the first {MOST_TENANTS} tenants that had any since the worker began.",
        labels=("tenant",),
    )
    for tenant, count in firings.named.items():
        delivered.add_metric([tenant], count)
    yield delivered
    yield CounterMetricFamily(
        PREFIX + "other_tenants_firings", "Firings delivered, of all other tenants.", value=firings.others
    )


def _standbys(standbys: list[StandbyStatus]) -> Iterator[Metric]:
    pending = GaugeMetricFamily(PREFIX + "standby_pending", "Schedules in a warm copy.", labels=_LANE)
    lag = GaugeMetricFamily(PREFIX + "standby_lag", "Changelog offsets that a warm copy has not read.", labels=_LANE)
    for standby in standbys:
        labels = [standby.topic, str(standby.partition)]
        pending.add_metric(labels, standby.pending)
        if standby.lag is not None:
            lag.add_metric(labels, standby.lag)
    yield pending
    yield lag
