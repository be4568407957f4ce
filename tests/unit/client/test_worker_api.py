"""Asking a worker over HTTP: the token, retries, and what each failure is for the caller."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, cast

import pytest
from support.waiting import eventually

from light_scheduler.client import SchedulerClient
from light_scheduler.client.questions import Question, history_question, list_question, preview_question
from light_scheduler.client.worker_api import WorkerApi
from light_scheduler.client.worker_threads import MOST_THREADS
from light_scheduler.errors import ClientError, ConfigurationError, InvalidCommand, WorkerUnreachable
from light_scheduler.model import EventType


@dataclass
class Worker:
    """Answers one after another: status and JSON; notes the requests' paths and tokens."""

    url: str
    answers: list[tuple[int, Any]]
    seen: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def worker(*answers: tuple[int, Any]) -> Iterator[Worker]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.seen.append((self.path, self.headers.get("Authorization")))
            status, document = found.answers.pop(0)
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Worker(f"http://127.0.0.1:{server.server_port}/", list(answers))
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


async def test_the_token_is_sent_and_an_id_reaches_the_worker_as_it_is() -> None:
    with worker((404, {"detail": "nothing"})) as there:
        assert await SchedulerClient(url=there.url, token="secret").get("../a b") is None
    assert there.seen == [("/api/v1/tenants/default/schedules/..%2Fa%20b", "Bearer secret")]


async def test_white_space_around_a_token_is_not_sent() -> None:
    """As in a secret of Kubernetes that was written with a line break at its end."""
    with worker((404, {"detail": "There is no such id."})) as there:
        await SchedulerClient(url=there.url, token=" secret\r\n").get("a")
    assert [token for _, token in there.seen] == ["Bearer secret"]


@pytest.mark.parametrize(
    "text", ["planted\nof it", "planted\r\nX: y", "planted of it", "planted\N{EURO SIGN}", "\n", ""]
)
async def test_a_token_that_no_header_can_hold_is_refused_without_being_shown(text: str) -> None:
    with worker() as there, pytest.raises(ConfigurationError, match="setting token: ") as caught:
        await SchedulerClient(url=there.url, token=text).get("a")
    shown = "".join(traceback.format_exception(caught.value))
    assert "planted" not in shown
    assert there.seen == []


async def test_without_a_token_none_is_sent() -> None:
    with worker((404, {"detail": "nothing"})) as there:
        assert await SchedulerClient(url=there.url).get("a") is None
    assert there.seen[0][1] is None


async def test_a_busy_worker_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("light_scheduler.client.worker_api.RETRY_AFTER_S", 0.0)
    page: dict[str, Any] = {"schedules": [], "next_cursor": None, "total": 0}
    with worker((429, {"detail": "busy"}), (429, {"detail": "busy"}), (200, page)) as there:
        assert [each async for each in SchedulerClient(url=there.url).list()] == []
    assert len(there.seen) == 3


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (401, {"detail": "send the header"}, ClientError, "the worker needs a token: give the client token="),
        (503, {"detail": "partitions are missing"}, ClientError, "partitions are missing"),
        (400, {"detail": "sort: must be id", "parameter": "sort"}, InvalidCommand, "^sort: must be id$"),
        (502, b"<html>", ClientError, "answered 502, and is not a worker"),
        (200, b"<html>", ClientError, "not from a worker"),
    ],
)
async def test_a_refusal_says_what_the_worker_says(status: int, body: Any, error: type, message: str) -> None:
    with worker((status, body)) as there, pytest.raises(error, match=message):
        await SchedulerClient(url=there.url).get("a")


async def test_nobody_there_is_an_error_of_its_own(unused_tcp_port: int) -> None:
    with pytest.raises(WorkerUnreachable):
        await SchedulerClient(url=f"http://127.0.0.1:{unused_tcp_port}").get("a")


async def test_without_an_address_the_client_says_how_to_give_one() -> None:
    with pytest.raises(ClientError, match="give the client url="):
        await SchedulerClient().get("a")


