"""A page that is open while a worker is killed, in a real Chromium."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from support.application import Application

from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

NOTICED_MS, TAKEN_OVER_MS = 60_000, 120_000
SESSION_TIMEOUT = "20s"
"""Until another worker has the partitions of one that was killed: so long the page has to notice it and to be read."""


@pytest_asyncio.fixture(loop_scope="session")
async def two_workers(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    """Return an application with two workers that share the partitions."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, session_timeout=SESSION_TIMEOUT)
    with contextlib.closing(application):
        for _ in range(2):
            await application.start_worker()
        for worker in application.workers:
            await worker.shows(lambda info: [lane["state"] for lane in info["lanes"]] == ["running"] * 2)
        yield application


@pytest.mark.soak
@pytest.mark.every_case
async def test_partitions_of_a_killed_worker_are_named_until_another_one_has_them(
    two_workers: Application, page: Page
) -> None:
    serving, killed = two_workers.workers
    topic = two_workers.settings.topics.commands
    lost = [lane["partition"] for lane in (await killed.get("/info"))["lanes"]]
    await page.goto(f"{serving.url}/")
    await expect(page.get_by_text("2 workers, 4 partitions: all running.")).to_be_visible()
    killed.kill()
    trouble = page.locator(".notice.bad")
    notice = trouble.filter(has_text=f"Worker {killed.url}")  # beside one that says which request had no answer
    await expect(notice).to_be_visible(timeout=NOTICED_MS)
    for partition in lost:
        await expect(notice).to_contain_text(f"{topic}[{partition}]")
    await expect(page.get_by_text("1 worker, 4 partitions: all running.")).to_be_visible(timeout=TAKEN_OVER_MS)
    await expect(trouble).to_have_count(0)
    await page.get_by_role("link", name="Partitions").click()
    for partition in lost:
        row = page.get_by_role("row").filter(has_text=f"{topic}[{partition}]")
        await expect(row).to_contain_text(serving.url.removeprefix("http://"))
