"""etf1's metric, so that its dashboards and alerts still work: events of its topics, by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from light_scheduler.lanes.context.topic_totals import TopicTotals
from light_scheduler.model import Outcome
from light_scheduler.model.lateness import LATENESS_BOUNDS_MS
from light_scheduler.web.interfaces import Lanes

MISSED_AFTER_MS = 1_000
"""A message that is later by this much counts as missed. etf1 counts messages that were due before it read their
records."""

_HELP = "The number of event triggered by type"
"""The help text of etf1."""

_IN_TIME = LATENESS_BOUNDS_MS.index(MISSED_AFTER_MS) + 1
_PLANNED = (Outcome.SCHEDULED, Outcome.UPDATED, Outcome.RESCHEDULED)


class EventCollector(Collector):
    """Counts this worker's events of some topics since it started. A scrape changes nothing."""

    def __init__(self, lanes: Lanes, topics: Collection[str]) -> None:
        self._lanes = lanes
        self._topics = topics

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration does not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        counts = _counts(TopicTotals())
        for topic, totals in self._lanes.topic_totals().items():
            if topic in self._topics:
                counts.update(_counts(totals))
        events = CounterMetricFamily("kafka_scheduler_event", _HELP, labels=("type",))
        for type, count in counts.items():
            events.add_metric([f"kafka_scheduler_{type}"], count)
        yield events


def _counts(totals: TopicTotals) -> Counter[str]:
    outcomes, lateness = totals.outcomes, totals.lateness.counts
    return Counter(
        {
            "invalid_schedule": outcomes[Outcome.REJECTED],
            "deleted_schedule": outcomes[Outcome.CANCELLED],
            "planned_schedule": sum(outcomes[outcome] for outcome in _PLANNED),
            "missed_schedule": sum(lateness[_IN_TIME:]),
            "triggered_schedule": sum(lateness[:_IN_TIME]),
            "other": totals.restarts,
        }
    )
