"""How much of a worker counts of what is due when may take."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from light_scheduler.web.limits import counts as count_limits
from light_scheduler.web.limits import turns
from light_scheduler.web.upcoming import groups as upcoming_groups
from light_scheduler.web.upcoming import of_tenant as upcoming

TENANT = "/api/v1/tenants/default/upcoming"
ALL = "/api/v1/upcoming"
LIST = "/api/v1/tenants/default/schedules"
PREVIEW = "/api/v1/preview"
NOW = 1_800_000_000_000
HOUR = 3_600_000
COUNTS = [(upcoming, "own_counts", TENANT), (upcoming_groups, "own_series", ALL)]


class Counting:
    """Counts of tables, held up until `goes_on` is set; `begun` is how many began in each worker."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self.goes_on = asyncio.Event()
        self.begun: Counter[int] = Counter()
        self._read = getattr(module, name)
        monkeypatch.setattr(module, name, self._held_up)

    async def _held_up(self, tables: Any, asked: Any) -> Any:
        self.begun[id(tables)] += 1
        await self.goes_on.wait()
        return await self._read(tables, asked)


@pytest.fixture(params=COUNTS, ids=["tenant", "all"])
def count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Counting, str]:
    """Return a kind of counts that is held up, and its path."""
    module, name, path = request.param
    return Counting(monkeypatch, module, name), path


async def test_lists_and_previews_do_not_wait_for_a_count(
    cluster: Any, workers: Any, count: tuple[Counting, str]
) -> None:
    counting, path = count
    cluster.put("a")
    asked = asyncio.create_task(workers[0].json(path))
    while len(counting.begun) < len(workers):
        await asyncio.sleep(0)
    assert len((await workers[0].json(LIST))["schedules"]) == 1
    assert await workers[1].json(PREVIEW, cron="* * * * *", count="1")
    assert not asked.done()
    counting.goes_on.set()
    await asked


@pytest.mark.parametrize("path", [TENANT, ALL])
async def test_a_count_that_takes_too_long_is_refused_with_what_to_do(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    cluster.put("a", partition=1)
    monkeypatch.setattr(count_limits, "REQUEST_TIME_S", 0.0)
    problem = await workers[0].json(path, status=400)
    assert problem["parameter"] == "due_to"
    assert "ask for a shorter range" in problem["detail"]


async def test_a_count_that_takes_another_worker_too_long_is_refused_alike(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = upcoming_groups.own_series

    async def refused(tables: Any, asked: Any) -> Any:
        found = await read(tables, asked)
        if tables is not workers[1].lanes:
            return found
        return upcoming_groups.OwnSeries(found.lanes, [], is_refused=True)

    monkeypatch.setattr(upcoming_groups, "own_series", refused)
    assert (await workers[0].json(ALL, status=400))["parameter"] == "due_to"


async def test_those_who_ask_the_same_share_one_count(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch, upcoming_groups, "own_series")
    monkeypatch.setattr(upcoming_groups, "FRESH_S", 60.0)
    counting.goes_on.set()
    await asyncio.gather(*(workers[0].json(ALL) for _ in range(10)))
    await workers[0].json(ALL)
    assert sorted(counting.begun.values()) == [1, 1]
    await workers[0].json(ALL, top="1")
    assert sorted(counting.begun.values()) == [2, 2]


async def test_counts_beyond_those_that_may_wait_are_429(
    workers: Any, monkeypatch: pytest.MonkeyPatch, count: tuple[Counting, str]
) -> None:
    counting, path = count
    monkeypatch.setattr(turns, "REFUSE_AFTER_S", 0)

    refused = asyncio.Semaphore(0)

    async def status(hours: int) -> int:
        async with workers[0].client.get(path, params={"due_to": str(NOW + hours * HOUR)}) as response:
            if response.status == 429:
                refused.release()
            return int(response.status)

    most = (count_limits.WHOLE_COUNTS + count_limits.WHOLE_COUNTS_WAITING) // 2  # they are all of one holder
    asked = [asyncio.create_task(status(number + 1)) for number in range(most + 5)]
    for _ in range(5):
        await refused.acquire()
    assert max(counting.begun.values()) == 1
    counting.goes_on.set()
    assert Counter(await asyncio.gather(*asked)) == {200: most, 429: 5}
