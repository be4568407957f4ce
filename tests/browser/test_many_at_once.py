"""What the dashboard does with many schedules, dead letters, or a whole tenant at once, in a real Chromium."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route, expect
from support.dashboard import Dashboard
from support.pages import assert_accessible

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


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
    await page.goto("/#/schedules?tenant=many&id_prefix=order-&label=team%3Dbilling")
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

    await page.goto("/#/schedules?tenant=many&state=paused")
    await change_all(page, "Resume all")
    await expect(dialog).to_contain_text("3 schedules of tenant many, that are paused")
    await dialog.get_by_role("button", name="Resume all").click()
    await expect(answers).to_contain_text("Resumed: 3 schedules.")

    await page.goto("/#/schedules?tenant=many&id_prefix=order-4")
    await change_all(page, "Reschedule all")
    await dialog.get_by_label("When").fill("+9d")
    await expect(dialog).to_contain_text("1 schedule of tenant many")
    await dialog.get_by_role("button", name="Reschedule all").click()
    await expect(answers).to_contain_text("Rescheduled: 1 schedule.")
    await expect(page.get_by_role("row").filter(has_text="order-4")).to_contain_text("in 8 d 23 h")

    await page.goto("/#/schedules?tenant=many")
    await change_all(page, "Cancel all")
    await expect(dialog).to_contain_text("6 schedules of tenant many, on all pages.")
    await dialog.get_by_role("button", name="Cancel all").click()
    await expect(answers).to_contain_text("Cancelled: 6 schedules.")
    await expect(page.get_by_text("This tenant has no pending schedules.")).to_be_visible()


async def test_all_that_match_are_fired_at_once(dashboard: Dashboard, page: Page) -> None:
    for number in range(2):
        await dashboard.put("many", f"now-{number}")
    await page.goto("/#/schedules?tenant=many&id_prefix=now-")
    await change_all(page, "Fire all now")
    await expect(page.get_by_role("dialog")).to_contain_text("2 schedules")
    await page.get_by_role("dialog").get_by_role("button", name="Fire all now").click()
    await expect(page.locator(".notice")).to_contain_text("Triggered: 2 schedules.")
    await expect(page.get_by_text("No schedule matches.")).to_be_visible()


async def test_filters_that_a_command_does_not_know_disable_it_with_a_reason(dashboard: Dashboard, page: Page) -> None:
    await page.goto("/#/schedules?tenant=many&due_from=%2B1h&target_topic=t")
    await page.get_by_text("Change all that match").click()
    group = page.get_by_role("group", name="Actions on all that match")
    for name in ("Fire all now", "Pause all", "Resume all", "Reschedule all", "Cancel all"):
        button = group.get_by_role("button", name=name)
        await expect(button).to_be_disabled()
        await expect(button).to_have_accessible_description(
            "These actions select by id and labels only. To use them, clear: Target topic, Due from."
        )
    await assert_accessible(page)


@pytest.mark.soak
async def test_all_dead_letters_of_a_page_are_sent_again_until_they_are_stopped(
    dashboard: Dashboard, page: Page
) -> None:
    for number in range(3):
        await dashboard.reject("letters", f"late-{number}")
    await page.goto("/#/dead-letters?tenant=letters")
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
    await page.keyboard.press("Enter")  # on Stop, which has the focus
    await held[0].continue_()
    await expect(page.locator(".notice")).to_contain_text(
        "1 of 3 letters sent again, 0 failed. Stopped: 2 were not sent."
    )
    await page.unroute("**/redrive")
    await page.reload()
    # Each letter that was sent again came back as one more: its command is still too late.
    await expect(page.get_by_role("row")).to_have_count(5)
    await page.get_by_role("button", name="Send all 4 again").click()
    await dialog.get_by_role("button", name="Send all again").click()
    await expect(page.locator(".notice")).to_contain_text("4 of 4 letters sent again, 0 failed.")


@pytest.mark.soak
async def test_a_tenant_is_shown_with_its_quota_paused_and_resumed(dashboard: Dashboard, page: Page) -> None:
    await dashboard.set_rules("gallery", max_pending=4, targets=[dashboard.application.target, "exhibits-*"])
    await dashboard.put("gallery", "vase")
    await page.goto("/#/tenants")
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
