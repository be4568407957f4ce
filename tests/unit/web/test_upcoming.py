"""Counts of what is due when, of the whole cluster, asked of any worker."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from multidict import MultiDict
from support.last_instant import DUE, RANGES, put_at_the_last_instant
from support.tries import tries
from support.web_cluster.schedules import make_entry

from light_scheduler.model import NEVER
from light_scheduler.tables import Overlay
from light_scheduler.tables.count_rows import ROW_CELLS
from light_scheduler.tables.views import Lane
from light_scheduler.web.cluster.answers import Whole
from light_scheduler.web.upcoming.of_tenant import document, intervals_of, own_counts
from light_scheduler.wire.state import encode_entry, identity_of

UPCOMING = "/api/v1/tenants/default/upcoming"
LIST = "/api/v1/tenants/default/schedules"
NOW = 1_800_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
EXAMPLES = count()
LENGTHS = {"minute": MINUTE, "hour": HOUR, "day": DAY}


def rows(answer: Any) -> list[tuple[int, str, str, int]]:
    return [(each["due_from"], each["target_topic"], each["state"], each["count"]) for each in answer["counts"]]


async def test_counts_are_of_the_whole_cluster_by_interval_topic_and_state(cluster: Any, workers: Any) -> None:
    begin = NOW // HOUR * HOUR
    for number in range(6):
        cluster.put(f"a-{number}", partition=number % 4, due=begin + HOUR)
    cluster.put("b", partition=3, due=begin + 2 * HOUR - 1, target="other")
    cluster.put("c", partition=1, due=begin + 2 * HOUR)
    cluster.put("paused", partition=2, due=begin + HOUR, progress={"paused": True})
    cluster.put("of another tenant", partition=0, due=begin + HOUR, tenant="acme")
    for worker in workers:
        answer = await worker.json(UPCOMING, by="hour", due_from=str(NOW + MINUTE), due_to=str(NOW + 3 * HOUR + 1))
        assert rows(answer) == [
            (begin + HOUR, "other", "pending", 1),
            (begin + HOUR, "out", "pending", 6),
            (begin + 2 * HOUR, "out", "pending", 1),
        ]
        assert answer["pending"] == [
            {"target_topic": "other", "state": "pending", "count": 1},
            {"target_topic": "out", "state": "paused", "count": 1},
            {"target_topic": "out", "state": "pending", "count": 7},
        ]
        assert (answer["due_from"], answer["due_to"]) == (begin, begin + 4 * HOUR)


@pytest.mark.parametrize("asked", RANGES)
async def test_a_range_can_reach_to_the_last_instant(cluster: Any, workers: Any, asked: dict[str, str]) -> None:
    put_at_the_last_instant(cluster)
    answer = await workers[0].json(UPCOMING, **asked)
    assert answer["due_to"] == NEVER
    assert sum(each["count"] for each in answer["counts"]) == DUE


EARLY = [
    ({"due_from": "1970-01-01T00:00:00Z"}, 0),
    ({"due_from": "0"}, 0),
    ({"due_from": "1970-01-02T03:00:00Z", "due_to": "1970-01-02T05:00:00Z"}, DAY + 3 * HOUR),
    ({"by": "day", "due_from": "100000000000"}, 99_964_800_000),
]


@pytest.mark.parametrize("path", [UPCOMING, "/api/v1/upcoming"])
@pytest.mark.parametrize(("asked", "begin"), EARLY)
async def test_a_range_can_begin_at_any_instant_since_1970(
    workers: Any, path: str, asked: dict[str, str], begin: int
) -> None:
    for worker in workers:
        answer = await worker.json(path, **asked)
        assert answer["due_from"] == begin


async def test_a_range_without_length_has_only_what_is_pending(cluster: Any, workers: Any) -> None:
    cluster.put("a", due=NOW + MINUTE)
    for at in ("2000-01-01T00:00:00Z", str(NOW + MINUTE)):
        answer = await workers[1].json(UPCOMING, by="minute", due_from=at, due_to=at)
        assert answer["counts"] == []
        assert answer["pending"] == [{"target_topic": "out", "state": "pending", "count": 1}]


@pytest.mark.parametrize(("by", "intervals"), [("minute", 60), ("hour", 24), ("day", 30)])
async def test_without_a_range_it_begins_now(workers: Any, by: str, intervals: int) -> None:
    answer = await workers[0].json(UPCOMING, by=by)
    begin = NOW // LENGTHS[by] * LENGTHS[by]
    assert (answer["due_from"], answer["due_to"]) == (begin, begin + intervals * LENGTHS[by])


@pytest.mark.parametrize("by", LENGTHS)
@given(dues=st.lists(st.integers(0, 3 * DAY), max_size=20), span=st.integers(0, DAY), start=st.integers(0, DAY))
@example(dues=[], span=DAY, start=1)
@settings(max_examples=tries(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_counts_are_those_of_the_list(
    cluster: Any, workers: Any, by: str, dues: list[int], span: int, start: int
) -> None:
    tenant = f"tenant-{next(EXAMPLES)}"
    for number, due in enumerate(dues):
        cluster.put(f"{tenant}-{number}", tenant=tenant, partition=number % 4, due=NOW + due, offset=number)
    given = {"by": by, "due_from": str(NOW + start), "due_to": str(NOW + start + span)}
    answer = await workers[1].json(UPCOMING.replace("default", tenant), **given)
    within = {"due_from": str(answer["due_from"]), "due_to": str(answer["due_to"])}
    listed = await workers[0].json(LIST.replace("default", tenant), **within)
    expected = Counter(row["due"] // LENGTHS[by] * LENGTHS[by] for row in listed["schedules"])
    assert {row[0]: row[3] for row in rows(answer)} == expected
    assert sum(each["count"] for each in answer["pending"]) == len(dues)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"by": "week"}, "by"),
        ({"due_from": "soon"}, "due_from"),
        ({"due_to": "1"}, "due_to"),
        ({"by": "minute", "due_to": str(NOW + 2 * DAY)}, "due_to"),
        ({"from": "1"}, "from"),
    ],
)
async def test_what_cannot_be_counted_is_refused_by_its_parameter(
    workers: Any, parameters: dict[str, str], field: str
) -> None:
    problem = await workers[0].json(UPCOMING, status=400, **parameters)
    assert problem["parameter"] == field


@pytest.mark.parametrize(
    ("path", "name", "choices"),
    [
        (UPCOMING, "by", "minute, hour, day"),
        ("/api/v1/tenants/default/schedules", "sort", "id, due"),
        ("/api/v1/tenants/default/schedules", "state", "pending, paused, awaiting"),
    ],
)
async def test_a_word_that_is_none_of_a_parameter_is_refused_with_those_that_are(
    workers: Any, path: str, name: str, choices: str
) -> None:
    problem = await workers[0].json(path, status=400, **{name: "week"})
    assert (problem["parameter"], problem["detail"]) == (name, f"{name}: must be one of {choices}, not 'week'")


async def test_a_partition_that_does_not_run_is_named_and_never_left_out(workers: Any) -> None:
    lane: Lane = ("light-scheduler-commands", 3)
    workers[1].lanes.states[lane] = "restoring"
    problem = await workers[0].json(UPCOMING, status=503)
    assert [each["partition"] for each in problem["missing"]] == [3]


async def test_an_answer_is_put_together_slice_by_slice_and_in_order(
    cluster: Any, workers: Any, rests: list[Any]
) -> None:
    begin = NOW // HOUR * HOUR
    targets = [f"out-{number}" for number in (3, 1, 4, 0, 2)]
    for number, target in enumerate(targets):
        cluster.put(f"a-{number}", partition=number % 2 * 2, due=begin + (5 - number) * HOUR, target=target)
        cluster.put(f"b-{number}", partition=number % 2 * 2, due=begin + HOUR, target=target)
    asked = intervals_of("default", MultiDict(due_from=str(NOW)), NOW)
    share = await own_counts(workers[0].lanes, asked)
    rests.clear()
    answer = json.loads(await document(Whole({"url": share}, dict.fromkeys(share.lanes, "url")), asked))
    assert len(rests) >= 15 + 14 + 14, "each count of a lane, each sum, and each that is encoded"
    assert [each["target_topic"] for each in answer["pending"]] == sorted(targets)
    ordered = [(each["due_from"], each["target_topic"]) for each in answer["counts"]]
    assert ordered == sorted(ordered)
    assert sum(each["count"] for each in answer["counts"]) == sum(each["count"] for each in answer["pending"]) == 10


async def test_groups_of_others_take_no_slices_of_a_tenants_counts(
    cluster: Any, workers: Any, rests: list[Any]
) -> None:
    cluster.put("own", due=NOW)
    asked = intervals_of("default", MultiDict(due_from=str(NOW)), NOW)
    table = workers[0].lanes.all["light-scheduler-commands", 0]
    overlay = Overlay(table)
    for number in range(2_000):
        each = make_entry(f"{number}", tenant="other", target=f"t-{number}", due=NOW + number * 30_000)
        overlay.put(identity_of(each), each, encode_entry(each))
    overlay.apply(changelog_offset=1, complete_at=NOW)
    assert sum(1 for _ in table.counts.each_total()) == 2_001
    rests.clear()
    found = await own_counts(workers[0].lanes, asked)
    assert [count for _, kind, count in found.counts if kind.minute is not None] == [1]
    assert len(rests) <= 2 * ROW_CELLS
