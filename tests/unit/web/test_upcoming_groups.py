"""Counts of what is due when, of all tenants, by tenant, target topic or partition, asked of any worker."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from multidict import MultiDict
from support.last_instant import DUE, RANGES, put_at_the_last_instant
from support.tries import tries
from support.web_cluster.schedules import TOPIC

from light_scheduler.model import NEVER
from light_scheduler.tables.views import Lane
from light_scheduler.web.cluster.answers import Whole
from light_scheduler.web.limits import slices
from light_scheduler.web.upcoming import groups as upcoming_groups
from light_scheduler.web.upcoming.groups import asked_of, decode_series, document, own_series

UPCOMING = "/api/v1/upcoming"
NOW = 1_800_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE
BEGIN = NOW // HOUR * HOUR
EXAMPLES = count()


def named(answer: Any) -> dict[str | None, tuple[int, int]]:
    return {each["name"]: (each["due"], each["pending"]) for each in answer["groups"]}


@pytest.fixture
def stored(cluster: Any, workers: Any) -> None:
    """Store three schedules of one tenant and one of another, over all partitions."""
    for number in range(3):
        cluster.put(f"a-{number}", partition=number, due=BEGIN + HOUR)
    cluster.put("b", partition=3, due=BEGIN + 2 * HOUR, target="other", tenant="acme")
    cluster.put("paused", partition=3, due=BEGIN + HOUR, progress={"paused": True}, tenant="acme")


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("tenant", {"default": (3, 3), "acme": (1, 2)}),
        ("target", {"out": (3, 4), "other": (1, 1)}),
        ("partition", {f"{TOPIC}[{number}]": (1, 2 if number == 3 else 1) for number in range(4)}),
    ],
)
async def test_groups_are_of_the_whole_cluster(workers: Any, group: str, expected: dict[str, tuple[int, int]]) -> None:
    for worker in workers:
        answer = await worker.json(UPCOMING, group=group)
        assert named(answer) == expected
        assert answer["complete"]
        assert (answer["by"], answer["group"], answer["due_from"]) == ("hour", group, BEGIN)


@pytest.mark.usefixtures("stored")
async def test_each_group_has_its_counts_by_interval(workers: Any) -> None:
    answer = await workers[0].json(UPCOMING, by="hour")
    assert [each["counts"] for each in answer["groups"]] == [
        [{"due_from": BEGIN + HOUR, "count": 3}],
        [{"due_from": BEGIN + 2 * HOUR, "count": 1}],
    ]


@pytest.mark.usefixtures("stored")
async def test_counts_can_be_of_one_target_topic_or_partition(workers: Any) -> None:
    assert named(await workers[0].json(UPCOMING, target_topic="out")) == {"default": (3, 3), "acme": (0, 1)}
    assert named(await workers[0].json(UPCOMING, partition=f"{TOPIC}[3]")) == {"acme": (1, 2)}
    assert named(await workers[1].json(UPCOMING, partition=f"{TOPIC}[0]", group="target")) == {"out": (1, 1)}


@pytest.mark.parametrize("asked", RANGES)
async def test_a_range_can_reach_to_the_last_instant(cluster: Any, workers: Any, asked: dict[str, str]) -> None:
    put_at_the_last_instant(cluster)
    answer = await workers[0].json(UPCOMING, **asked)
    assert answer["due_to"] == NEVER
    assert sum(due for due, _ in named(answer).values()) == DUE


@pytest.mark.usefixtures("stored")
async def test_groups_beyond_the_top_are_counted_together(workers: Any) -> None:
    answer = await workers[0].json(UPCOMING, top="1")
    assert named(answer) == {"default": (3, 3), None: (1, 2)}
    assert answer["complete"]
    assert named(await workers[0].json(UPCOMING, top="0")) == {None: (4, 5)}


async def test_what_a_partition_does_not_name_is_counted_and_said(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upcoming_groups, "MOST_NAMED", 2)
    for number in range(5):
        for copy in range(number + 1):
            cluster.put(f"{copy}", tenant=f"t{number}", due=BEGIN + HOUR, offset=copy)
    answer = await workers[0].json(UPCOMING)
    assert named(answer) == {"t4": (5, 5), "t3": (4, 4), None: (6, 6)}
    assert not answer["complete"]


@given(
    dues=st.lists(st.tuples(st.integers(0, 47), st.sampled_from("abc"), st.integers(0, 3)), max_size=20),
    by=st.sampled_from(["minute", "hour", "day"]),
)
@settings(max_examples=tries(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_all_groups_together_are_what_each_tenant_has(
    cluster: Any, workers: Any, dues: list[tuple[int, str, int]], by: str
) -> None:
    target = f"target-{next(EXAMPLES)}"
    for number, (hour, tenant, partition) in enumerate(dues):
        id = f"{target}-{number}"
        cluster.put(id, tenant=tenant, partition=partition, due=NOW + hour * HOUR, target=target, offset=number)
    range_asked = {"by": by, "due_from": str(NOW), "due_to": str(NOW + 24 * HOUR)}
    for group in ("tenant", "target", "partition"):
        answer = await workers[1].json(UPCOMING, group=group, target_topic=target, **range_asked)
        found = Counter[int]()
        for each in answer["groups"]:
            found.update({row["due_from"]: row["count"] for row in each["counts"]})
        expected = Counter[int]()
        for tenant in "abc":
            own = await workers[0].json(f"/api/v1/tenants/{tenant}/upcoming", **range_asked)
            expected.update({row["due_from"]: row["count"] for row in own["counts"] if row["target_topic"] == target})
        assert found == expected
        assert sum(each["pending"] for each in answer["groups"]) == len(dues)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"group": "label"}, "group"),
        ({"by": "week"}, "by"),
        ({"top": "101"}, "top"),
        ({"top": "-1"}, "top"),
        ({"target_topic": "no topic"}, "target_topic"),
        ({"partition": "3"}, "partition"),
        ({"due_to": "1"}, "due_to"),
        ({"tenant": "default"}, "tenant"),
    ],
)
async def test_what_cannot_be_counted_is_refused_by_its_parameter(
    workers: Any, parameters: dict[str, str], field: str
) -> None:
    problem = await workers[0].json(UPCOMING, status=400, **parameters)
    assert problem["parameter"] == field


async def test_a_partition_that_does_not_run_is_named_and_never_left_out(workers: Any) -> None:
    lane: Lane = (TOPIC, 3)
    workers[1].lanes.states[lane] = "restoring"
    problem = await workers[0].json(UPCOMING, status=503)
    assert [each["partition"] for each in problem["missing"]] == [3]


@given(
    schedules=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 5)), max_size=20),
    top=st.integers(0, 3),
)
@settings(max_examples=tries(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_top_of_all_partitions_is_exact_if_it_is_complete(
    cluster: Any, workers: Any, schedules: list[tuple[int, int, int]], top: int
) -> None:
    target = f"target-{next(EXAMPLES)}"
    for number, (partition, hour, tenant) in enumerate(schedules):
        place = {"partition": partition, "offset": number}
        cluster.put(f"{target}-{number}", tenant=f"t{tenant}", due=BEGIN + hour * HOUR, target=target, **place)
    answer = await workers[0].json(UPCOMING, target_topic=target, top=str(top), due_to=str(BEGIN + HOUR))
    due = Counter(f"t{tenant}" for _, hour, tenant in schedules if not hour)
    pending = Counter(f"t{tenant}" for _, _, tenant in schedules)
    told = {row["name"]: (row["due"], row["pending"]) for row in answer["groups"] if row["name"] is not None}
    assert sum(row["due"] for row in answer["groups"]) == due.total()
    assert sum(row["pending"] for row in answer["groups"]) == pending.total()
    if answer["complete"]:
        ranked = sorted(pending, key=lambda name: (-due[name], -pending[name], name))
        assert told == {name: (due[name], pending[name]) for name in ranked[:top]}


@pytest.mark.parametrize(
    ("top", "most"), [(0, 0), (1, upcoming_groups.NAMED_PER_GROUP), (100, upcoming_groups.MOST_NAMED)]
)
async def test_a_partition_names_not_many_more_groups_than_are_asked_for(
    cluster: Any, workers: Any, top: int, most: int
) -> None:
    for number in range(upcoming_groups.MOST_NAMED + 5):
        cluster.put("a", tenant=f"t{number:03}", due=BEGIN)
    found = await own_series(workers[0].lanes, asked_of(MultiDict(top=str(top)), NOW))
    series = decode_series(found.series[found.lanes.index((TOPIC, 0))])
    assert sum(each.name is not None for each in series) == most
    assert sum(each.pending for each in series) == upcoming_groups.MOST_NAMED + 5
    answer = await workers[0].json(UPCOMING, top=str(top))
    assert answer["complete"] == (top == 0), "nothing is named that could be too low"


async def test_a_partition_names_fewer_groups_if_their_counts_are_many(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upcoming_groups, "MOST_COUNTS", 5)
    for tenant, hours in (("a", 3), ("b", 2), ("c", 1)):
        for hour in range(hours):
            cluster.put(f"{hour}", tenant=tenant, due=BEGIN + hour * HOUR)
    answer = await workers[0].json(UPCOMING)
    assert named(answer) == {"a": (3, 3), "b": (2, 2), None: (1, 1)}
    assert not answer["complete"]


async def test_an_answer_is_put_together_slice_by_slice(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        cluster.put("a", tenant=f"t{number}", due=BEGIN)
    asked = asked_of(MultiDict(top="5"), NOW)
    lanes = workers[0].lanes
    share = await own_series(lanes, asked)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    rest, rests = slices.LoopTime.rest, []

    async def noted(self: slices.LoopTime) -> None:
        rests.append(self)
        await rest(self)

    monkeypatch.setattr(slices.LoopTime, "rest", noted)
    answer = await document(Whole({"url": share}, dict.fromkeys(share.lanes, "url")), asked)
    assert len(json.loads(answer)["groups"]) == 6
    assert len(rests) > 10 + 5
