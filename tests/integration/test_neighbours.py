"""HTTP clients that ask for too much cost firings nothing. Real broker, real `faust worker`."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

import aiohttp
import psutil
import pytest
from rich.console import Console
from support.application import Application
from support.reading import read_until
from yarl import URL

from light_scheduler.bench.deliveries import Tally, TargetTopic, read_deliveries
from light_scheduler.bench.footprint import rss_bytes
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock

pytestmark = pytest.mark.integration

LISTS = "/api/v1/tenants/default/schedules"
PENDING = 20_000
RATE, SECONDS = 100, 6
CLIENTS, BODIES = 50, 300
BODY_BYTES = 1_300_000
MOST_GROWTH_BYTES = 200 << 20
"""48 MiB of bodies of one tenant, twice while they grow, and what listing takes. All together would be 390 MB."""


async def ask_without_pause(session: aiohttp.ClientSession, url: URL, answers: Counter[int]) -> None:
    while True:
        async with session.get(url) as response:
            await response.read()
            assert response.status in (200, 400, 429), await response.text()
            assert response.status != 429 or response.headers["Retry-After"] == "1"
            answers[response.status] += 1


async def look_without_end(session: aiohttp.ClientSession, url: str, seconds: list[float]) -> None:
    while True:
        begun = perf_counter()
        async with session.get(f"{url}/live") as response:
            assert response.status == 200
        seconds.append(perf_counter() - begun)
        await asyncio.sleep(0.1)


async def leave_unfinished(url: URL) -> socket.socket:
    """Send a body but for its end."""
    loop, connected = asyncio.get_running_loop(), socket.socket()
    connected.setblocking(False)
    await loop.sock_connect(connected, (url.host, url.port))
    head = f"POST {LISTS} HTTP/1.1\r\nHost: {url.authority}\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
    with contextlib.suppress(ConnectionError):
        await loop.sock_sendall(connected, head.encode() + bytes(BODY_BYTES - 1))
    return connected


@contextmanager
def running(tasks: list[asyncio.Task[Any]]) -> Iterator[None]:
    yield
    for task in tasks:
        assert not task.done() or task.exception() is None, task
        task.cancel()


@pytest.mark.soak
async def test_clients_that_list_preview_and_send_without_end_leave_firings_and_health_as_they_are(
    application: Application,
) -> None:
    worker = await application.start_worker()
    clock, silent, topic = SystemClock(), Progress(Console(quiet=True)), application.settings.topics.commands
    held = Workload(
        messages=PENDING,
        payloads=Payloads(100, 1),
        target=application.target,
        due=DueTimes(clock.now() + 86_400_000),
        namespace=Namespace(prefix="held"),
    )
    await asyncio.to_thread(produce, application.bootstrap_servers, topic, held, silent)
    await worker.shows(lambda info: sum(lane["pending"] for lane in info["lanes"]) == PENDING)
    before = rss_bytes(worker.pid)
    fired = Workload(
        messages=RATE * SECONDS,
        payloads=Payloads(100, 2),
        target=application.target,
        due=DueTimes(clock.now() + 3_000, RATE),
    )
    await asyncio.to_thread(produce, application.bootstrap_servers, topic, fired, silent)

    tally, answers, live = Tally(fired), Counter[int](), list[float]()
    paths = (
        LISTS,
        f"{LISTS}?label=none=such",
        "/api/v1/preview?cron_dialect=cron4j&count=1000&cron=0+0+29+2+1%7C*+*+*+*+*",
    )
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        asking = [
            asyncio.create_task(
                ask_without_pause(session, URL(worker.url + paths[number % len(paths)], encoded=True), answers)
            )
            for number in range(CLIENTS)
        ]
        looking = asyncio.create_task(look_without_end(session, worker.url, live))
        with running([*asking, looking]), ExitStack() as stack:
            for connected in await asyncio.gather(*(leave_unfinished(URL(worker.url)) for _ in range(BODIES))):
                stack.enter_context(connected)
            reading = TargetTopic(application.bootstrap_servers, application.target, 4)
            await asyncio.to_thread(read_deliveries, reading, tally, silent, clock)
            during = rss_bytes(worker.pid)

    assert tally.faults() == {"missing": 0, "duplicate": 0, "early": 0}
    assert tally.lateness.figures()["lateness_p99_ms"] < 10_000
    assert max(live) < 10
    assert answers[200] > 0
    assert answers[429] > 0
    assert before is not None
    assert during is not None
    assert during - before < MOST_GROWTH_BYTES
    assert all(lane["restarts"] == 0 for lane in (await worker.get("/info"))["lanes"])
    assert "Traceback" not in worker.log.read_text(errors="replace")


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_worker_without_descriptors_says_so_in_a_line_and_fires_on(application: Application) -> None:
    worker = await application.start_worker()
    url = URL(worker.url)
    used = psutil.Process(worker.pid).num_fds()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with application.client() as client:
        await client.schedule("warm", b"", topic=application.target, after=0)  # what firing opens, is open
        await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) == 1)
        log_bytes = worker.log.stat().st_size
        resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (used + 30, hard))
        with ExitStack() as stack:
            for _ in range(400):
                connected = stack.enter_context(socket.socket())
                connected.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    connected.connect((url.host, url.port))
            await client.schedule("meanwhile", b"", topic=application.target, after=0)
            await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) == 2)
    await worker.ready()
    assert worker.log.stat().st_size - log_bytes < 2_000
    assert "cannot take HTTP connections: Too many open files" in worker.log.read_text(errors="replace")
