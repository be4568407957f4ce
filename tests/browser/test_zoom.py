"""The chart of what is ahead: any range of it zoomed into, with a mouse, a finger, or a keyboard alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, CDPSession, FloatRect, Locator, Page, Route, expect
from support.dashboard import Dashboard
from support.pages import assert_accessible, go_back, open_view

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session"), pytest.mark.soak]

TENANT = "zoomed"
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MAY_18 = 1_999_987_200_000  # 2033-05-18 00:00 UTC
DAYS = f"upcoming?tenant={TENANT}&by=day&from={MAY_18}"
HOURS = "2 schedules due from 2033-05-19 00:00 UTC to 2033-05-22 00:00 UTC"
HINT = "Drag over bars to zoom in"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def due(dashboard: Dashboard) -> None:
    """Have schedules due on the first, the second, the fourth and the last of thirty days."""
    for id, day in (("first", 0), ("second", 1), ("fourth", 3), ("last", 29)):
        await dashboard.put(TENANT, id, trigger={"at": MAY_18 + day * DAY + 5 * HOUR + 7 * MINUTE})


@pytest_asyncio.fixture(loop_scope="session")
async def in_utc(page: Page) -> AsyncIterator[Page]:
    """Show the thirty days, and times in UTC."""
    await open_view(page, DAYS)
    await page.get_by_label("Times").select_option("utc")
    await expect(bars(page)).to_have_count(4)
    yield page


def bars(page: Page) -> Locator:
    """The bars that have schedules."""
    return page.get_by_role("group", name="Schedules ahead").get_by_role("link")


async def box(bar: Locator) -> FloatRect:
    """Where a bar can be pointed at."""
    found = await bar.locator(".reach").bounding_box()
    assert found is not None
    return found


async def across(page: Page, first: int, last: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where a drag from one of the bars to another begins and ends."""
    begin, end = await box(bars(page).nth(first)), await box(bars(page).nth(last))
    y = begin["y"] + begin["height"] / 2
    return (begin["x"] + begin["width"] / 2, y), (end["x"] + end["width"] / 2, y + 9)


async def test_bars_that_a_mouse_drags_over_are_zoomed_into_and_back(in_utc: Page) -> None:
    page = in_utc
    await expect(page.get_by_text(HINT)).to_be_visible()
    begin, end = await across(page, 1, 2)
    await page.mouse.move(*begin)
    await page.mouse.down()
    await page.mouse.move((begin[0] + end[0]) / 2, begin[1])
    await page.mouse.move(*end)
    await expect(page.get_by_text("2 schedules from 2033-05-19 00:00 UTC to 2033-05-22 00:00 UTC.")).to_be_visible()
    await expect(page.locator(".bars .chosen")).to_be_visible()
    assert await page.evaluate("String(getSelection())") == "", "no text is selected by it"
    await page.mouse.up()
    await expect(page.get_by_text(HOURS)).to_be_visible()
    await expect(page.get_by_label("Intervals")).to_have_value("hour")
    await expect(page.get_by_label("From")).to_have_value("2033-05-19T00:00Z")
    await expect(page.get_by_label("Until")).to_have_value("2033-05-22T00:00Z")
    await expect(bars(page)).to_have_count(2)
    await assert_accessible(page)
    await page.get_by_role("link", name="Later").click()
    await expect(page.get_by_text("from 2033-05-22 00:00 UTC to 2033-05-25 00:00 UTC")).to_be_visible()
    await go_back(page)
    await go_back(page)
    await expect(page.get_by_text("4 schedules due from 2033-05-18 00:00 UTC")).to_be_visible()
    await expect(page.get_by_text(HINT)).to_be_visible()


async def test_a_drag_can_begin_between_bars_and_end_beyond_the_chart(in_utc: Page) -> None:
    page = in_utc
    (x, y), _ = await across(page, 3, 3)
    between, _ = await across(page, 2, 2)
    await page.mouse.move((between[0] + x) / 2, y)
    await page.mouse.down()
    await page.mouse.move(x, y)
    await page.mouse.move(x + 500, y)
    await page.mouse.up()
    await expect(page.get_by_text("1 schedule due from")).to_be_visible()
    await expect(page.get_by_text("to 2033-06-17 00:00 UTC")).to_be_visible()


