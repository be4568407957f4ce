"""How much of the lanes' event loop HTTP may take."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import aiohttp
import pytest
from support.waiting import eventually

from light_scheduler.tables.views import Query
from light_scheduler.web import handlers, preview, request_limits, schedule_client
from light_scheduler.web.cluster import answers as cluster_answers
from light_scheduler.web.cluster import own_answers
from light_scheduler.web.cluster.own_answers import own_page
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits import slices, turns
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.schedule_client import ScheduleReader

LIST = "/api/v1/tenants/default/schedules"
PREVIEW = "/api/v1/preview"
NOW = 1_800_000_000_000


@pytest.fixture(autouse=True)
def refuse_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "REFUSE_AFTER_S", 0)


async def test_turns_are_taken_in_order_and_never_by_more_than_may() -> None:
    queue = Turns("requests", at_work=4, waiting=20, patience_s=60)
    at_work, most, order = 0, 0, []

    async def work(number: int) -> None:
        nonlocal at_work, most
        async with queue.turn():
            at_work += 1
            most = max(most, at_work)
            order.append(number)
            await asyncio.sleep(0)
            at_work -= 1

    await asyncio.gather(*map(work, range(12)))
    assert most == 2
    assert order == list(range(12))


async def test_a_request_beyond_those_that_may_wait_is_refused() -> None:
    queue = Turns("requests", at_work=1, waiting=1, patience_s=60)
    async with queue.turn():
        waiting = asyncio.create_task(queue.turn().__aenter__())
        await asyncio.sleep(0)
        with pytest.raises(ProblemError) as refused:
            await queue.turn().__aenter__()
    assert refused.value.problem.status == 429
    assert refused.value.headers == {"Retry-After": "1"}
    await waiting


async def test_a_request_that_has_waited_for_long_enough_is_refused() -> None:
    queue = Turns("requests", at_work=1, waiting=1, patience_s=0.01)
    async with queue.turn():
        with pytest.raises(ProblemError):
            await queue.turn().__aenter__()
    async with queue.turn():
        pass


@pytest.mark.parametrize(
    ("path", "given"),
    [("schedules", {"limit": "1000"}), ("schedules", {"id_contains": "9"}), ("upcoming", {"by": "day"})],
)
async def test_a_short_read_does_not_wait_until_a_long_one_of_another_tenant_is_done(
    cluster: Any, workers: Any, rests: list[Any], path: str, given: dict[str, str]
) -> None:
    for number in range(600):
        cluster.put(f"{number:03}", tenant="a", due=NOW, target=f"topic-{number}")
    cluster.put("own", tenant="b", partition=2, due=NOW)
    long = asyncio.create_task(workers[0].json(f"/api/v1/tenants/a/{path}", **given))
    await eventually(lambda: len(rests) > 5)
    (row,) = (await workers[0].json("/api/v1/tenants/b/schedules"))["schedules"]
    assert row["id"] == "own"
    (count,) = (await workers[0].json("/api/v1/tenants/b/upcoming"))["counts"]
    assert count["count"] == 1
    assert not long.done()
    answer = await long
    assert len(answer.get("schedules") or answer["counts"]) > 100


class Reading:
    """Reads of a worker's tables, held up until `goes_on` is set; `most` is how many there were at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.goes_on = asyncio.Event()
        self.now: dict[int, int] = {}
        self.most = 0
        monkeypatch.setattr(handlers, "own_page", self.read)

    async def read(self, lanes: Any, query: Any) -> Any:
        self.now[id(lanes)] = self.now.get(id(lanes), 0) + 1
        self.most = max(self.most, *self.now.values())
        await self.goes_on.wait()
        page = await own_page(lanes, query)
        self.now[id(lanes)] -= 1
        return page


