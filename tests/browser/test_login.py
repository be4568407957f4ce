"""The login of the dashboard in a real Chromium."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from support.application import Application
from support.cases import by_day
from support.dashboard import Dashboard
from support.pages import assert_accessible, confirm, unreached
from support.waiting import eventually

from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Dashboard]:
    """Return an application of its own: from the first token on, every request needs one."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path)
    with contextlib.closing(application):
        await application.start_worker()
        async with aiohttp.ClientSession() as session:
            yield Dashboard(application, session)


async def revoke(guarded: Dashboard, admin: str, name: str) -> None:
    """Revoke the token of a name with another one."""
    headers = {"Authorization": f"Bearer {admin}"}
    async with aiohttp.ClientSession(guarded.worker.url, headers=headers) as session:
        async with session.get("/api/v1/tokens") as response:
            (id,) = [token["id"] for token in (await response.json())["tokens"] if token["name"] == name]
        async with session.delete(f"/api/v1/tokens/{id}") as response:
            assert response.status == 200, await response.text()


async def log_in(page: Page, token: str) -> None:
    """Log in on the page for it, which has to be there or come."""
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Log in").click()


@pytest.mark.parametrize("view", by_day(1, ["schedules?tenant=shop&sort=due", "partitions"]))
@pytest.mark.soak
async def test_a_page_whose_token_is_revoked_asks_for_another_one_and_comes_back(
    guarded: Dashboard, page: Page, view: str
) -> None:
    await guarded.put("shop", "guarded")
    admin = await guarded.new_token("boss", "--role", "admin", "--all-tenants")
    token = await guarded.new_token("clerk", "--role", "write", "--all-tenants")
    await page.goto(f"{guarded.worker.url}/login")
    await log_in(page, token)
    await expect(page.get_by_role("navigation")).to_be_visible()
    await page.goto(f"{guarded.worker.url}/#/{view}")
    await expect(page.get_by_role("row").nth(1)).to_be_visible()
    await revoke(guarded, admin, "clerk")
    if view != "partitions":  # which follows a stream by itself
        await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert page.url.endswith(f"/login#/{view}")
    await log_in(page, admin)
    await expect(page.get_by_role("row").nth(1)).to_be_visible()
    assert page.url == f"{guarded.worker.url}/#/{view}"


async def test_a_writer_logs_in_changes_a_schedule_and_logs_out(guarded: Dashboard, page: Page) -> None:
    await guarded.put("shop", "guarded")
    token = await guarded.new_token("clerk", "--role", "write", "--tenant", "shop")
    start = f"{guarded.worker.url}/"

    async def is_asked_for_a_token() -> bool:
        await page.goto(start)
        return page.url.endswith("/login")

    await eventually(is_asked_for_a_token, what="the login page")
    await assert_accessible(page)
    assert await unreached(page) == []
    await page.goto(f"{start}#/schedule?tenant=shop&id=guarded")
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Log in").click()
    await confirm(page, "Pause", "Pause")
    await expect(page.locator(".notice")).to_contain_text("Paused: guarded")
    await expect(page.get_by_role("region", name="History")).to_contain_text("clerk")
    await expect(page.get_by_role("navigation").get_by_role("link")).to_have_text(
        ["Schedules", "Upcoming", "Dead letters"]
    )
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert await is_asked_for_a_token()