async def test_a_click_that_hardly_moves_opens_its_bar(in_utc: Page) -> None:
    page = in_utc
    (x, y), _ = await across(page, 1, 1)
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x + 2, y + 1)
    await page.mouse.up()
    await expect(page.get_by_text("1 schedule due from 2033-05-19 00:00 UTC to 2033-05-20 00:00 UTC")).to_be_visible()


async def test_a_button_that_is_let_go_outside_of_the_chart_drags_over_nothing(in_utc: Page) -> None:
    page = in_utc
    (x, y), (other, _) = await across(page, 1, 2)
    frame = await page.locator(".bars .frame").bounding_box()
    assert frame is not None
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x, frame["y"] + frame["height"] + 10)
    await page.mouse.up()
    await page.mouse.move(x, y)
    await page.mouse.move(other, y)
    await expect(page.locator(".bars .chosen")).to_have_count(0)
    await expect(page.get_by_text(HINT)).to_be_visible()


async def test_an_arrow_leaves_what_is_selected_and_enter_opens_where_the_focus_is(in_utc: Page) -> None:
    page = in_utc
    await bars(page).nth(1).focus()
    await page.keyboard.press("Shift+ArrowRight")
    await expect(page.locator(".bars .chosen")).to_be_visible()
    await page.keyboard.press("ArrowLeft")
    await expect(bars(page).first).to_be_focused()
    await expect(page.locator(".bars .chosen")).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 schedule due from 2033-05-18 00:00 UTC to 2033-05-19 00:00 UTC")).to_be_visible()


async def test_a_keyboard_selects_bars_zooms_in_and_out_and_goes_back(in_utc: Page) -> None:
    page = in_utc
    await bars(page).first.focus()
    await page.keyboard.press("ArrowRight")
    await expect(bars(page).nth(1)).to_be_focused()
    await page.keyboard.press("Shift+ArrowRight")
    status = page.locator("figure.bars [aria-live]")
    await expect(status).to_contain_text("1 schedule from 2033-05-19 00:00 UTC to 2033-05-21 00:00 UTC. Enter zooms in")
    await page.keyboard.press("Escape")
    await expect(status).to_contain_text(HINT)
    for _ in range(2):
        await page.keyboard.press("Shift+ArrowRight")
    await expect(status).to_contain_text("2 schedules from 2033-05-19 00:00 UTC to 2033-05-22 00:00 UTC")
    await assert_accessible(page)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text(HOURS)).to_be_visible()
    await expect(page.locator("main")).to_be_focused()
    await page.get_by_role("link", name="Zoom out").press("Enter")
    await expect(page.get_by_label("Intervals")).to_have_value("day")
    await go_back(page)
    await expect(page.get_by_text(HOURS)).to_be_visible()
    await go_back(page)
    await expect(page.get_by_text("4 schedules due from 2033-05-18 00:00 UTC")).to_be_visible()


async def test_a_range_can_be_typed(in_utc: Page) -> None:
    page = in_utc
    await page.get_by_label("Intervals").select_option("")
    await page.get_by_label("From").fill("2033-05-18T05:00Z")
    await page.get_by_label("Until").fill("tomorrow")
    await page.keyboard.press("Enter")
    assert "is no instant" in await page.get_by_label("Until").evaluate("input => input.validationMessage")
    await page.get_by_label("Until").fill("2033-05-18T04:00Z")
    await page.keyboard.press("Enter")
    assert "after the beginning" in await page.get_by_label("Until").evaluate("input => input.validationMessage")
    await page.get_by_label("From").fill("2033-05-18T03:00Z")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("0 schedules due from 2033-05-18 03:00 UTC to 2033-05-18 04:00 UTC")).to_be_visible()
    await page.get_by_label("From").fill("2033-05-18T05:00Z")
    await page.get_by_label("Until").fill("2033-05-18T07:00Z")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 schedule due from 2033-05-18 05:00 UTC to 2033-05-18 07:00 UTC")).to_be_visible()
    await expect(bars(page)).to_have_attribute("aria-label", "2033-05-18 05:07 UTC: 1 schedule")
    await page.get_by_role("link", name="From now").click()
    await expect(page.get_by_label("Until")).to_have_value("")
    await expect(page.get_by_label("From")).to_have_value("")


