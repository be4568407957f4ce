"""What a worker shows of targets that cannot be written to, and of what waits for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from light_scheduler.kafka.target_outages import WHOLE_TOPIC, Outages
from light_scheduler.lanes.assigned_lanes import Lanes
from light_scheduler.lanes.context.status import TargetStatus
from light_scheduler.lanes.context.tenant_firings import TenantFirings
from light_scheduler.tables import MemoryStore, ScheduleTable
from light_scheduler.web.metrics import lanes as metrics
from light_scheduler.web.metrics.lanes import LaneCollector

AT = 1_767_225_600_000


@pytest.fixture
def outages() -> Outages:
    return Outages(lambda: 0.0)


def lanes(outages: Outages, *tables: ScheduleTable | None) -> Lanes:
    """Return lanes with these tables; None: one that has none yet."""
    made: Any = None
    found = Lanes(made, made, made, outages)
    for number, table in enumerate(tables):
        lane: Any = SimpleNamespace(copy=SimpleNamespace(table=table))
        found._lanes[TopicPartition("commands", number)] = lane
    return found


def table(**waiting: int) -> ScheduleTable:
    """Return a table that has passed so many schedules over for places, which are named `topic_partition`."""
    found = ScheduleTable(MemoryStore())
    for name, count in waiting.items():
        topic, partition = name.split("_")
        for number in range(count):
            found.held.pass_over((topic, int(partition)), "acme", b"%04d" % number)
    return found


def test_nothing_is_shown_while_all_is_well(outages: Outages) -> None:
    assert lanes(outages, table()).targets() == []


def test_targets_come_by_name_with_what_waits_for_them_in_all_lanes(outages: Outages) -> None:
    outages.observe("t", {2: "it has no leader", 0: "it has no leader"}, AT + 5)
    outages.suspect([("t", 1)], "it does not answer", AT)
    outages.observe("a", {0: "it has no leader"}, AT + 9)
    assert lanes(outages, table(t_0=2, t_1=1, t_3=7), None, table(t_0=4, a_0=1)).targets() == [
        TargetStatus(topic="a", partitions=[0], unavailable_since=AT + 9, waiting=1, reason="it has no leader"),
        TargetStatus(
            topic="t",
            partitions=[0, 1, 2],
            unavailable_since=AT,
            waiting=7,
            reason="it does not answer; it has no leader",
        ),
    ]


def test_a_topic_that_is_away_as_a_whole_names_no_partitions(outages: Outages) -> None:
    outages.observe("t", {WHOLE_TOPIC: "it was deleted", 1: "it has no leader"}, AT)
    (target,) = lanes(outages).targets()
    assert (target.partitions, target.waiting) == ([], 0)


# -- metrics ----------------------------------------------------------------------------------------------------------


class Shown:
    """Lanes of which only targets are shown."""

    def __init__(self, targets: list[TargetStatus]) -> None:
        self.targets = lambda: targets
        self.tables = self.topic_totals = dict
        self.tenant_firings = TenantFirings
        self.status = self.standbys = list

    async def catch_up(self) -> set[tuple[str, int]]:
        return set()


def sampled(targets: list[TargetStatus]) -> dict[str, dict[str, float]]:
    """Return the metrics of targets by name and topic, ten seconds after `AT`."""
    clock: Any = SimpleNamespace(now=lambda: AT + 10_000)
    collector = LaneCollector(Shown(targets), (), app_id="app", version="1", clock=clock)
    return {
        metric.name: {sample.labels["topic"]: sample.value for sample in metric.samples}
        for metric in collector.collect()
        if metric.name.startswith("light_scheduler_target_")
    }


def status(topic: str, since: int, waiting: int) -> TargetStatus:
    return TargetStatus(topic=topic, partitions=[0], unavailable_since=since, waiting=waiting, reason="x")


def test_metrics_have_each_target_that_is_away_and_for_how_long() -> None:
    assert sampled([status("a", AT, 3), status("b", AT + 9_500, 0), status("c", AT + 11_000, 1)]) == {
        "light_scheduler_target_unavailable_seconds": {"a": 10.0, "b": 0.5, "c": 0.0},
        "light_scheduler_target_waiting_firings": {"a": 3, "b": 0, "c": 1},
    }


def test_metrics_of_targets_that_are_well_have_no_samples() -> None:
    assert list(sampled([]).values()) == [{}, {}]


def test_however_many_targets_are_away_metrics_have_a_limited_number() -> None:
    """Names come from whoever sends commands."""
    many = [status(f"{number:04}", AT, 1) for number in range(metrics.MOST_TARGETS + 1)]
    assert [len(samples) for samples in sampled(many).values()] == [metrics.MOST_TARGETS] * 2
