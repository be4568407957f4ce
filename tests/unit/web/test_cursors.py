"""Cursors where requests need a token: only workers can read them, and all workers can."""

from __future__ import annotations

import base64
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession
from yarl import URL

from light_scheduler.access import AccessBook
from light_scheduler.model import DeadLetter, DeadLetterCause, EventType, HistoryEvent
from light_scheduler.tables.views import Query, QueryError
from light_scheduler.web.cluster.peer_client import PeerClient
from light_scheduler.web.forms.cursors import Cursors
from light_scheduler.web.looking_back import SearchPosition
from light_scheduler.web.server.listener import Listener
from light_scheduler.wire import UnsentRecord, encode_dead_letter, encode_history, history_key

NOW = 1_800_000_000_000
HISTORY, LETTERS = "light-scheduler-history", "light-scheduler-dead-letters"
OF_A = "/api/v1/tenants/a/schedules"
LISTS = [
    f"{OF_A}?limit=2",
    f"{OF_A}?limit=2&sort=due",
    f"{OF_A}/a/history?limit=2",
    "/api/v1/changes?limit=2",
    "/api/v1/dead-letters?limit=2",
]


FIRST = 1 << 62
"""The first offset of logs of many partitions: the largest that a cursor may have to hold."""


def told() -> Any:
    return dict.fromkeys(("version", "due", "sequence", "attempt", "target_topic", "reason"))


def history_of(cluster: Any, tenant: str, id: str | None, event: EventType) -> None:
    event_of = HistoryEvent(event, tenant, id, at=NOW, partition=0, **told())
    cluster.topics.add(HISTORY, history_key(tenant, id), encode_history(event_of), at=NOW)


def letter_of(cluster: Any, tenant: str) -> None:
    letter = DeadLetter(
        DeadLetterCause.REJECTED,
        at=NOW,
        reason="wrong",
        field="schedule-at",
        tenant=tenant,
        id="a",
        due=None,
        target_topic=None,
        source_partition=0,
        source_offset=5,
        key=b"k",
        value=b"v",
        headers=[],
    )
    cluster.topics.add(LETTERS, *encode_dead_letter(letter, "light-scheduler-commands"), at=NOW)


@pytest.fixture
def shared(cluster: Any, workers: Any) -> Any:
    """Return a cluster where others have done much, and tenant `a` enough for several pages of each list."""
    for _ in range(50):
        history_of(cluster, "b", "b", EventType.SCHEDULED)
        history_of(cluster, "b", None, EventType.CHANGED)
        letter_of(cluster, "b")
    for number in range(5):
        cluster.put(f"{number}", tenant="a", partition=number % 4, due=NOW, offset=1_000 + number)
        history_of(cluster, "a", "a", EventType.SCHEDULED)
        history_of(cluster, "a", None, EventType.CHANGED)
        letter_of(cluster, "a")
    return cluster


