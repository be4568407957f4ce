"""Lists of the whole cluster, asked of any worker."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest

from light_scheduler.tables.views import Lane, Mark, Query
from light_scheduler.web import handlers
from light_scheduler.web.cluster import answers as cluster_answers
from light_scheduler.web.cluster import own_answers
from light_scheduler.web.cluster.own_answers import OwnPage, own_page
from light_scheduler.web.cluster.peer_client import LOCAL_SCOPE, SCOPE_HEADER

LIST = "/api/v1/tenants/default/schedules"
NOW = 1_800_000_000_000
TOPIC = "light-scheduler-commands"


class EarlierPage(msgspec.Struct):
    """A share of a list as workers send it that send no counts."""

    lanes: list[Lane]
    rows: list[tuple[Mark, bytes]]
    reached: Mark | None


async def all_pages(worker: Any, **parameters: str) -> list[list[str]]:
    """Follow the cursors; return the ids page by page."""
    pages = []
    while True:
        page = await worker.json(LIST, **parameters)
        pages.append([schedule["id"] for schedule in page["schedules"]])
        if page["next_cursor"] is None:
            return pages
        parameters["cursor"] = page["next_cursor"]


@pytest.mark.parametrize("limit", [1, 2, 7, 40, 1000])
@pytest.mark.parametrize("sort", ["id", "due"])
async def test_pages_of_any_worker_hold_every_schedule_once_and_in_order(
    cluster: Any, workers: Any, sort: str, limit: int
) -> None:
    for number in range(40):
        # Three in each instant, spread over partitions, in another order than their ids.
        cluster.put(f"id-{number:02}", partition=number % 4, due=NOW + (40 - number) // 3, offset=number)
    expected = [f"id-{number:02}" for number in range(40)]
    if sort == "due":
        expected.sort(key=lambda id: ((40 - int(id[3:])) // 3, int(id[3:])))
    for worker in workers:
        pages = await all_pages(worker, sort=sort, limit=str(limit))
        assert [id for page in pages for id in page] == expected
        assert all(len(page) == limit for page in pages[:-1])
        assert len(pages) == -(-40 // limit)


@pytest.mark.parametrize("sort", ["id", "due"])
async def test_schedules_that_differ_only_in_their_partition_are_all_listed_one_by_one(
    cluster: Any, workers: Any, sort: str
) -> None:
    for partition in range(4):
        cluster.put("same", partition=partition)
    seen, parameters = [], {"sort": sort, "limit": "1"}
    while True:
        page = await workers[0].json(LIST, **parameters)
        seen += [schedule["source"]["partition"] for schedule in page["schedules"]]
        if page["next_cursor"] is None:
            break
        parameters["cursor"] = page["next_cursor"]
    assert seen == [0, 1, 2, 3]


async def test_ids_come_in_the_byte_order_of_utf8(cluster: Any, workers: Any) -> None:
    ids = ["z", "a", "é", "\uffff", "\U0001f600", "a/b", "A"]
    for number, id in enumerate(ids):
        cluster.put(id, partition=number % 4)
    assert await all_pages(workers[0], limit="2") == [["A", "a"], ["a/b", "z"], ["é", "\uffff"], ["\U0001f600"]]


async def test_a_schedule_that_appears_or_goes_between_pages_leaves_the_others_as_they_were(
    cluster: Any, workers: Any
) -> None:
    for number in range(0, 10, 2):
        cluster.put(f"id-{number}", partition=number % 4)
    first = await workers[0].json(LIST, limit="2")
    cluster.put("id-1", partition=1)
    cluster.put("id-9", partition=3)
    rest = await all_pages(workers[1], limit="10", cursor=first["next_cursor"])
    assert rest == [["id-4", "id-6", "id-8", "id-9"]]


async def test_a_cursor_of_one_worker_goes_on_at_another(cluster: Any, workers: Any) -> None:
    for number in range(9):
        cluster.put(f"id-{number}", partition=number % 4)
    first = await workers[0].json(LIST, limit="4")
    second = await workers[1].json(LIST, limit="4", cursor=first["next_cursor"])
    assert [schedule["id"] for schedule in second["schedules"]] == ["id-4", "id-5", "id-6", "id-7"]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"id_prefix": "b"}, ["b1", "b2"]),
        ({"id_prefix": "b", "sort": "due"}, ["b2", "b1"]),
        ({"target_topic": "mail"}, ["a1", "b2"]),
        ({"partition": f"{TOPIC}[2]"}, ["b1"]),
        ({"partition": f"{TOPIC}[1]", "sort": "due", "label": "team=x"}, ["a2"]),
        ({"state": "pending"}, ["a1", "a2", "b1", "b2"]),
        ({"label": "team=x"}, ["a1", "a2"]),
        ({"label": "team=x,kind=y"}, ["a2"]),
        ({"label_contains": "x"}, ["a1", "a2"]),
        ({"label_contains": "m=z"}, ["b1"]),
        ({"label_contains": "kind="}, ["a2"]),
        ({"label_contains": "xk"}, []),
        ({"label_contains": "eam", "label": "kind=y", "id_contains": "2", "state": "pending"}, ["a2"]),
        ({"label_contains": "team", "due_to": str(NOW + 3), "target_topic": "sms", "sort": "due"}, ["a2", "b1"]),
        ({"due_from": str(NOW + 2)}, ["a1", "b1"]),
        ({"due_from": "0", "due_to": str(NOW + 2)}, ["a2", "b2"]),
        ({"due_to": str(NOW + 2)}, ["a2", "b2"]),
        ({"due_from": str(NOW + 1), "due_to": str(NOW + 3), "sort": "due"}, ["b2", "b1"]),
        ({"due_from": "2027-01-15T08:00:00.003Z"}, ["a1"]),
        ({"id_prefix": "b", "target_topic": "mail"}, ["b2"]),
        ({"id_prefix": "nothing"}, []),
        ({"id_contains": "2"}, ["a2", "b2"]),
        ({"id_contains": "1", "id_prefix": "b", "sort": "due"}, ["b1"]),
    ],
)
async def test_filters(cluster: Any, workers: Any, parameters: dict[str, str], expected: list[str]) -> None:
    cluster.put("a1", partition=0, due=NOW + 3, target="mail", labels={"team": "x"})
    cluster.put("a2", partition=1, due=NOW, target="sms", labels={"team": "x", "kind": "y"})
    cluster.put("b1", partition=2, due=NOW + 2, target="sms", labels={"team": "z"})
    cluster.put("b2", partition=3, due=NOW + 1, target="mail")
    assert await all_pages(workers[0], **parameters) == [expected]


async def test_labels_may_be_given_one_by_one(cluster: Any, workers: Any) -> None:
    cluster.put("a", labels={"team": "x", "kind": "y"})
    cluster.put("b", labels={"team": "x"})
    page = await workers[0].json(f"{LIST}?label=team=x&label=kind=y")
    assert [schedule["id"] for schedule in page["schedules"]] == ["a"]


@pytest.mark.parametrize("sort", ["id", "due"])
async def test_a_tenant_sees_its_own_schedules_only(cluster: Any, workers: Any, sort: str) -> None:
    cluster.put("mine", partition=1)
    cluster.put("theirs", partition=1, tenant="other")
    assert await all_pages(workers[0], sort=sort) == [["mine"]]


async def test_total_is_known_when_one_page_holds_everything(cluster: Any, workers: Any) -> None:
    cluster.put("a")
    cluster.put("b", partition=1)
    assert (await workers[0].json(LIST))["total"] == 2
    assert (await workers[0].json(LIST, id_prefix="a"))["total"] == 1


@pytest.mark.parametrize("sort", ["id", "due"])
@pytest.mark.parametrize(
    ("filters", "total"),
    [
        ({}, 5),
        ({"target_topic": "mail"}, 3),
        ({"state": "paused"}, 2),
        ({"state": "paused", "target_topic": "mail"}, 1),
        ({"state": "awaiting"}, 0),
        ({"partition": f"{TOPIC}[1]"}, 2),
        ({"partition": f"{TOPIC}[1]", "state": "pending"}, 1),
        ({"target_topic": "none"}, 0),
    ],
)
async def test_total_is_exact_on_every_page_of_what_counts_know(
    cluster: Any, workers: Any, sort: str, filters: dict[str, str], total: int
) -> None:
    cluster.put("a", partition=0, target="mail")
    cluster.put("b", partition=1, target="mail", progress={"paused": True})
    cluster.put("c", partition=1, target="sms")
    cluster.put("d", partition=2, target="mail")
    cluster.put("e", partition=3, target="sms", progress={"paused": True})
    cluster.put("theirs", partition=3, tenant="other", target="mail")
    for worker in workers:
        parameters, seen = {**filters, "sort": sort, "limit": "1"}, 0
        while True:
            page = await worker.json(LIST, **parameters)
            seen += len(page["schedules"])
            assert page["total"] == total
            if page["next_cursor"] is None:
                break
            parameters["cursor"] = page["next_cursor"]
        assert seen == total


@pytest.mark.parametrize(
    "filters",
    [
        {"id_prefix": "i"},
        {"id_contains": "d"},
        {"label": "team=x"},
        {"label_contains": "x"},
        {"due_from": str(NOW)},
        {"due_to": str(NOW + 9), "state": "pending"},
    ],
)
async def test_total_is_null_on_several_pages_of_what_counts_do_not_know(
    cluster: Any, workers: Any, filters: dict[str, str]
) -> None:
    for number in range(3):
        cluster.put(f"id-{number}", partition=number, due=NOW, labels={"team": "x"})
    first = await workers[0].json(LIST, **filters, limit="1")
    last = await workers[0].json(LIST, **filters, cursor=first["next_cursor"])
    assert (first["total"], last["total"], last["next_cursor"]) == (None, None, None)
    assert (await workers[0].json(LIST, **filters))["total"] == 3


async def test_total_is_null_on_several_pages_while_an_earlier_worker_has_partitions(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_counts(share: OwnPage) -> Any:
        return cluster_answers.share_response(EarlierPage(share.lanes, share.rows, share.reached))

    monkeypatch.setattr(handlers, "share_response", without_counts)
    for number in range(4):
        cluster.put(f"id-{number}", partition=number)
    page = await workers[0].json(LIST, limit="1")
    assert ([each["id"] for each in page["schedules"]], page["total"]) == (["id-0"], None)
    assert (await workers[0].json(LIST))["total"] == 4
    of_a_lane = await workers[0].json(LIST, limit="1", partition=f"{TOPIC}[2]")
    assert of_a_lane["total"] == 1


async def test_total_counts_a_partition_once_that_two_workers_speak_for(cluster: Any) -> None:
    first, _ = await cluster.start([0, 1, 2], [2, 3])
    for number in range(4):
        cluster.put(f"id-{number}", partition=number)
    page = await first.json(LIST, limit="1")
    assert page["total"] == 4


@pytest.mark.parametrize("sort", ["id", "due"])
async def test_a_filter_that_matches_little_gives_short_pages_that_get_on(
    cluster: Any, workers: Any, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_answers, "SLICE_BUDGET", 2)
    monkeypatch.setattr(own_answers, "REQUEST_BUDGET", 5)
    for number in range(40):
        cluster.put(f"id-{number:02}", partition=number % 4, due=NOW + number)
    pages = await all_pages(workers[0], sort=sort, id_contains="29")
    assert [id for page in pages for id in page] == ["id-29"]
    assert pages[0] == []
    assert len(pages) > 2


@pytest.mark.parametrize("sort", ["id", "due"])
async def test_no_page_goes_beyond_what_the_slowest_worker_has_read(
    cluster: Any, workers: Any, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_answers, "SLICE_BUDGET", 2)
    monkeypatch.setattr(own_answers, "REQUEST_BUDGET", 5)
    for number in range(40):
        # The first worker reads much to find little, the second finds something in every row.
        slow = number % 2 == 0
        cluster.put(
            f"id-{number:02}",
            partition=0 if slow else 1,
            due=NOW + number,
            target="out" if slow and number % 8 else "rare",
        )
    expected = [f"id-{number:02}" for number in range(40) if number % 2 or number % 8 == 0]
    for worker in workers:
        pages = await all_pages(worker, sort=sort, target_topic="rare")
        assert [id for page in pages for id in page] == expected


async def test_the_loop_is_free_while_a_long_list_is_read(cluster: Any, workers: Any) -> None:
    for number in range(own_answers.SLICE_BUDGET * 4):
        cluster.put(f"id-{number}")
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(count_turns())
    page = await own_page(workers[0].lanes, Query(tenant="default", id_contains="none"))
    counter.cancel()
    assert page.reached is None
    assert turns >= 3, "one between each two of the four slices"


async def test_a_request_marked_as_local_goes_no_further(cluster: Any, workers: Any) -> None:
    await workers[1].stop()
    headers = {SCOPE_HEADER: LOCAL_SCOPE}
    async with workers[0].client.get(LIST, headers=headers) as response:
        assert response.status == 200
        assert response.content_type == cluster_answers.SHARE_MEDIA_TYPE


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=many", "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=2", "limit"),
        ("sort=name", "sort"),
        ("sort=-due", "sort"),
        ("state=done", "state"),
        ("due_from=tomorrow", "due_from"),
        ("due_from=1800000000", "due_from"),
        ("due_to=0", "due_to"),
        ("due_to=2027-01-15T08:00:00", "due_to"),
        ("due_from=1800000000001&due_to=1800000000000", "due_to"),
        ("label=team", "label"),
        ("target_topic=a%20b", "target_topic"),
        ("partition=3", "partition"),
        ("partition=x[0]y", "partition"),
        ("label_contains=a%00b", "label_contains"),
        ("id_prefix=a%00b", "id_prefix"),
        ("id_contains=a%00b", "id_contains"),
        ("cursor=", "cursor"),
        ("cursor=%21%21", "cursor"),
        ("cursor=AAAA", "cursor"),
        ("cursor=%F0%9F%98%80", "cursor"),
        ("limt=3", "limt"),
    ],
)
async def test_a_bad_parameter_is_refused_by_name(workers: Any, query: str, parameter: str) -> None:
    problem = await workers[0].json(f"{LIST}?{query}", status=400)
    assert problem["parameter"] == parameter
    assert problem["detail"].startswith(f"{parameter}: ")
    assert problem["status"] == 400


@pytest.mark.parametrize("path", [LIST, "/api/v1/upcoming"])
async def test_a_partition_that_is_none_is_refused_with_an_example(workers: Any, path: str) -> None:
    problem = await workers[0].json(path, 400, partition="x[0]y")
    assert problem["detail"] == (
        "partition: must be a commands topic and the number of a partition in brackets, "
        "such as light-scheduler-commands[3], not 'x[0]y'"
    )


async def test_the_partition_that_the_document_names_is_one_of_an_application_with_the_default_name(
    workers: Any,
) -> None:
    document = await workers[0].json("/api/v1/openapi.json")
    named = 0
    for path, methods in document["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", []):
            if parameter["name"] == "partition":
                (example,) = re.findall(r"`([^`]*)`", parameter["description"])
                await workers[0].json(path.format(tenant="default"), partition=example)
                named += 1
    assert named == 2


async def test_a_cursor_belongs_to_its_order(cluster: Any, workers: Any) -> None:
    cluster.put("a")
    cluster.put("b")
    cursor = (await workers[0].json(LIST, limit="1"))["next_cursor"]
    problem = await workers[0].json(LIST, status=400, sort="due", cursor=cursor)
    assert problem["parameter"] == "cursor"


async def test_a_tenant_that_cannot_be_is_refused(workers: Any) -> None:
    assert (await workers[0].json("/api/v1/tenants/a%2Fb/schedules", status=400))["parameter"] == "tenant"
