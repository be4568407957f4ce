"""A tenant that keeps busy all connections that it can get of a worker shuts out nobody."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.application import Application, WorkerProcess
from support.waiting import eventually

from light_scheduler.devkit.worker_process import worker_environment
from light_scheduler.web.forms.problems import RETRY_AFTER_S
from light_scheduler.web.server.listener import most_connections

pytestmark = pytest.mark.integration

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]
SCHEDULES = "/api/v1/tenants/{}/schedules"
OF_A = SCHEDULES.format("a")
ROUNDS = 20
LATE = aiohttp.ClientTimeout(total=5)
"""What counts as late here: other tests may take most of the machine. Without them, an answer takes some 10 ms."""

PATIENT = aiohttp.ClientTimeout(total=60)
"""For who prepares and watches."""


class Slow(NamedTuple):
    """Requests that stay at work for as long as they can; `reads` says whether their client reads the answers."""

    share: float
    start: str
    more: str = "\r\n"
    reads: bool = True


OF_A_TOKEN = (
    Slow(0.1, "GET /api/v1/events"),
    Slow(0.05, f"GET {OF_A}", reads=False),
    Slow(0.05, f"POST {OF_A}:batch", "Transfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"),
    Slow(0.9, f"POST {OF_A}", "Content-Length: 1000\r\n\r\n{"),
)


def token_for(application: Application, name: str, *words: str) -> str:
    command = [*PROGRAM, "tokens", "create", name, *words, "--json"]
    environment = worker_environment(application.settings)
    made = subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=60)
    token: str = json.loads(made.stdout)["token"]
    return token


async def keep_busy(worker: WorkerProcess, slow: Slow, token: str) -> None:
    """Send a request over a new connection whenever the worker has closed the one before."""
    address = urlsplit(worker.url)
    header = f"{slow.start} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n{slow.more}"
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1)
            try:
                writer.write(header.encode())
                if not slow.reads:
                    await asyncio.Event().wait()
                is_refused = (await reader.read(12)).endswith(b"429")
                while await reader.read(1 << 16):
                    pass
                if is_refused:
                    await asyncio.sleep(RETRY_AFTER_S)  # as the refusal asks for
            finally:
                writer.transport.abort()


@asynccontextmanager
async def attacked(worker: WorkerProcess, token: str, kinds: tuple[Slow, ...]) -> AsyncIterator[None]:
    """Have requests of each kind sent to a worker, together more than it has connections."""
    tasks = [
        asyncio.create_task(keep_busy(worker, slow, token))
        for slow in kinds
        for _ in range(int(slow.share * most_connections()))
    ]
    try:
        yield
        assert not [task for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def metric_in(text: str, name: str) -> float:
    """Return a metric of all tenants together."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == f"light_scheduler_{name}")


class Client:
    """Asks with a token, over a new connection each time."""

    def __init__(self, token: str, timeout: aiohttp.ClientTimeout) -> None:
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = timeout

    async def ask(self, method: str, url: str, **options: Any) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession(headers=self._headers, timeout=self._timeout) as session,
            session.request(method, url, allow_redirects=False, **options) as response,
        ):
            return response.status, await response.text()

    async def metric(self, worker: WorkerProcess, name: str) -> float:
        """Return a metric of a worker, of all tenants together."""
        status, text = await self.ask("GET", f"{worker.url}/metrics")
        assert status == HTTPStatus.OK, text
        return metric_in(text, name)


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_tenant_that_keeps_busy_all_connections_it_can_get_shuts_out_nobody(application: Application) -> None:
    ops = Client(token_for(application, "ops", "--role", "admin", "--all-tenants"), PATIENT)
    greedy = token_for(application, "greedy", "--role", "write", "--tenant", "a")
    token = token_for(application, "other", "--role", "write", "--tenant", "b")
    other, target = Client(token, LATE), application.target
    here, elsewhere = [await application.start_worker() for _ in range(2)]
    once = {"trigger": {"after": "1h"}, "target": {"topic": target}, "payload": {"text": "x" * 20_000}}

    async def share_partitions() -> bool:
        answers = [await ops.ask("GET", f"{worker.url}/info") for worker in (here, elsewhere)]
        lists = [await ops.ask("GET", worker.url + OF_A) for worker in (here, elsewhere)]
        has_lanes = all(status == HTTPStatus.OK and json.loads(text)["lanes"] for status, text in answers)
        return has_lanes and all(status == HTTPStatus.OK for status, _ in lists)

    await eventually(share_partitions, within=60, what="two workers with partitions")
    for _ in range(60):  # a list of them is too long for the buffers of a client that does not read it
        status, text = await ops.ask("POST", here.url + OF_A, json=once)
        assert status == HTTPStatus.CREATED, text

    async def others_are_answered() -> None:
        for _ in range(ROUNDS):
            for expected, method, url, options in (
                (HTTPStatus.OK, "GET", here.url + SCHEDULES.format("b"), {}),
                (HTTPStatus.CREATED, "POST", here.url + SCHEDULES.format("b"), {"json": once}),
                (HTTPStatus.OK, "GET", elsewhere.url + SCHEDULES.format("b"), {}),
                (HTTPStatus.OK, "GET", f"{here.url}/ready", {}),
                (HTTPStatus.SEE_OTHER, "POST", f"{here.url}/login", {"data": {"token": token}}),
            ):
                status, text = await other.ask(method, url, **options)
                assert status == expected, (method, url, text)

    async def are_busy(least: int, most: int) -> bool:
        status, text = await ops.ask("GET", f"{here.url}/metrics")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:  # they open, and it is not known yet whose they are
            return False
        return least <= metric_in(text, "busy_connections") - 1 <= most  # without that of the question

    most, of_anybody = most_connections(), most_connections() * 3 // 4
    async with attacked(here, greedy, OF_A_TOKEN):
        await eventually(lambda: are_busy(of_anybody, most), within=60, what="connections that one tenant keeps busy")
        await others_are_answered()
    await eventually(lambda: are_busy(0, 0), within=60, what="connections that are free again")
    assert await ops.metric(here, "tenant_connections_refused_total") > 0