async def test_of_a_hundred_lists_one_is_read_at_a_time_and_those_beyond_the_queue_are_429(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        cluster.put(f"id-{number:02}", partition=number % 4)
    reading = Reading(monkeypatch)
    refused = asyncio.Semaphore(0)

    async def ask() -> tuple[int, str | None, Any]:
        async with workers[0].client.get(LIST) as response:
            if response.status == 429:
                refused.release()
            return response.status, response.headers.get("Retry-After"), await response.json(content_type=None)

    asked = [asyncio.create_task(ask()) for _ in range(100)]
    expected = 100 - (request_limits.LISTS + request_limits.LISTS_WAITING) // 2  # they are all of one tenant
    for _ in range(expected):
        await refused.acquire()
    assert (await workers[0].json("/live")) == {"status": "live"}
    reading.goes_on.set()
    answers = await asyncio.gather(*asked)
    assert reading.most == 1
    assert [status for status, _, _ in answers].count(429) == expected
    for status, retry_after, document in answers:
        if status == 429:
            assert retry_after == "1"
            assert document["status"] == 429
        else:
            assert status == 200
            assert len(document["schedules"]) == 40


async def test_a_list_that_another_worker_has_no_turn_for_is_429(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Turns("lists", at_work=1, waiting=0, patience_s=60)

    async def second_is_busy(lanes: Any, query: Any) -> Any:
        if lanes is workers[1].lanes:
            async with queue.turn(), queue.turn():
                raise AssertionError("the second turn is refused")
        return await own_page(lanes, query)

    monkeypatch.setattr(handlers, "own_page", second_is_busy)
    problem = await workers[0].json(LIST, status=429)
    assert workers[1].url in problem["detail"]


async def test_a_slice_ends_by_its_time_whatever_its_rows(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0)
    for number in range(100):
        cluster.put(f"id-{number}")
    loop_turns = 0

    async def count_turns() -> None:
        nonlocal loop_turns
        while True:
            loop_turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(count_turns())
    page = await own_page(workers[0].lanes, Query(tenant="default"))
    await workers[0].json(PREVIEW, cron="* * * * *", count="100")
    counter.cancel()
    assert len(page.rows) == 100
    assert loop_turns > 200


async def test_a_request_ends_by_its_time_and_the_next_page_goes_on(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0)
    monkeypatch.setattr(own_answers, "REQUEST_TIME_S", 0)
    for number in range(20):
        cluster.put(f"id-{number:02}", partition=number % 4)
    ids: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await workers[0].json(LIST, **cursor)
        assert len(page["schedules"]) <= 2, "a row of each worker"
        ids += [schedule["id"] for schedule in page["schedules"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert ids == [f"id-{number:02}" for number in range(20)]


async def test_a_page_ends_by_its_size(cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_answers, "PAGE_BYTES", 3_000)
    monkeypatch.setattr(cluster_answers, "PAGE_BYTES", 3_000)
    for number in range(40):
        cluster.put(f"id-{number:02}", partition=number % 4, labels={"large": "x" * 1_000})
    ids: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        async with workers[0].client.get(LIST, params=cursor) as response:
            assert len(await response.read()) < 3_000 + 2_000
            page = await response.json()
        ids += [schedule["id"] for schedule in page["schedules"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert ids == [f"id-{number:02}" for number in range(40)]


@pytest.mark.parametrize(("filters", "rows"), [({}, 30), ({"id_contains": "id-1"}, 10)], ids=["all", "few"])
async def test_a_page_ends_early_only_where_most_rows_do_not_match_whatever_their_size(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch, filters: dict[str, str], rows: int
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0)
    monkeypatch.setattr(own_answers, "SEARCH_TIME_S", 0)
    for number in range(30):
        cluster.put(f"id-{number:02}", partition=number % 4, payload=bytes(20_000))
    page = await workers[0].json(LIST, **filters)
    assert (len(page["schedules"]) == rows, page["next_cursor"] is None) == (not filters, not filters)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("|".join(["0 0 29 2 1"] * 33), "cron: has 33 alternatives; at most 32 are allowed"),
        (",".join(["0"] * 1_000) + " * * * *", "cron: has 2007 characters; at most 1000 are allowed"),
    ],
)
async def test_a_cron_expression_that_takes_long_is_refused_before_it_is_compiled(
    workers: Any, expression: str, reason: str
) -> None:
    problem = await workers[0].json(PREVIEW, status=400, cron=expression, cron_dialect="cron4j")
    assert problem["parameter"] == "cron"
    assert problem["detail"] == reason


async def test_a_preview_that_takes_too_long_says_how_many_firings_it_has_time_for(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "MOST_TIME_S", 0)
    problem = await workers[0].json(PREVIEW, status=400, cron="* * * * *", count="1000")
    assert problem["parameter"] == "count"
    assert "Ask for at most 1," in problem["detail"]


async def test_previews_wait_for_lists_and_lists_for_previews(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(monkeypatch)
    listed = asyncio.create_task(workers[0].json(LIST))
    await eventually(lambda: reading.now)
    previewed = asyncio.create_task(workers[0].json(PREVIEW, every="1m"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(previewed), 0.1)
    reading.goes_on.set()
    assert len((await previewed)["next"]) == 10
    await listed


async def test_a_reader_asks_again_when_a_worker_has_too_much_to_do(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_client, "RETRY_AFTER_S", 0)
    cluster.put("a")
    refusals = 3

    async def refused_at_first(lanes: Any, query: Any) -> Any:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "later", retry_after_s=1)
        return await own_page(lanes, query)

    monkeypatch.setattr(handlers, "own_page", refused_at_first)
    async with ScheduleReader(workers[0].url) as asked:
        page = await asked.list("default", {}, None)
    assert [schedule.id for schedule in page.schedules] == ["a"]


@pytest.fixture
async def frozen() -> Any:
    """The url of a worker that takes connections and never answers."""
    held: list[asyncio.StreamWriter] = []

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for writer in held:
        writer.close()
    server.close()


async def test_a_schedule_that_is_found_waits_for_no_frozen_worker(
    cluster: Any, frozen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_answers, "GRACE_S", 0.1)
    asked, _ = await cluster.start([0], [1])
    cluster.distribution[frozen] = {"light-scheduler-commands": [2]}
    cluster.put("own", partition=0)
    cluster.put("others", partition=1)
    for id in ("own", "others"):
        async with asyncio.timeout(cluster_answers.TOTAL_TIMEOUT_S / 2):
            assert (await asked.json(f"{LIST}/{id}"))["id"] == id
    monkeypatch.setattr(cluster_answers, "TOTAL_TIMEOUT_S", 0.5)
    async with asked.client.get(f"{LIST}/nowhere", timeout=aiohttp.ClientTimeout(30)) as response:
        assert response.status == 503, "it may be with the frozen one"
