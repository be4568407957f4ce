"""etf1's metric, so that its dashboards and alerts go on: events of its topics, by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from light_scheduler.lanes.status import LATENESS_BOUNDS_MS, LaneStatus
from light_scheduler.model import Outcome
from light_scheduler.web.cluster import Lanes

MISSED_AFTER_MS = 1_000
"""A message that is later counts as missed: etf1 counts so what was due before it had read the record."""

_HELP = "The number of event triggered by type"
"""In the words of etf1."""

_IN_TIME = LATENESS_BOUNDS_MS.index(MISSED_AFTER_MS) + 1
_PLANNED = (Outcome.SCHEDULED, Outcome.UPDATED, Outcome.RESCHEDULED)


class EventCollector(Collector):
    """Counts what this worker's lanes of some topics have done since it started.

    A lane's own counters leave with it, and Prometheus takes a smaller sum for a restart. So what is new since the last
    scrape is added up.
    """

    def __init__(self, lanes: Lanes, topics: Collection[str]) -> None:
        self._lanes = lanes
        self._topics = topics
        self._totals = dict.fromkeys(_counts(LaneStatus(topic="", partition=0, state="")), 0)
        self._before: dict[tuple[str, int], Counter[str]] = {}

    def describe(self) -> list[Metric]:
        """Return nothing: that keeps registration from collecting."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        self._add(self._lanes.status())
        events = CounterMetricFamily("kafka_scheduler_event", _HELP, labels=("type",))
        for type, count in self._totals.items():
            events.add_metric([f"kafka_scheduler_{type}"], count)
        yield events

    def _add(self, lanes: list[LaneStatus]) -> None:
        before, self._before = self._before, {}
        for lane in lanes:
            if lane.topic not in self._topics:
                continue
            place = lane.topic, lane.partition
            counts = self._before[place] = _counts(lane)
            known = before.get(place, Counter())
            if any(counts[type] < known[type] for type in counts):
                known = Counter()  # taken over anew
            for type, count in counts.items():
                self._totals[type] += count - known[type]


def _counts(lane: LaneStatus) -> Counter[str]:
    outcomes, lateness = lane.outcomes, lane.lateness.counts
    return Counter(
        {
            "invalid_schedule": outcomes.get(Outcome.REJECTED, 0),
            "deleted_schedule": outcomes.get(Outcome.CANCELLED, 0),
            "planned_schedule": sum(outcomes.get(outcome, 0) for outcome in _PLANNED),
            "missed_schedule": sum(lateness[_IN_TIME:]),
            "triggered_schedule": sum(lateness[:_IN_TIME]),
            "other": lane.restarts,
        }
    )