async def headers_of(cluster: Any, *tenants: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {await cluster.token('admin', *tenants)}"}


async def rows_of(shared: Any, path: str, headers: dict[str, str]) -> tuple[list[Any], list[str]]:
    """Follow the cursors, from one worker to the next; return the rows, and the cursors."""
    rows, cursors, cursor = [], list[str](), ""
    while True:
        worker = shared.workers[len(cursors) % 2]
        page = await worker.ask("GET", path + cursor, 200, headers=headers)
        rows += next(value for value in page.values() if isinstance(value, list))
        if page["next_cursor"] is None:
            return rows, cursors
        cursors.append(page["next_cursor"])
        cursor = f"&cursor={cursors[-1]}"


@pytest.mark.parametrize("path", LISTS)
async def test_a_list_goes_on_at_any_worker(shared: Any, path: str) -> None:
    rows, cursors = await rows_of(shared, path, await headers_of(shared, "a"))
    assert len(rows) == (6 if "changes" in path else 5), "the token was created, too"
    assert len(cursors) >= 2


@pytest.mark.parametrize("path", LISTS)
async def test_a_cursor_tells_nothing(shared: Any, path: str) -> None:
    _, cursors = await rows_of(shared, path, await headers_of(shared, "a"))
    for cursor in cursors:
        with pytest.raises(QueryError, match="is not a cursor"):
            SearchPosition.of(cursor)
        with pytest.raises(QueryError, match="is not a cursor"):
            Query(tenant="a", sort="due", cursor=cursor)
    assert len(set(cursors)) == len(cursors)
    assert len(set(map(len, cursors))) == 1


@pytest.mark.parametrize("path", LISTS)
async def test_a_cursor_of_ones_own_making_or_of_another_list_is_refused(shared: Any, path: str) -> None:
    headers = await headers_of(shared, "a")
    others = [each for each in LISTS if each.partition("?")[0] != path.partition("?")[0]]
    made = [SearchPosition(0, {0: 40}).cursor(), "x", "A" * 200]
    made += [(await shared.workers[0].ask("GET", each, 200, headers=headers))["next_cursor"] for each in others]
    for cursor in made:
        problem = await shared.workers[1].ask("GET", f"{path}&cursor={cursor}", 400, headers=headers)
        assert problem["parameter"] == "cursor"


@pytest.mark.parametrize("path", LISTS)
async def test_a_cursor_goes_on_once_requests_need_a_token_and_when_they_do_no_more(shared: Any, path: str) -> None:
    headers = await headers_of(shared, "a")
    sealed = (await shared.workers[0].ask("GET", path, 200, headers=headers))["next_cursor"]
    for worker in shared.workers:  # as one that has not read the tokens yet
        secret = worker.access.book.peer_secret
        worker.access.store.book = AccessBook(peer_secret=secret)
    await shared.workers[1].ask("GET", f"{path}&cursor={sealed}", 200)
    plain = (await shared.workers[0].ask("GET", path, 200))["next_cursor"]
    await shared.workers[1].ask("GET", f"{path}&cursor={plain}", 200)


@asynccontextmanager
async def listening(worker: Any) -> AsyncIterator[str]:
    """Have a worker take connections as it does outside of tests; yield the address."""
    taking = socket.create_server(("127.0.0.1", 0))
    taking.setblocking(False)
    port = taking.getsockname()[1]
    listener = Listener([taking], worker.client.server.runner.server, 10)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        listener.close()


@pytest.mark.parametrize("needs_token", [False, True])
@pytest.mark.parametrize("partitions", [1, 309, 310, 1_000])
async def test_a_search_goes_on_whatever_number_of_partitions_its_topic_has(
    shared: Any, partitions: int, needs_token: bool
) -> None:
    headers = await headers_of(shared, "a") if needs_token else {}
    logs: list[list[UnsentRecord]] = [[] for _ in range(partitions)]
    shared.topics.records[HISTORY] = logs
    for number, log in enumerate(logs):
        event_of = HistoryEvent(EventType.SCHEDULED, "a", "a", at=NOW, partition=number, **told())
        event = encode_history(event_of)
        log += [UnsentRecord(history_key("a", "a"), event, [], NOW, number, offset) for offset in (FIRST, FIRST + 1)]
    path, rows, cursor = f"{OF_A}/a/history?limit={partitions}", 0, ""
    async with listening(shared.workers[0]) as address, ClientSession(headers=headers) as client:
        while True:
            async with client.get(URL(f"{address}{path}{cursor}", encoded=True)) as response:
                page = await response.json(content_type=None)
                assert response.status == 200, page
            rows += len(page["events"])
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
    assert rows == 2 * partitions


async def test_workers_ask_each_other_with_cursors_that_earlier_versions_know(
    shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[URL] = []
    get = PeerClient.get

    def noted(self: PeerClient, url: URL, timeout: Any) -> Any:
        asked.append(url)
        return get(self, url, timeout)

    headers = await headers_of(shared, "a")
    page = await shared.workers[0].ask("GET", LISTS[1], 200, headers=headers)
    monkeypatch.setattr(PeerClient, "get", noted)
    await shared.workers[0].ask(
        "GET", f"{LISTS[1]}&id_contains=%2B+&cursor={page['next_cursor']}", 200, headers=headers
    )
    (url,) = asked
    assert url.query["id_contains"] == "+ "
    assert Query(tenant="a", sort="due", cursor=url.query["cursor"]).start() is not None


class _Access:
    """Access with tokens, before there is a secret."""

    oidc = object()
    book = AccessBook()


def test_without_a_secret_cursors_stay_as_they_are() -> None:
    cursors = Cursors(_Access())  # type: ignore[arg-type]
    assert cursors.sealed("history", "text") == "text"
    assert cursors.opened("history", "text") == "text"
    assert cursors.sealed("history", None) is None


def test_a_cursor_that_nests_too_deeply_is_refused() -> None:
    raw = b"\x93\x00\x80" + b"\x91" * 2_000 + b"\x00"
    with pytest.raises(QueryError, match="is not a cursor"):
        SearchPosition.of(base64.urlsafe_b64encode(raw).decode().rstrip("="))
