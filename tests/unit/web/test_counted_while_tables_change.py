"""Counts of what is due when are read slice by slice; between two slices a table may change, or be closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from multidict import MultiDict
from support.web_cluster.schedules import NOW, TOPIC, forget, make_entry

from light_scheduler.web.limits import slices
from light_scheduler.web.upcoming.groups import asked_of, decode_series, own_series
from light_scheduler.web.upcoming.of_tenant import intervals_of, own_counts

AtRests = Callable[[Callable[[int], None]], list[int]]


async def counted_of_tenant(lanes: Any, **given: str) -> Any:
    return await own_counts(lanes, intervals_of("default", MultiDict(given), NOW))


async def counted_of_all(lanes: Any, **given: str) -> Any:
    return await own_series(lanes, asked_of(MultiDict(given), NOW))


@pytest.fixture
def at_rests(monkeypatch: pytest.MonkeyPatch) -> AtRests:
    """Return a function that has each row be a slice, and something done at each rest. It returns the rests so far."""

    def have_done(do: Callable[[int], None]) -> list[int]:
        rest, rests = slices.LoopTime.rest, list[int]()

        async def noted(self: slices.LoopTime) -> None:
            rests.append(len(rests) + 1)
            do(rests[-1])
            await rest(self)

        monkeypatch.setattr(slices, "ROWS_AT_ONCE", 1)
        monkeypatch.setattr(slices, "SLICE_S", 0.0)
        monkeypatch.setattr(slices.LoopTime, "rest", noted)
        return rests

    return have_done


@pytest.mark.parametrize("by", ["minute", "hour", "day"])
async def test_a_table_is_read_slice_by_slice_as_it_was_when_that_began(
    cluster: Any, workers: Any, at_rests: AtRests, by: str
) -> None:
    for number in range(20):
        cluster.put(f"{number}", target=f"t{number}", due=NOW)
        cluster.put(f"{number}", tenant=f"other-{number}", due=NOW)
    table = workers[0].lanes.all[TOPIC, 0]

    def empty(rest: int) -> None:
        if rest == 40:  # in the midst of what wakes when, after 20 groups
            for number in range(20):
                forget(table, make_entry(f"{number}", target=f"t{number}", due=NOW))

    rests = at_rests(empty)
    found = await counted_of_tenant(workers[0].lanes, by=by, due_from=str(NOW))
    assert len(rests) > 40
    counts = {(kind.topic, kind.minute is None): count for lane, kind, count in found.counts if lane == (TOPIC, 0)}
    assert {topic for topic, is_all in counts if is_all} == {f"t{number}" for number in range(20)}
    assert set(counts.values()) == {1}, "none is counted in part"


async def test_groups_of_a_table_that_changes_while_it_is_read_count_nothing_below_zero(
    cluster: Any, workers: Any, at_rests: AtRests
) -> None:
    for number in range(20):
        cluster.put(f"{number}", target=f"t{number}", due=NOW)
    table = workers[0].lanes.all[TOPIC, 0]

    def empty(rest: int) -> None:
        if rest == 30:  # in the midst of what wakes when, after 20 groups and a tenant
            for number in range(20):
                forget(table, make_entry(f"{number}", target=f"t{number}", due=NOW))

    rests = at_rests(empty)
    found = await counted_of_all(workers[0].lanes, due_from=str(NOW))
    assert len(rests) > 30
    (series,) = decode_series(found.series[found.lanes.index((TOPIC, 0))])
    assert (series.name, series.pending) == ("default", 20)
    assert len(series.counts) == 1
    assert all(1 <= count <= 20 for _, count in series.counts)


@pytest.mark.parametrize("counted", [counted_of_tenant, counted_of_all])
async def test_a_table_that_is_closed_while_another_one_is_read_is_not_read(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch, at_rests: AtRests, counted: Any
) -> None:
    lanes = workers[0].lanes
    first, second, *_ = sorted(lanes.all)
    for number in range(5):
        cluster.put(f"{number}", partition=first[1], due=NOW)

    def close(rest: int) -> None:
        del rest
        lanes.states[second] = "closing"
        monkeypatch.setattr(lanes.all[second]._counts, "store", None)

    assert lanes.all[second].counts is not None
    at_rests(close)
    found = await counted(lanes, by="hour")
    assert first in found.lanes
    assert second not in found.lanes
