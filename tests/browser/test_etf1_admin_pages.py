"""The web pages of etf1's admin in a real Chromium, with a worker behind `/api` in place of the admin's server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from playwright.async_api import Browser, Locator, Page, expect
from support.application import Application
from support.etf1 import PAGES
from support.foreign import etf1_headers
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

DAY_S = 86_400
TIMEOUT_MS = 60_000


@asynccontextmanager
async def pages_over(worker_url: str) -> AsyncIterator[str]:
    """Serve the admin's pages, with `/api` from a worker, as a proxy does; give their URL."""

    async def from_worker(request: web.Request) -> web.Response:
        async with session.get(worker_url + request.raw_path) as response:
            return web.Response(body=await response.read(), status=response.status, content_type=response.content_type)

    async def page(request: web.Request) -> web.FileResponse:
        file = PAGES / request.match_info["path"]
        return web.FileResponse(file if file.is_file() else PAGES / "index.html")

    application = web.Application()
    application.router.add_get("/api/{path:.*}", from_worker)
    application.router.add_get("/{path:.*}", page)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        async with aiohttp.ClientSession() as session:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def book(application: Application, dues: dict[str, int]) -> None:
    """Schedule ids for seconds, as etf1's producers do."""
    (topic,) = (source.name for source in application.settings.inputs)
    producer = await started_producer({"bootstrap_servers": application.bootstrap_servers})
    try:
        for id, due in dues.items():
            headers = etf1_headers(due * 1_000, application.target)
            await producer.send_and_wait(topic, b'{"mail": "%b"}' % id.encode(), id.encode(), headers=headers)
    finally:
        await stop_producer(producer)


def ids(page: Page) -> Locator:
    return page.locator("table tbody tr td:first-child")


async def test_every_view_of_the_page_shows_what_is_scheduled(kafka: Kafka, tmp_path: Path, browser: Browser) -> None:
    if not PAGES.is_dir():
        pytest.skip("The admin's pages are not there: `make etf1` gets them, where etf1's repository can be cloned.")
    now = SystemClock().now()
    application = await Application.create(
        kafka.bootstrap_servers, tmp_path, commands_topics=f"pages-{tmp_path.name[-8:]}-{now}:etf1"
    )
    context = await browser.new_context(viewport={"width": 1600, "height": 1000}, locale="en-US", timezone_id="UTC")
    context.set_default_timeout(TIMEOUT_MS)
    page = await context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    with closing(application):
        worker = await application.start_worker()
        later = SystemClock().now() // 1_000 + 40 * DAY_S
        await book(application, {"order-apple": later, "order-pear": later + 60, "invoice": later + DAY_S})
        await worker.shows(lambda info: sum(lane["pending"] for lane in info["lanes"]) == 3)
        await book(application, {"fired": SystemClock().now() // 1_000 + 3})
        name = application.settings.app_id

        async def is_fired() -> bool:
            found = await worker.get(f"/api/history/scheduler/{name}/schedules")
            return bool(found["found"] == 1)

        await eventually(is_fired, every=0.2, what="a firing in the history")
        async with pages_over(worker.url) as url:
            await page.goto(url)
            await expect(page.locator(".card")).to_contain_text("3 Planned schedules")
            await expect(page.locator(".card")).to_contain_text("0 Current schedules")

            await page.goto(f"{url}/all?schedulerName={name}")
            await expect(page.get_by_text("3 schedules")).to_be_visible()
            await page.get_by_text("Trigger Date").click()
            await expect(ids(page)).to_have_text(["order-apple", "order-pear", "invoice"])
            await page.get_by_text("Trigger Date").click()
            await expect(ids(page)).to_have_text(["invoice", "order-pear", "order-apple"])
            await page.get_by_placeholder("Schedule ID").fill("order")
            await expect(page.get_by_text("2 schedules")).to_be_visible()
            await page.get_by_role("link", name="order-pear").click()
            await expect(page.locator("table tbody tr")).to_contain_text('{"mail": "order-pear"}')
            await expect(page.locator("table tbody tr")).to_contain_text(application.target)

            await page.goto(f"{url}/live?schedulerName={name}")
            await expect(page.get_by_text("No results")).to_be_visible()

            await page.goto(f"{url}/history?schedulerName={name}")
            await page.get_by_role("link", name="fired").click()
            await expect(page.locator("table tbody tr")).to_contain_text(application.target)

            await page.goto(f"{url}/scheduler/detail/{name}")
            await expect(page.locator("table tbody tr")).to_contain_text("127.0.0.1")
            await expect(page.locator("table tbody tr")).to_contain_text("pages-")
    await context.close()
    assert not errors
