"""Pages about what takes long or goes wrong, of real workers in these states: nothing that they show is made up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from rich.console import Console
from support.application import Application, WorkerProcess
from support.pages import assert_accessible, assert_fits, open_view
from support.processes import rebuilders
from support.reading import read_until
from support.waiting import eventually

from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.workload import DueTimes, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.tables import rebuilding
from light_scheduler.testing import Kafka

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]

MANY = rebuilding.MANY_OFFSETS + 5_000
"""Schedules whose state is rebuilt by a process of its own."""

HOUR_MS = 3_600_000
LONG_MS = 60_000


@contextlib.contextmanager
def running_on(pid: int) -> Iterator[None]:
    """Let a process that was stopped meanwhile run on in the end, if it is still there."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.asynccontextmanager
async def stopped_rebuilder(worker: WorkerProcess) -> AsyncIterator[Any]:
    """Stop the process that rebuilds a table once the worker shows how far that is, which is yielded.

    It runs in short bursts until then, so that it cannot be done before it is stopped.
    """
    pid = await eventually(lambda: next(rebuilders(worker.pid), 0), every=0.001, what="a process that rebuilds")

    async def shown() -> Any:
        os.kill(pid, signal.SIGSTOP)
        document = await worker.get("/info")
        if any(lane["restore"] for lane in document["lanes"]):
            return document
        os.kill(pid, signal.SIGCONT)
        return None

    with running_on(pid):
        yield await eventually(shown, what="how far it is")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def warm(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Application]:
    """Return an application with two workers, each of which keeps copies of the other's partitions."""
    folder = tmp_path_factory.mktemp("warm")
    # One that stands still for a while stays a member: who does not answer is told of for as long as it is one.
    options = {"standby_replicas": "1", "probe_interval": "2s", "session_timeout": "60s"}
    application = await Application.create(kafka.bootstrap_servers, folder, **options)
    with contextlib.closing(application):
        for _ in range(2):
            await application.start_worker()
        await application.shared()
        yield application


@pytest.mark.soak
async def test_partitions_show_warm_standbys_and_probes(warm: Application, page: Page) -> None:
    first, second = (urlsplit(worker.url).netloc for worker in warm.workers)
    await open_view(page, "partitions", warm.workers[0].url)
    rows = page.get_by_role("row").filter(has_text=warm.settings.topics.commands)
    await expect(rows).to_have_count(4)
    await expect(rows.filter(has_text="up to date")).to_have_count(4, timeout=LONG_MS)
    for owner, standby in ((first, second), (second, first)):
        own = rows.filter(has=page.locator('td[data-name="Owner"]', has_text=owner))
        await expect(own).to_have_count(2)
        for number in range(2):
            await expect(own.nth(number).locator('td[data-name="Warm standbys"]')).to_contain_text(standby)
    probes = page.locator('td[data-name="Last probe"]')
    await expect(probes.filter(has_text="ms")).to_have_count(4, timeout=LONG_MS)
    await assert_accessible(page)
    await assert_fits(page)


async def send(application: Application, topic: str, number: int) -> None:
    producer = await started_producer({"bootstrap_servers": application.bootstrap_servers})
    try:
        for value in range(number):
            await producer.send_and_wait(topic, b"%d" % value, key=b"k")
    finally:
        await stop_producer(producer)


async def add_rule(application: Application, name: str, **rule: str) -> None:
    url = f"{application.workers[0].url}/api/v1/delays/{name}"
    async with aiohttp.ClientSession() as session, session.put(url, json=rule) as response:
        assert response.status == 201, await response.text()


