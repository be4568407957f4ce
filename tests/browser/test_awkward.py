"""What a page does in awkward moments and places: hostile addresses, two tabs, narrow and high-contrast screens."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from support.dashboard import Dashboard
from support.pages import HOSTILE, SHOWN, confirm, go_back, open_view

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

VIEWS = (
    *("overview", "schedules", "schedule", "upcoming", "tenants", "new", "partitions", "dead-letters", "dead-letter"),
    *("delays", "health", "configuration", "no-such-page"),
)
PARAMETERS = (
    *("tenant", "id", "letter", "cursor", "by", "group", "from", "to", "target", "partition", "id_prefix"),
    *("label", "state", "sort", "due_from", "cause", "id_contains"),
)
LONGEST_TENANT = "t" * 64
MEGABYTE = 1_000_000


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def shown(dashboard: Dashboard) -> None:
    """Have something with long and hostile texts on each page."""
    target = {"topic": dashboard.application.target, "key": HOSTILE, "headers": {"h": HOSTILE}}
    await dashboard.put(LONGEST_TENANT, "i" * 200, labels={"l" * 60: "v" * 60}, target=target)
    await dashboard.put("awkward", f"a{HOSTILE}", labels={"x": HOSTILE}, target=target)
    await dashboard.put("awkward", "megabyte", payload={"text": "<b>é" * (MEGABYTE // 5)})
    await dashboard.reject("awkward", f"late{HOSTILE}", payload={"text": HOSTILE})
    await dashboard.set_rules(LONGEST_TENANT, max_pending=5, targets=["exhibits-*", dashboard.application.target])


async def assert_inert(page: Page) -> None:
    """Nothing of what users wrote has become an element, or has changed the page."""
    assert await page.locator("main img, main script, main b, dialog img").count() == 0
    assert (await page.title()).endswith(" · light-scheduler")


@pytest.mark.soak
async def test_hostile_parameters_of_an_address_stay_text_on_every_page(page: Page) -> None:
    query = "&".join(f"{name}={quote(HOSTILE, safe='')}" for name in PARAMETERS)
    for view in VIEWS:
        await open_view(page, f"{view}?{query}")
        await expect(page.locator(".loading")).to_have_count(0)
        await assert_inert(page)
    await open_view(page, f"no{quote(HOSTILE, safe='')}?constructor=1")
    await expect(page.get_by_text("There is no page with this address.")).to_be_visible()
    await open_view(page, "constructor")
    await expect(page.get_by_text("There is no page with this address.")).to_be_visible()


async def test_hostile_texts_stay_text_in_lists_letters_and_questions(page: Page) -> None:
    await open_view(page, "schedules?tenant=awkward&sort=id")
    await expect(page.get_by_role("row").filter(has_text=f"x={SHOWN}"[:40])).to_have_count(1)
    await page.get_by_text("Change all that match").click()
    await page.get_by_role("button", name="Pause all").click()
    await expect(page.get_by_role("dialog")).to_contain_text("2 schedules of tenant awkward")
    await page.keyboard.press("Escape")
    await page.get_by_role("link", name=f"a{SHOWN}").click()
    await page.get_by_role("group", name="Actions").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).to_contain_text(f"a{SHOWN} will not be delivered.")
    await assert_inert(page)
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Explain").click()
    await expect(page.get_by_role("region", name="Why").get_by_role("listitem").first).to_be_visible()
    await assert_inert(page)
    await open_view(page, "dead-letters?tenant=awkward")
    letter = page.get_by_role("row").filter(has_text=f"late{SHOWN}")
    await expect(letter).to_have_count(1)
    await assert_inert(page)
    await letter.get_by_role("link").click()
    await expect(page.get_by_text("Became a dead letter")).to_be_visible()
    await assert_inert(page)


@pytest.mark.soak
async def test_a_payload_of_a_megabyte_is_shown_in_parts(page: Page) -> None:
    await open_view(page, "schedule?tenant=awkward&id=megabyte")
    await expect(page.locator("pre")).to_contain_text("<b>é<b>é")
    await expect(page.get_by_text("Characters 1 to 20,000 of 800,000.")).to_be_visible()
    await page.get_by_role("button", name="Hex").click()
    await expect(page.locator("pre")).to_contain_text("00000000  3c 62 3e c3 a9")
    await assert_inert(page)


async def test_a_name_that_no_tenant_can_have_is_refused_in_words(page: Page) -> None:
    for view in ("schedules", "upcoming"):
        await open_view(page, f"{view}?tenant={'n' * 200}")
        await expect(page.get_by_role("alert")).to_contain_text("is not a tenant name: use 1 to 64 letters")


@pytest.mark.soak
@pytest.mark.parametrize("size", [(360, 640), (640, 360)])
async def test_a_small_phone_has_everything_within_its_width(page: Page, size: tuple[int, int]) -> None:
    width, height = size
    await page.set_viewport_size({"width": width, "height": height})
    long = f"tenant={LONGEST_TENANT}"
    for view in (
        *(view for view in VIEWS if view not in ("schedule", "dead-letter")),
        f"schedules?{long}",
        f"schedule?{long}&id={'i' * 200}",
        f"upcoming?{long}&by=day",
        f"new?{long}",
        f"schedules?tenant={'n' * 200}",
    ):
        await open_view(page, view)
        await expect(page.locator(".loading")).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, view


@pytest.mark.soak
async def test_what_is_chosen_and_every_bar_can_be_told_apart_in_forced_colours(page: Page) -> None:
    await page.emulate_media(forced_colors="active")
    await open_view(page, "schedule?tenant=awkward&id=megabyte")
    looks = "each => [getComputedStyle(each).backgroundColor, getComputedStyle(each).color].join()"
    current, other = (page.get_by_role("navigation").get_by_role("link", name=name) for name in ("Schedules", "Health"))
    assert await current.evaluate(looks) != await other.evaluate(looks)
    pressed = page.get_by_role("group", name="Form").get_by_role("button")
    await expect(pressed).to_have_count(2)
    states = await pressed.evaluate_all(f"all => all.map(each => [each.ariaPressed, ({looks})(each)])")
    assert len({style for _, style in states}) == len({state for state, _ in states}) == 2
    await open_view(page, f"upcoming?tenant={LONGEST_TENANT}&by=day")
    bar = page.get_by_role("group", name="Schedules ahead").get_by_role("link").first
    fill, panel = "each => getComputedStyle(each).fill", "() => getComputedStyle(document.body).backgroundColor"
    for theme in ("light", "dark"):
        await page.get_by_label("Theme").select_option(theme)
        assert await bar.locator("rect:not(.reach)").evaluate(fill) != await page.evaluate(panel)


@pytest.mark.soak
async def test_nothing_moves_by_itself(page: Page) -> None:
    moving = (
        "() => [...document.querySelectorAll('*')].filter((each) => {const style = getComputedStyle(each);"
        "return style.transitionDuration !== '0s' || style.animationName !== 'none' || "
        "style.scrollBehavior === 'smooth'}).map((each) => each.tagName)"
    )
    await page.emulate_media(reduced_motion="reduce")
    for view in ("overview", "schedules?tenant=awkward", "upcoming?by=day", "partitions"):
        await open_view(page, view)
        await expect(page.locator(".loading")).to_have_count(0)
        assert await page.evaluate(moving) == [], view


@pytest.mark.soak
async def test_a_link_that_is_followed_leaves_nothing_of_its_page_to_act_on(page: Page) -> None:
    await open_view(page, "schedules?tenant=awkward&sort=id")
    link = page.get_by_role("link", name="megabyte")
    assert await link.evaluate("link => {link.click(); return link.isConnected}") is False
    await expect(page.get_by_role("heading", name="Payload")).to_be_visible()
    await go_back(page)
    async with page.context.expect_page() as opened:
        await link.click(modifiers=["ControlOrMeta"])
    other = await opened.value
    await expect(other.get_by_role("heading", name="Payload")).to_be_visible()
    await expect(link).to_be_visible()


async def test_a_question_is_withdrawn_when_its_page_is_left(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put("awkward", "asked")
    await open_view(page, "schedules?tenant=awkward")
    await page.get_by_role("link", name="asked").click()
    await page.get_by_role("group", name="Actions").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await go_back(page)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.locator("main")).to_be_focused()
    assert await dashboard.state("awkward", "asked") == "pending"


@pytest.mark.soak
async def test_what_another_tab_has_changed_is_not_acted_on(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put("awkward", "shared")
    await open_view(page, "schedule?tenant=awkward&id=shared")
    await expect(page.get_by_role("group", name="Actions")).to_be_visible()
    other = await page.context.new_page()
    await open_view(other, "schedule?tenant=awkward&id=shared")
    await other.get_by_role("group", name="Actions").get_by_role("button", name="Reschedule").click()
    dialog = other.get_by_role("dialog")
    await dialog.get_by_label("When").fill("+3d")
    await dialog.get_by_role("button", name="Reschedule").click()
    await expect(other.locator(".notice")).to_contain_text("Rescheduled: shared")
    await confirm(page, "Cancel", "Cancel schedule")
    await expect(page.locator(".notice.bad")).to_contain_text("version")
    await expect(page.get_by_role("main")).to_contain_text("in 2 d 23 h")
    assert await dashboard.state("awkward", "shared") == "pending"
    await confirm(page, "Cancel", "Cancel schedule")
    await expect(page.locator(".notice")).to_contain_text("Cancelled: shared")


async def test_a_worker_that_is_away_is_said_of_a_form_whose_content_stays(dashboard: Dashboard, page: Page) -> None:
    """The connection is what is cut: the worker that serves the other tests goes on."""
    await open_view(page, "new?tenant=awkward")
    values: dict[str, Any] = {"Id (empty": "patient", "Target topic": dashboard.application.target, "Payload": HOSTILE}
    for label, value in values.items():
        await page.get_by_label(label).fill(value)
    await page.context.set_offline(True)
    await page.get_by_role("button", name="Schedule", exact=True).click()
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("This worker does not answer. The change may have been made: check")
    await expect(alert.get_by_role("link")).to_have_count(0)
    for label, value in values.items():
        await expect(page.get_by_label(label)).to_have_value(value)
    await page.context.set_offline(False)
    await page.get_by_role("button", name="Schedule", exact=True).click()
    await expect(page.locator(".notice")).to_contain_text("Scheduled: patient")
    await page.get_by_role("link", name="Show it").click()
    await expect(page.get_by_role("group", name="Actions")).to_be_visible()
    await page.context.set_offline(True)
    await page.get_by_role("link", name="Schedules of").click()
    await expect(page.get_by_role("alert")).to_have_text("This worker does not answer. Try again")
    await page.context.set_offline(False)
    await page.get_by_role("link", name="Try again").click()
    await expect(page.get_by_role("link", name="patient")).to_be_visible()
