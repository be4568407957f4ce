"""What tables show of users: short words whole, nothing drawn over other lines, and reasons that name their field."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect
from support.dashboard import Dashboard
from support.pages import open_view

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

TENANT = "reading"


async def test_short_names_are_not_broken_and_stacked_marks_stay_in_their_line(
    page: Page, dashboard: Dashboard
) -> None:
    await dashboard.put(TENANT, "marks-" + "e" + "\u0301" * 60, target={"topic": "reminders"})
    await dashboard.put(TENANT, "\u200b\u2060" * 10)
    await dashboard.put(TENANT, "x" * 150, labels={"team": "y" * 100}, target={"topic": "reminders"})
    await open_view(page, f"schedules?tenant={TENANT}")
    await expect(page.get_by_text("U+0301 ×56")).to_be_visible()
    targets = page.locator('td[data-name="Target"] bdi')
    await expect(targets).to_have_count(3)
    assert await targets.evaluate_all("all => all.map(each => each.getClientRects().length)") == [1, 1, 1]
    assert await page.locator(".table").evaluate("table => table.scrollWidth <= table.clientWidth")
    assert await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


async def test_names_stay_within_their_cards_on_the_narrowest_screens(page: Page, dashboard: Dashboard) -> None:
    tenant, family = "narrow", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family"
    for id in ("W" * 20, family):
        await dashboard.put(tenant, id)
    await page.set_viewport_size({"width": 320, "height": 640})
    await open_view(page, f"schedules?tenant={tenant}")
    await expect(page.locator("tbody tr")).to_have_count(2)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await page.get_by_role("link", name="family").click()
    await expect(page.get_by_role("button", name="Fire now")).to_be_visible()
    inside = "main => [...main.querySelectorAll('.facts')].every(each => each.offsetWidth <= main.clientWidth - 30)"
    assert await page.locator("main").evaluate(inside)


async def test_a_list_of_dead_letters_says_which_field_is_wrong(page: Page, dashboard: Dashboard) -> None:
    await dashboard.reject(TENANT, "late")
    await open_view(page, f"dead-letters?tenant={TENANT}")
    await expect(page.locator('td[data-name="Reason"]')).to_contain_text("at: ")


async def test_long_values_have_room_beside_long_explanations(page: Page, dashboard: Dashboard) -> None:
    await open_view(page, "configuration")
    folder = page.get_by_role("row").filter(has_text="data_dir").locator('td[data-name="Value"] bdi').first
    await expect(folder).to_be_visible()
    assert await folder.evaluate("each => each.getBoundingClientRect().width") >= 14 * 16
    await page.set_viewport_size({"width": 360, "height": 640})
    assert await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