async def test_the_chart_of_the_overview_leads_to_the_range_that_is_selected(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put(TENANT, "soon", trigger={"after": "3d"})
    await open_view(page, "overview")
    await page.get_by_role("combobox", name="For", exact=True).select_option(f"tenant:{TENANT}")
    await page.get_by_role("combobox", name="Range").select_option("day")
    await expect(page.get_by_text("Schedules due per day.")).to_be_visible()
    await expect(bars(page)).to_have_count(1)
    await bars(page).focus()
    await page.keyboard.press("Shift+ArrowLeft")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Upcoming")).to_be_visible()
    await expect(page.get_by_label("Tenant")).to_have_value(TENANT)
    await expect(page.get_by_text("1 schedule due from")).to_be_visible()
    assert "by=hour" in page.url


async def test_bars_of_the_last_choice_cannot_be_taken_for_those_of_the_next(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put(TENANT, "sooner", trigger={"after": "30m"})
    await open_view(page, "overview")
    section = page.locator("section").filter(has=page.get_by_role("heading", name="Due next"))
    await expect(section.get_by_text("Schedules due per hour.")).to_be_visible()
    can_answer = asyncio.Event()

    async def later(route: Route) -> None:
        await can_answer.wait()
        await route.continue_()

    await page.route(f"**/tenants/{TENANT}/upcoming?**", later)
    await section.get_by_role("combobox", name="For", exact=True).select_option(f"tenant:{TENANT}")
    await expect(section.locator("[inert]").get_by_text("Schedules due per hour.")).to_be_visible()
    can_answer.set()
    await expect(section.locator("[inert]")).to_have_count(0)
    await expect(section.get_by_text("Schedules due per hour. Highest: 1.")).to_be_visible()


async def test_a_finger_that_moves_sideways_zooms_in_and_one_that_moves_down_scrolls(
    dashboard: Dashboard, browser: Browser
) -> None:
    context = await browser.new_context(
        base_url=dashboard.worker.url,
        viewport={"width": 360, "height": 420},
        has_touch=True,
        is_mobile=True,
        timezone_id="UTC",
    )
    page = await context.new_page()
    touch = await context.new_cdp_session(page)
    await open_view(page, DAYS)
    await expect(bars(page)).to_have_count(4)
    await page.locator(".bars .frame").scroll_into_view_if_needed()
    (x, y), (end, _) = await across(page, 1, 2)
    before = await page.evaluate("scrollY")
    await finger(touch, [(x, y), (x, y - 40), (x, y - 80), (x, y - 160)])
    await page.wait_for_function("before => scrollY > before", arg=before)
    await expect(page.get_by_text("4 schedules due from")).to_be_attached()
    await page.evaluate("scrollTo(0, 0)")
    await page.locator(".bars .frame").scroll_into_view_if_needed()
    (x, y), (end, _) = await across(page, 1, 2)
    await finger(touch, [(x, y), ((x + end) / 2, y), (end - 1, y), (end, y)])
    await expect(page.get_by_text("2 schedules due from")).to_be_visible()
    assert "by=hour" in page.url
    await context.close()


async def finger(touch: CDPSession, places: list[tuple[float, float]]) -> None:
    """Put a finger down at the first of some places, move it over the others, and lift it."""
    for number, (x, y) in enumerate(places):
        kind = "touchMove" if number else "touchStart"
        await touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    await touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
