"""What the dashboard does with many schedules, dead letters, or a whole tenant at once, in a real Chromium."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route, expect
from support.dashboard import Dashboard
from support.pages import assert_accessible, open_view
from support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session"), pytest.mark.soak]


async def change_all(page: Page, name: str) -> None:
    """Choose an action on all that match; its dialog is open then."""
    group = page.get_by_role("group", name="Actions on all that match")
    if not await group.is_visible():
        await page.get_by_text("Change all that match").click()
    await group.get_by_role("button", name=name).click()


async def test_all_that_match_are_paused_resumed_rescheduled_and_cancelled(dashboard: Dashboard, page: Page) -> None:
    for number in range(5):
        await dashboard.put("many", f"order-{number}", labels={"team": "billing" if number < 3 else "sales"})
    await dashboard.put("many", "other")
    await open_view(page, "schedules?tenant=many&id_prefix=order-&label=team%3Dbilling")
    await change_all(page, "Pause all")
    dialog, answers = page.get_by_role("dialog"), page.locator(".notice")
    await expect(dialog).to_contain_text(
        "3 schedules of tenant many, with ids that begin with order-, with the labels team=billing, on all pages."
    )
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Pause all").click()
    await expect(answers).to_contain_text("Paused: 3 schedules.")
    await expect(page.get_by_role("row").filter(has_text="paused")).to_have_count(3)
    assert [await dashboard.state("many", id) for id in ("order-0", "order-4", "other")] == [
        "paused",
        "pending",
        "pending",
    ]

    await open_view(page, "schedules?tenant=many&state=paused")
    await change_all(page, "Resume all")
    await expect(dialog).to_contain_text("3 schedules of tenant many, that are paused")
    await dialog.get_by_role("button", name="Resume all").click()
    await expect(answers).to_contain_text("Resumed: 3 schedules.")

    await open_view(page, "schedules?tenant=many&id_prefix=order-4")
    await change_all(page, "Reschedule all")
    await dialog.get_by_label("When").fill("+9d")
    await expect(dialog).to_contain_text("1 schedule of tenant many")
    await dialog.get_by_role("button", name="Reschedule all").click()
    await expect(answers).to_contain_text("Rescheduled: 1 schedule.")
    await expect(page.get_by_role("row").filter(has_text="order-4")).to_contain_text("in 8 d 23 h")

    await open_view(page, "schedules?tenant=many")
    await change_all(page, "Cancel all")
    await expect(dialog).to_contain_text("6 schedules of tenant many, on all pages.")
    await dialog.get_by_role("button", name="Cancel all").click()
    await expect(answers).to_contain_text("Cancelled: 6 schedules.")
    await expect(page.get_by_text("This tenant has no pending schedules.")).to_be_visible()


async def test_all_that_match_are_fired_at_once(dashboard: Dashboard, page: Page) -> None:
    for number in range(2):
        await dashboard.put("many", f"now-{number}")
    await open_view(page, "schedules?tenant=many&id_prefix=now-")
    await change_all(page, "Fire all now")
    await expect(page.get_by_role("dialog")).to_contain_text("2 schedules")
    await page.get_by_role("dialog").get_by_role("button", name="Fire all now").click()
    await expect(page.locator(".notice")).to_contain_text("Triggered: 2 schedules.")
    await expect(page.get_by_text("No schedule matches.")).to_be_visible()


async def test_with_finer_filters_all_that_match_are_changed_one_by_one(dashboard: Dashboard, page: Page) -> None:
    for number in range(6):
        label = {"team": "billing" if number % 2 else "sales"}
        await dashboard.put("finer", f"order-{number}", labels=label, trigger={"after": "9d" if number > 3 else "1d"})
    target = dashboard.application.target
    await open_view(page, f"schedules?tenant=finer&label_contains=m%3Dbil&due_to=%2B2d&target_topic={target}")
    await expect(page.get_by_role("row")).to_have_count(3)
    dialog, answers = page.get_by_role("dialog"), page.locator(".notice")
    await change_all(page, "Pause all")
    await expect(dialog).to_contain_text(
        f"2 schedules of tenant finer, with m=bil in a label, that go to {target}, due before +2d, on all pages."
    )
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Pause all").click()
    await expect(answers).to_contain_text("2 of 2 schedules paused, 0 failed.")
    states = [await dashboard.state("finer", f"order-{number}") for number in range(6)]
    assert states == ["pending", "paused", "pending", "paused", "pending", "pending"]

    for filters, name, done in (
        ("state=paused&target_topic=" + target, "Resume all", "resumed"),
        ("id_contains=er-&label_contains=bill&due_to=%2B2d", "Reschedule all", "rescheduled"),
        ("due_from=%2B19d", "Fire all now", "fired"),
    ):
        await open_view(page, f"schedules?tenant=finer&{filters}")
        await expect(page.get_by_role("row")).to_have_count(3)
        await change_all(page, name)
        if name == "Reschedule all":
            await dialog.get_by_label("When").fill("+20d")
        await expect(dialog).to_contain_text("2 schedules of tenant finer")
        await dialog.get_by_role("button", name=name).click()
        await expect(answers).to_contain_text(f"2 of 2 schedules {done}, 0 failed.")

    async def are_gone() -> bool:
        return [await dashboard.state("finer", f"order-{number}") for number in (1, 3)] == [None, None]

    await eventually(are_gone, what="the end of what was fired")


async def test_what_changes_after_the_question_stays_as_it_is_and_is_named(dashboard: Dashboard, page: Page) -> None:
    for number in range(2):
        await dashboard.put("raced", f"r-{number}")
    await open_view(page, "schedules?tenant=raced&state=pending")
    await change_all(page, "Cancel all")
    dialog, answers = page.get_by_role("dialog"), page.locator(".notice")
    await expect(dialog).to_contain_text("2 schedules of tenant raced, that are pending, on all pages.")
    await dashboard.put("raced", "r-1", 200, payload={"text": "newer"})
    await dialog.get_by_role("button", name="Cancel all").click()
    await expect(answers).to_contain_text("1 of 2 schedules cancelled, 1 failed.")
    await expect(answers.get_by_role("listitem")).to_contain_text("r-1")
    assert [await dashboard.state("raced", id) for id in ("r-0", "r-1")] == [None, "pending"]


async def test_nothing_goes_on_searching_for_an_answer_that_nobody_waits_for(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put("endless", "a", labels={"team": "billing"})

    async def answer(route: Route) -> None:
        """Hold what is asked for with a cursor."""
        if "cursor" not in route.request.url:
            await route.fulfill(json={"schedules": [], "next_cursor": "more", "total": None})

    await page.route("**/api/v1/tenants/endless/schedules?*", answer)
    await open_view(page, "schedules?tenant=endless&label=team%3Dbilling&label_contains=bil")
    dialog = page.get_by_role("dialog")

    await change_all(page, "Pause all")
    await expect(dialog).to_contain_text("0 so far")
    async with page.expect_event("requestfailed", lambda request: "limit=1000" in request.url):
        await dialog.get_by_role("button", name="Back").click()

    await open_view(page, "schedules?tenant=endless")
    await expect(page.get_by_text("No match so far, after 1 request.")).to_be_visible()
    await change_all(page, "Cancel all")
    await expect(dialog).to_contain_text("1 schedule of tenant endless, on all pages.")
    async with page.expect_event("requestfailed", lambda request: "limit=50" in request.url):
        await dialog.get_by_role("button", name="Cancel all").click()


async def test_all_dead_letters_of_a_page_are_sent_again_until_they_are_stopped(
    dashboard: Dashboard, page: Page
) -> None:
    for number in range(3):
        await dashboard.reject("letters", f"late-{number}")
    await open_view(page, "dead-letters?tenant=letters")
    await expect(page.get_by_role("row")).to_have_count(4)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    await page.route("**/redrive", hold)
    await page.get_by_role("button", name="Send all 3 again").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("3 dead letters on this page")
    await dialog.get_by_role("button", name="Send all again").click()
    await expect(page.get_by_text("Sending 3 letters again…")).to_be_visible()
    await expect(page.get_by_role("progressbar")).to_have_attribute("max", "3")
    await eventually(lambda: held, what="the first request")
    await page.keyboard.press("Enter")  # on Stop, which has the focus
    await held[0].continue_()
    await expect(page.locator(".notice")).to_contain_text(
        "1 of 3 letters sent again, 0 failed. Stopped: 2 were not sent."
    )
    await page.unroute("**/redrive")

    async def has_come_back() -> bool:
        found = await dashboard.worker.get("/api/v1/dead-letters?tenant=letters")
        return len(found["dead_letters"]) == 4

    # Each letter that was sent again came back as one more: its command is still too late.
    await eventually(has_come_back, every=0.1, what="the letter that was sent again")
    await page.reload()
    await expect(page.get_by_role("row")).to_have_count(5)
    await page.get_by_role("button", name="Send all 4 again").click()
    await dialog.get_by_role("button", name="Send all again").click()
    await expect(page.locator(".notice")).to_contain_text("4 of 4 letters sent again, 0 failed.")


async def test_a_tenant_is_shown_with_its_quota_paused_and_resumed(dashboard: Dashboard, page: Page) -> None:
    await dashboard.set_rules("gallery", max_pending=4, targets=[dashboard.application.target, "exhibits-*"])
    await dashboard.put("gallery", "vase")
    await open_view(page, "tenants")
    row = page.get_by_role("row").filter(has_text="gallery")
    await expect(row).to_contain_text("active")
    await expect(row).to_contain_text("1 of 4")
    await expect(row).to_contain_text("exhibits-*")
    await assert_accessible(page)
    await row.get_by_role("button", name="Pause gallery").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("It has 1 pending schedule.")
    await dialog.get_by_role("button", name="Pause tenant").click()
    await expect(page.locator(".notice")).to_contain_text("Tenant gallery is paused.")
    await expect(row).to_contain_text("paused")
    await row.get_by_role("button", name="Resume gallery").click()
    await dialog.get_by_role("button", name="Resume tenant").click()
    await expect(row).to_contain_text("active")