@pytest.mark.soak
@pytest.mark.every_case
async def test_delay_rules_show_what_waits_what_was_forwarded_and_who_does_not_answer(
    warm: Application, page: Page
) -> None:
    carts, left, clicks, seen = (f"{warm.target}-{name}" for name in ("carts", "left", "clicks", "seen"))
    await warm.create_topic(carts, partitions=1, **{"retention.ms": str(HOUR_MS)})
    for topic in (left, clicks, seen):
        await warm.create_topic(topic, partitions=1)
    await send(warm, carts, 3)
    await send(warm, clicks, 2)
    await add_rule(warm, "reminder", source=carts, delay="24h", target=left)
    await add_rule(warm, "soon", source=clicks, delay="1s", target=seen)
    await open_view(page, "delays", warm.workers[0].url)
    rules, progress = (
        page.get_by_role("region", name=name, exact=True) for name in ("Delay rules", "Progress of delay rules")
    )
    reminder = rules.get_by_role("row").filter(has_text="reminder")
    await expect(reminder).to_contain_text("1 d")
    await expect(reminder).to_contain_text("in force")
    await expect(reminder.locator(".warning")).to_contain_text("keeps records for 1h", timeout=LONG_MS)
    waiting = progress.get_by_role("row").filter(has_text="reminder")
    await expect(waiting.locator('td[data-name="Lag"]')).to_have_text("3", timeout=LONG_MS)
    await expect(waiting.locator('td[data-name="Next due"]')).to_contain_text("in 23 h")
    await expect(waiting).to_contain_text("running")
    done = progress.get_by_role("row").filter(has_text="soon")
    await expect(done.locator('td[data-name="Forwarded"]')).to_have_text("2", timeout=LONG_MS)
    await expect(done.locator('td[data-name="Lag"]')).to_have_text("0")
    await assert_accessible(page)
    await assert_fits(page)
    gone = warm.workers[1]
    with running_on(gone.pid):
        gone.send_signal(signal.SIGSTOP)
        await expect(page.get_by_text("These workers do not answer")).to_contain_text(gone.url, timeout=LONG_MS)
        await assert_accessible(page)
    await expect(page.get_by_text("These workers do not answer")).to_have_count(0, timeout=LONG_MS)


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_target_topic_that_is_gone_stands_out_until_it_is_back(warm: Application, page: Page) -> None:
    lost = f"{warm.target}-lost"
    await warm.create_topic(lost, partitions=1)
    await warm.shared()
    async with warm.client() as client:
        await client.schedule("first", b"x", topic=lost, after=0, key="same")
        await read_until(warm.bootstrap_servers, [lost], lambda records: len(records) == 1)
        await warm.delete_topics(lost)
        await client.schedule("waits", b"x", topic=lost, after="1s", key="same")
    await open_view(page, "overview", warm.workers[0].url)
    row = page.get_by_role("region", name="Target topics that are unavailable").get_by_role("row").filter(has_text=lost)
    await expect(row.locator('td[data-name="Waiting"]')).to_have_text("1", timeout=LONG_MS)
    await expect(row.locator('td[data-name="Unavailable since"]')).to_contain_text("ago")
    await assert_accessible(page)
    await assert_fits(page)
    await warm.create_topic(lost, partitions=1)
    await expect(page.get_by_text("All target topics are available.")).to_be_visible(timeout=LONG_MS)


@pytest_asyncio.fixture(loop_scope="session")
async def large(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    """Return an application whose only partition has many schedules, and no worker."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, partitions="1")
    with contextlib.closing(application):
        due = DueTimes(SystemClock().now() + HOUR_MS)
        workload = Workload(messages=MANY, payloads=Payloads(20, 1), target=application.target, due=due)
        commands = application.settings.topics.commands
        await asyncio.to_thread(produce, kafka.bootstrap_servers, commands, workload, Progress(Console(quiet=True)))
        worker = await application.start_worker()
        await worker.shows(lambda info: sum(lane["pending"] for lane in info["lanes"]) == MANY)
        worker.kill()
        yield application


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_partition_that_is_restored_shows_how_far_it_is(large: Application, page: Page) -> None:
    """The process that rebuilds the state is stopped for a while, as by a disk that hangs."""
    worker = large.new_worker()
    worker.start()
    async with stopped_rebuilder(worker) as progress:
        partition = f"{large.settings.topics.commands}[0]"
        assert progress["lanes"][0]["state"] == "restoring"
        await open_view(page, "partitions", worker.url)
        row = page.get_by_role("row").filter(has_text=partition)
        await expect(row).to_contain_text("restoring")
        await expect(row).to_contain_text(f"% of {progress['lanes'][0]['restore']['total']:,}")
        await expect(row.get_by_role("progressbar")).to_be_visible()
        await assert_accessible(page)
        await open_view(page, "overview", worker.url)
        await expect(page.locator(".notice.bad").first).to_contain_text(
            f"Partition {partition} is restoring on {worker.url}"
        )
        await assert_accessible(page)
        await open_view(page, "schedules", worker.url)
        await expect(page.get_by_role("alert")).to_contain_text(f"No worker answered for {partition}")
        said = await page.get_by_role("alert").locator("p").inner_text()
        assert said.lower().count("try again") == 1
    await worker.ready()
    await page.get_by_role("link", name="Try again").click()
    await expect(page.get_by_role("row")).to_have_count(51)
    await open_view(page, "overview", worker.url)
    await expect(page.get_by_text("1 worker, 1 partition: all running.")).to_be_visible()
