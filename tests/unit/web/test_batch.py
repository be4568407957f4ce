"""Batches: many schedules in one request, each answered as if it had come alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientError, web
from support.waiting import eventually

from light_scheduler.client import Receipt
from light_scheduler.client.errors import ResultTimeout
from light_scheduler.model import Requester
from light_scheduler.web import batch
from light_scheduler.web.commands import lines
from light_scheduler.web.commands.errors import TooManyWaitingError
from light_scheduler.web.server.middlewares import SECURITY_HEADERS

NOW = 1_800_000_000_000
SCHEDULES = "/api/v1/tenants/default/schedules"
BATCH = f"{SCHEDULES}:batch"
ONCE = {"trigger": {"at": NOW + 3_600_000}, "target": {"topic": "out"}}


def body(*rows: Any) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


async def answers(worker: Any, data: Any, path: str = BATCH, **options: Any) -> list[Any]:
    async with worker.client.post(path, data=data, **options) as response:
        assert response.status == 200, await response.text()
        return [json.loads(line) async for line in response.content]


class Body:
    """A body that is sent line by line, and does not end before `end`."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()

    def send(self, *rows: Any) -> None:
        self._queue.put_nowait(body(*rows))

    def end(self) -> None:
        self._queue.put_nowait(b"")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while sent := await self._queue.get():
            yield sent


class Held:
    """Holds back the answers to commands until `open`, and counts those that wait."""

    def __init__(self, worker: Any) -> None:
        self._ask, worker.commands.ask = worker.commands.ask, self.ask
        self._opened = asyncio.Event()
        self.asked: list[str] = []

    def open(self) -> None:
        self._opened.set()

    async def ask(self, make: Any, timeout: float) -> Any:
        self.asked.append(make(None).id)
        await self._opened.wait()
        return await self._ask(make, timeout)


async def test_each_line_is_answered_as_if_it_came_alone_in_the_order_of_the_lines(workers: Any) -> None:
    data = body({**ONCE, "id": "a"}, ONCE, {**ONCE, "id": "a"}, {**ONCE, "id": "a", "on_conflict": "fail"}, b"", {})
    found = await answers(workers[0], data)
    assert [(each["line"], each["status"]) for each in found] == [(1, 201), (2, 201), (3, 200), (4, 409), (6, 400)]
    assert [each["result"]["outcome"] for each in found[:3]] == ["scheduled", "scheduled", "updated"]
    assert found[3]["problem"]["result"]["outcome"] == "conflict"
    assert len((await workers[1].json(SCHEDULES))["schedules"]) == 2


async def test_a_line_with_a_key_and_no_id_has_the_key_as_its_id(workers: Any) -> None:
    found = await answers(workers[0], body({**ONCE, "key": "entity"}, {**ONCE, "key": "entity"}, {**ONCE, "key": None}))
    assert [(each["status"], each["result"]["outcome"]) for each in found] == [
        (201, "scheduled"),
        (200, "updated"),
        (201, "scheduled"),
    ]
    assert [each["result"]["id"] == "entity" for each in found] == [True, True, False]


@pytest.mark.parametrize(
    ("row", "parameter"),
    [
        ({**ONCE, "trigger": {"cron": "61 * * * *"}}, "trigger.cron"),
        ({**ONCE, "lable": "x"}, "lable"),
        ({**ONCE, "tenant": "another"}, "tenant"),
        ({**ONCE, "id": "*"}, "id"),
        (b"{not json", "body"),
        (b"\xff\xfe", "body"),
    ],
)
async def test_a_wrong_line_is_told_its_number_and_field_and_the_others_are_carried_out(
    workers: Any, row: Any, parameter: str
) -> None:
    before, wrong, after = await answers(workers[0], body(ONCE, row, ONCE))
    assert (before["status"], after["status"]) == (201, 201)
    assert (wrong["line"], wrong["status"], wrong["problem"]["parameter"]) == (2, 400, parameter)


