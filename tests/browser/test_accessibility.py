"""The dashboard without a mouse, in axe's eyes and on a phone, in a real Chromium."""

from __future__ import annotations

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from support.dashboard import Dashboard
from support.pages import assert_accessible, focused, open_view, tab_to, unreached

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

VIEWS = (
    "overview",
    "schedules?tenant=reach",
    "schedule?tenant=reach&id=pages",
    "upcoming?tenant=reach&by=day",
    "upcoming?group=target&by=day",
    "tenants",
    "partitions",
    "dead-letters",
    "new",
    "delays",
    "health",
    "configuration",
)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def shown(dashboard: Dashboard) -> None:
    """Have something on the pages of `VIEWS`."""
    await dashboard.put("reach", "pages", trigger={"every": "2h"}, labels={"team": "sales"})
    await dashboard.reject("reach", "refused", payload={"text": "{}"})


async def show(page: Page, view: str) -> None:
    """Show a page, and wait until it has what it asked for."""
    await open_view(page, f"{view}")
    await expect(page.locator(".loading")).to_have_count(0)


@pytest.mark.soak
async def test_details_and_an_open_dialog_hold_to_the_rules_of_axe(dashboard: Dashboard, page: Page) -> None:
    await show(page, "schedule?tenant=reach&id=pages")
    await expect(page.get_by_role("region", name="History")).to_contain_text("scheduled")
    await assert_accessible(page)
    await page.get_by_role("button", name="Reschedule").click()
    await expect(page.get_by_role("dialog").get_by_text("Next firings:")).to_be_visible()
    await assert_accessible(page)
    await page.keyboard.press("Escape")
    await show(page, "dead-letters?tenant=reach")
    await page.get_by_role("row").get_by_role("link").first.click()
    await expect(page.get_by_text("Became a dead letter")).to_be_visible()
    await assert_accessible(page)
    await expect(page.get_by_role("link", name="Dead letters").first).to_have_attribute("aria-current", "true")


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_phone_holds_to_the_rules_of_axe_and_folds_its_filters(dashboard: Dashboard, page: Page) -> None:
    await page.set_viewport_size({"width": 375, "height": 700})
    for view in VIEWS:
        await show(page, view)
        await assert_accessible(page)
    await show(page, "schedules?tenant=reach&id_prefix=x")
    await expect(page.get_by_label("Id begins with")).to_be_hidden()
    await page.get_by_text("Filters (1)").click()
    await expect(page.get_by_label("Id begins with")).to_be_visible()


async def test_a_phone_that_is_turned_to_landscape_shows_its_filters(dashboard: Dashboard, page: Page) -> None:
    await page.set_viewport_size({"width": 375, "height": 800})
    await show(page, "schedules?tenant=reach")
    await expect(page.get_by_label("Id begins with")).to_be_hidden()
    await page.set_viewport_size({"width": 800, "height": 375})
    await expect(page.get_by_label("Id begins with")).to_be_visible()


@pytest.mark.soak
async def test_a_keyboard_reaches_everything(dashboard: Dashboard, page: Page) -> None:
    await page.goto("/")
    for view in VIEWS:
        await show(page, view)
        assert await unreached(page) == [], view


async def test_the_link_to_the_content_leaves_the_page_as_it_is(dashboard: Dashboard, page: Page) -> None:
    await show(page, "schedules?tenant=reach")
    await page.keyboard.press("Tab")
    assert await focused(page) == "Skip to content"
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    assert page.url.endswith("/#/schedules?tenant=reach")
    await page.keyboard.press("Tab")
    assert await page.get_by_role("main").evaluate("main => main.contains(document.activeElement)")


async def test_an_address_that_names_no_view_has_the_start_page(dashboard: Dashboard, page: Page) -> None:
    await page.goto("/#main")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert page.url.endswith("/#/")


async def test_an_action_needs_no_mouse_and_the_focus_returns(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put("reach", "by-keyboard")
    await show(page, "schedule?tenant=reach&id=by-keyboard")
    await tab_to(page, "Cancel")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await focused(page) == "Back"
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert await focused(page) == "Cancel"
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Shift+Tab")
    assert await focused(page) == "Pause"
    await page.keyboard.press("Enter")
    await tab_to(page, "Pause")
    await page.keyboard.press("Enter")
    await expect(page.locator(".notice")).to_contain_text("Paused: by-keyboard")
    await expect(page.get_by_role("button", name="Resume")).to_be_focused()
    assert await dashboard.state("reach", "by-keyboard") == "paused"


@pytest.mark.soak
async def test_a_megabyte_of_control_characters_stays_a_small_page(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put("reach", "control", payload={"text": "\x7f" * 900_000})
    await dashboard.put("reach", "mixed", payload={"text": "\x7fx" * 450_000})
    marks = page.locator("pre .hidden-character")
    await show(page, "schedule?tenant=reach&id=control")
    await expect(marks).to_have_text(["U+007F ×20000"])
    await page.get_by_role("button", name="Show more").click()
    await expect(marks).to_have_text(["U+007F ×200000"])
    await show(page, "schedule?tenant=reach&id=mixed")
    payload = page.locator("pre")
    await expect(payload).to_contain_text("[U+007F]x[U+007F]x")
    await page.get_by_role("button", name="Show more").click()
    for _ in range(4):
        await page.get_by_role("button", name="Next part").click()
    await expect(page.get_by_text("Characters 800,001 to 900,000 of 900,000.")).to_be_visible()
    await expect(marks).to_have_count(0)
    assert await payload.evaluate("(pre) => pre.childNodes.length") == 1


async def test_an_id_of_dots_has_a_page(dashboard: Dashboard, page: Page) -> None:
    for id in (".", "..", ".hidden"):
        await dashboard.put("dots", id)
    for id in (".", ".."):
        await show(page, f"schedule?tenant=dots&id={id}")
        await expect(page.get_by_text("A browser cannot request an id of dots alone")).to_be_visible()
        await expect(page.locator("main")).to_contain_text(dashboard.application.target)
    await open_view(page, "schedule?tenant=gone&id=..")
    await expect(page.get_by_text("It is not pending.")).to_be_visible()