@pytest.mark.parametrize("url", ["127.0.0.1:6066", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidCommand, match="is not an address of a worker"):
        WorkerApi(url)


def test_a_token_shows_nowhere() -> None:
    assert "secret" not in repr(vars(WorkerApi("http://a:1", "secret")))


async def test_questions_to_a_busy_worker_leave_the_threads_of_the_application_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("light_scheduler.client.worker_api.RETRY_AFTER_S", 0.0)
    taken = ThreadPoolExecutor(1)
    release = Event()
    taken.submit(release.wait)
    asyncio.get_running_loop().set_default_executor(taken)
    try:
        with worker((429, {"detail": "busy"}), (404, {"detail": "nothing"})) as there:
            client = SchedulerClient(url=there.url)
            assert await asyncio.wait_for(client.get("a"), 60) is None
            await client.close()
    finally:
        release.set()


async def test_a_worker_that_stays_busy_is_an_error_that_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("light_scheduler.client.worker_api.RETRY_AFTER_S", 0.0)
    busy = [(429, {"detail": "too many requests"})] * 11
    with worker(*busy) as there, pytest.raises(ClientError, match="too many requests") as caught:
        await SchedulerClient(url=there.url).get("a")
    assert caught.value.retriable


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[str], Event]]:
    """Hold all questions to workers: their paths as they are asked, and what lets them be answered (with None)."""
    asked: list[str] = []
    release = Event()

    def asked_once(api: WorkerApi, question: Question[Any]) -> None:
        asked.append(question.path)
        release.wait(60)

    monkeypatch.setattr(WorkerApi, "asked_once", asked_once)
    yield asked, release
    release.set()


async def test_questions_that_wait_when_the_client_closes_end_with_an_error(held: tuple[list[str], Event]) -> None:
    asked, release = held
    client = SchedulerClient(url="http://127.0.0.1:1")
    questions = [asyncio.create_task(client.get(f"order-{number}")) for number in range(MOST_THREADS + 3)]
    await eventually(lambda: len(asked) == MOST_THREADS)
    await client.close()
    release.set()
    answers = await asyncio.wait_for(asyncio.gather(*questions, return_exceptions=True), 60)
    assert answers[:MOST_THREADS] == [None] * MOST_THREADS
    assert [(type(each), str(each)) for each in answers[MOST_THREADS:]] == [(ClientError, "the client was closed")] * 3
    assert len(asked) == MOST_THREADS


async def test_a_question_that_is_given_up_while_it_waits_is_cancelled(held: tuple[list[str], Event]) -> None:
    asked, _ = held
    client = SchedulerClient(url="http://127.0.0.1:1")
    questions = [asyncio.create_task(client.get(f"order-{number}")) for number in range(MOST_THREADS + 1)]
    await eventually(lambda: len(asked) == MOST_THREADS)
    questions[-1].cancel()
    await client.close()
    with pytest.raises(asyncio.CancelledError):
        await questions[-1]
    for question in questions:
        question.cancel()


async def test_a_busy_worker_is_not_asked_again_once_the_client_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("light_scheduler.client.worker_api.RETRY_AFTER_S", 0.05)
    with worker((429, {"detail": "busy"}), (404, {"detail": "nothing"})) as there:
        client = SchedulerClient(url=there.url)
        question = asyncio.create_task(client.get("a"))
        await eventually(lambda: bool(there.seen))
        await client.close()
        with pytest.raises(ClientError, match="the client was closed"):
            await asyncio.wait_for(question, 60)
    assert len(there.seen) == 1


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda: list_question("t", {"due_from": datetime(2030, 1, 1)}, None), "due_from"),
        (lambda: list_question("t", {"due_to": datetime(2030, 1, 1)}, None), "due_to"),
        (lambda: preview_question("t", "a", 1, datetime(2030, 1, 1), {}), "accepted"),
        (lambda: history_question("t", "a", datetime(2030, 1, 1), (), None), "since"),
        (lambda: history_question("t", "a", None, cast("set[EventType]", {"fird"}), None), "events"),
    ],
    ids=["due_from", "due_to", "accepted", "since", "events"],
)
def test_a_wrong_argument_of_a_question_is_named(ask: Callable[[], object], field: str) -> None:
    with pytest.raises(InvalidCommand) as caught:
        ask()
    assert caught.value.field == field
