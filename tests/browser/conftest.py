"""One application with a worker, and one Chromium, for all tests in a browser."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect
from support.application import Application
from support.chromium import VARIABLE, find_chromium
from support.dashboard import Dashboard

from light_scheduler.testing import Kafka

DESKTOP: ViewportSize = {"width": 1280, "height": 800}
TIMEOUT_MS = 60_000


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def dashboard(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Dashboard]:
    """Return an application with a worker that runs."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path_factory.mktemp("dashboard"))
    with contextlib.closing(application):
        await application.start_worker()
        async with aiohttp.ClientSession() as session:
            yield Dashboard(application, session)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Return a Chromium; without any on this machine, the tests are skipped, and say how to get one."""
    async with async_playwright() as playwright:
        path = find_chromium(playwright.chromium.executable_path)
        if path is None:
            pytest.skip(f"There is no Chromium: run `make browser`, or name one in {VARIABLE}.")
        chromium = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, dashboard: Dashboard) -> AsyncIterator[Page]:
    """Return an empty page of a new profile. What it reports as an error fails the test."""
    context = await browser.new_context(base_url=dashboard.worker.url, viewport=DESKTOP, timezone_id="Europe/Prague")
    context.set_default_timeout(TIMEOUT_MS)
    expect.set_options(timeout=TIMEOUT_MS)
    page = await context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if is_violation(message.text) else None)
    yield page
    await context.close()
    assert not errors


def is_violation(text: str) -> bool:
    """Return whether a message of the console is about something that the page's policy forbids."""
    return "Content Security Policy" in text or "TrustedHTML" in text
