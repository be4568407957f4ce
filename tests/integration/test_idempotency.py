"""Idempotency keys on real workers that come and go."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from support.application import Application, WorkerProcess
from support.reading import read_until
from support.waiting import eventually

pytestmark = pytest.mark.integration

SCHEDULES = "/api/v1/tenants/default/schedules"


async def post(worker: WorkerProcess, body: Any, key: str) -> tuple[int, Any]:
    headers = {"Idempotency-Key": key}
    async with (
        aiohttp.ClientSession(worker.url) as session,
        session.post(SCHEDULES, data=json.dumps(body), headers=headers) as response,
    ):
        return response.status, await response.json(content_type=None)


async def answer_of_first(worker: WorkerProcess, body: Any, key: str) -> Any:
    """Ask again until a worker has read the answer of the first request, and return it."""

    async def answered() -> Any:
        status, answer = await post(worker, body, key)
        assert status in (201, 409)  # it has not read the answer yet
        return answer if status == 201 else None

    return await eventually(answered, what="the answer of the first request")


async def test_a_key_outlives_the_worker_that_took_it(served: Application) -> None:
    (first,) = served.workers
    now = {"target": {"topic": served.target}, "payload": {"text": "once"}}
    status, answer = await post(first, now, "k")
    assert (status, answer["outcome"]) == (201, "scheduled")
    await read_until(served.bootstrap_servers, [served.target], lambda records: len(records) == 1)

    first.kill()
    first.start()
    await first.ready()
    other = await served.start_worker()
    await served.shared()
    for worker in (first, other):
        assert await answer_of_first(worker, now, "k") == answer
        assert (await post(worker, {**now, "ttl": 5}, "k"))[0] == 422
    fired = await read_until(served.bootstrap_servers, [served.target], lambda records: len(records) >= 1)
    assert [record.value for record in fired] == [b"once"]


async def test_of_requests_to_all_workers_at_one_time_one_is_carried_out(served: Application) -> None:
    workers = [*served.workers, await served.start_worker()]
    await served.shared()
    later = {"trigger": {"after": "1h"}, "target": {"topic": served.target}}
    answers = await asyncio.gather(*(post(worker, later, "k") for worker in workers * 8))
    assert {status for status, _ in answers} <= {201, 409}
    ids = {answer["id"] for status, answer in answers if status == 201}
    assert len(ids) == 1
    for worker in workers:
        assert (await answer_of_first(worker, later, "k"))["id"] == next(iter(ids))
    assert (await workers[0].get(SCHEDULES))["total"] == 1