async def test_a_line_that_is_too_long_is_refused_with_the_limit_and_the_next_one_is_read(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LARGEST_LINE", 300)
    padded = body({**ONCE, "payload": {"text": "x" * 300}})
    pieces = Body()
    for piece in (padded[:200], padded[200:], body(ONCE), padded):
        pieces._queue.put_nowait(piece)
    pieces.end()
    found = await answers(workers[0], pieces)
    assert [(each["line"], each["status"]) for each in found] == [(1, 413), (2, 201), (3, 413)]
    assert "at most" in found[0]["problem"]["detail"]
    exact = json.dumps({**ONCE, "payload": {"text": ""}})
    exact = exact.replace('"text": ""', f'"text": "{"x" * (300 - len(exact))}"')
    assert [each["status"] for each in await answers(workers[0], f"{exact}\n {exact}")] == [201, 413]


async def test_answers_arrive_while_the_body_is_still_being_sent(workers: Any) -> None:
    sent = Body()
    sent.send(ONCE)
    async with asyncio.timeout(30), workers[0].client.post(BATCH, data=sent) as response:
        assert json.loads(await response.content.readline())["line"] == 1
        sent.send({"id": "x"})
        assert json.loads(await response.content.readline())["status"] == 400
        sent.end()
        assert await response.content.readline() == b""
        assert response.content_type == "application/x-ndjson"
        assert {name: response.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


@pytest.mark.parametrize("size", [10, 3_000])
async def test_lines_are_read_only_while_there_is_room_for_them(
    workers: Any, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(batch, "MOST_AT_WORK", 5)
    monkeypatch.setattr(batch, "MOST_BYTES_AT_WORK", 5_000)
    held = Held(workers[0])
    rows = [{**ONCE, "id": f"{number}", "payload": {"text": "x" * size}} for number in range(200)]
    asking = asyncio.create_task(answers(workers[0], body(*rows)))
    await eventually(lambda: bool(held.asked))
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(held.asked) <= (7 if size == 10 else 1)
    held.open()
    assert [each["line"] for each in await asking] == list(range(1, 201))


async def test_lines_of_one_schedule_or_one_key_take_effect_one_after_the_other(workers: Any) -> None:
    held = Held(workers[0])
    rows = [{**ONCE, "id": "a"}, {**ONCE, "id": "b", "key": "k"}, {**ONCE, "id": "a"}, {**ONCE, "id": "c", "key": "k"}]
    asking = asyncio.create_task(answers(workers[0], body(*rows)))
    await eventually(lambda: len(held.asked) >= 2)
    for _ in range(50):
        await asyncio.sleep(0)
    assert sorted(held.asked) == ["a", "b"]
    held.open()
    assert [each["result"]["version"] for each in await asking] == [1, 1, 2, 1]


async def test_a_schedule_under_another_key_is_replaced_where_it_is(workers: Any, cluster: Any) -> None:
    cluster.put("far", partition=3)
    (found,) = await answers(workers[0], body({**ONCE, "id": "far"}))
    assert (found["status"], found["result"]["partition"]) == (200, 3)


async def test_without_waiting_the_place_of_each_command_is_answered(workers: Any) -> None:
    found = await answers(workers[0], body({**ONCE, "id": "a"}, {"id": "b"}), f"{BATCH}?wait=false")
    assert [each["status"] for each in found] == [202, 400]
    assert found[0]["sent"]["id"] == "a"
    await workers[0].ask("POST", f"{BATCH}?timeout=10", 400, body(ONCE))


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (TooManyWaitingError(), 429),
        (ResultTimeout("no answer", Receipt("default", "a", 1, 7)), 504),
        (RuntimeError("unforeseen"), 500),
    ],
)
async def test_a_line_that_fails_is_answered_and_the_next_one_goes_on(
    workers: Any, failure: Exception, status: int
) -> None:
    ask = workers[0].commands.ask

    async def failing(make: Any, timeout: float) -> Any:
        if make(None).id == "a":
            raise failure
        return await ask(make, timeout)

    workers[0].commands.ask = failing
    found = await answers(workers[0], body({**ONCE, "id": "a"}, ONCE))
    assert [(each["status"], "problem" in each) for each in found] == [(status, True), (201, False)]
    assert "unforeseen" not in str(found)


async def test_a_body_that_stops_arriving_ends_with_a_problem(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_S", 1.0)
    sent = Body()
    sent.send(ONCE)
    found = await answers(workers[0], sent)
    assert [(each["line"], each["status"]) for each in found] == [(1, 201), (2, 408)]
    assert "another request" in found[1]["problem"]["detail"]


async def test_a_line_that_arrives_byte_by_byte_has_no_more_time_than_another(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LINE_S", 0.3)
    sent = Body()

    async def trickle() -> None:
        while True:
            sent._queue.put_nowait(b"x")
            await asyncio.sleep(0.02)

    trickling = asyncio.create_task(trickle())
    try:
        async with asyncio.timeout(30):
            (found,) = await answers(workers[0], sent)
    finally:
        trickling.cancel()
    assert (found["line"], found["status"]) == (1, 408)


class AtHand:
    """A body whose pieces are all there, as a small compressed one unfolds."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = [b"", *pieces]

    async def readany(self) -> bytes:
        return self._pieces.pop()


@pytest.mark.parametrize("pieces", [[b"\n" * 100_000], [b"x" * 10_000] * 100], ids=["blank lines", "a long line"])
async def test_others_have_the_loop_while_a_body_is_read_that_is_there(pieces: list[bytes]) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    request: Any = SimpleNamespace(content=AtHand(*pieces))
    async with asyncio.timeout(30):
        found = [line.number async for line in lines.lines_of(request)]
    beside.cancel()
    assert turns >= 99
    assert found == ([] if len(pieces) == 1 else [1])


async def test_a_client_that_leaves_ends_its_batch(workers: Any) -> None:
    held, sent = Held(workers[0]), Body()
    sent.send(*({**ONCE, "id": f"{number}"} for number in range(20)))
    asking = asyncio.create_task(answers(workers[0], sent))
    await eventually(lambda: len(held.asked) == 20)
    asking.cancel()
    await asyncio.wait([asking])
    held.open()
    for _ in range(2 * batch.MOST_AT_WORK):  # no turn is left behind
        assert len(await answers(workers[0], body({"id": "x"}))) == 1


async def test_a_client_that_leaves_before_its_batch_begins_is_no_error(
    workers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = asyncio.Event()

    async def gone(*_: Any) -> None:
        left.set()
        raise ConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.StreamResponse, "prepare", gone)
    with pytest.raises(ClientError):
        await answers(workers[0], body(ONCE))
    assert left.is_set()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_token_that_ends_is_refused_from_the_next_line_on(cluster: Any) -> None:
    (worker,) = await cluster.start([0])
    text = await cluster.token("write", "default")
    sent = Body()
    sent.send(ONCE)
    headers = {"Authorization": f"Bearer {text}"}
    async with asyncio.timeout(30), worker.client.post(BATCH, data=sent, headers=headers) as response:
        assert json.loads(await response.content.readline())["status"] == 201
        await worker.access.store.revoke(text.split("_")[1], by=Requester("test", ""))
        sent.send(ONCE)
        assert json.loads(await response.content.readline())["status"] == 401
        sent.end()
    assert len(worker.commands.seen) == 1


async def test_a_message_cannot_be_a_command_for_another_tenant(cluster: Any) -> None:
    (worker,) = await cluster.start([0])
    headers = {"Authorization": f"Bearer {await cluster.token('write', 'default')}"}
    row = {**ONCE, "target": {"topic": "light-scheduler-commands"}}
    found = await answers(worker, body(row, ONCE), headers=headers)
    assert [each["status"] for each in found] == [403, 201]
