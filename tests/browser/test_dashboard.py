"""The dashboard in a real Chromium, served by a real worker."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect
from support.dashboard import Dashboard

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


async def test_the_overview_says_how_the_cluster_is(dashboard: Dashboard, page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_text("1 worker, 4 partitions: all running.")).to_be_visible()
    await expect(page.get_by_text("All target topics take messages.")).to_be_visible()
    await page.get_by_role("link", name="Partitions").click()
    await expect(page.get_by_role("row")).to_have_count(5)
