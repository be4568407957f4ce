"""What tests do with a page of the dashboard."""

from __future__ import annotations

from typing import Any, Literal

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, Route

from .waiting import eventually

HOSTILE = '<img src=x onerror="document.title=1">\u202egnp\u200b'
SHOWN = '<img src=x onerror="document.title=1">U+202EgnpU+200B'


_SHOW = """address => new Promise((done) => {
    const there = URL.canParse(address, location.href) && new URL(address, location.href);
    const isHere = there && there.origin === location.origin && there.pathname === location.pathname;
    if (!isHere || !document.querySelector("main h1")) return done(false);
    const before = location.hash;
    addEventListener("hashchange", () => done(true), { once: true });
    location.hash = there.hash;
    if (location.hash === before) done(true);
})"""

_GO_BACK = """() => new Promise((done) => {
    addEventListener("hashchange", () => done(), { once: true });
    history.back();
})"""


async def open_view(page: Page, view: str, worker: str = "") -> None:
    """Show a page of the dashboard, of the worker at an address if there is one.

    Returns when nothing of the page before is left: a browser tells that an address has changed only later.
    """
    address = f"{worker}/#/{view}"
    if not await page.evaluate(_SHOW, address):
        await page.goto(address)


async def go_back(page: Page) -> None:
    """Go back to the page of the dashboard before; returns when nothing of this one is left."""
    await page.evaluate(_GO_BACK)


async def assert_accessible(page: Page) -> None:
    """Hold a page to axe's rules, in light and dark colours."""
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        await page.emulate_media(color_scheme=scheme)
        found = (await Axe().run(page)).response["violations"]
        broken = [(each["id"], each["nodes"][0]["html"]) for each in found]
        assert not broken, f"{scheme}: {broken}"


async def assert_fits(page: Page, width: int = 360) -> None:
    """Nothing of a page is wider than a phone."""
    before = page.viewport_size
    assert before is not None
    await page.set_viewport_size({"width": width, "height": 640})

    async def fits() -> bool:  # once what is drawn to measure is drawn anew
        return bool(await page.evaluate("document.documentElement.scrollWidth") <= width)

    await eventually(fits, what=f"{page.url} in {width} pixels")
    await page.set_viewport_size(before)


async def tab_to(page: Page, name: str, within: int = 100) -> None:
    """Press Tab until what has the focus is called so."""
    for _ in range(within):
        await page.keyboard.press("Tab")
        if await focused(page) == name:
            return
    raise AssertionError(f"{within} tabs do not reach {name!r}")


async def focused(page: Page) -> str:
    """Return the text of what has the focus."""
    return str(await page.evaluate("document.activeElement.textContent.trim()"))


async def unreached(page: Page) -> list[str]:
    """Walk through a page with Tab, and return what can be used with a mouse but was not reached."""
    await page.evaluate(
        "() => {window.reached = new Set(); document.activeElement.blur();"
        "document.addEventListener('focusin', (event) => window.reached.add(event.target))}"
    )
    await page.keyboard.press("Tab")
    first = await page.evaluate_handle("document.activeElement")
    for _ in range(300):
        await page.keyboard.press("Tab")
        if await first.evaluate("(first) => document.activeElement === first"):
            break
    missed: list[str] = await page.evaluate(
        "() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]"
        ".filter((each) => each.checkVisibility() && !each.disabled && !window.reached.has(each))"
        ".map((each) => each.outerHTML)"
    )
    return missed


async def answer_with(page: Page, path: str, document: Any) -> None:
    """Have a page get this document in place of the worker's."""

    async def fulfill(route: Route) -> None:
        await route.fulfill(json=document)

    await page.route(f"**{path}", fulfill)


async def refuse_streams(page: Page) -> None:
    """Have a page ask for documents, as it does where it gets no stream of events."""
    await page.route("**/api/v1/events?*", lambda route: route.abort())


async def set_hidden(page: Page, hidden: bool) -> None:
    """Have a page believe that it is hidden, or seen."""
    await page.evaluate(
        "hidden => {Object.defineProperty(document, 'hidden', {get: () => hidden, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))}",
        hidden,
    )


async def confirm(page: Page, action: str, yes: str) -> None:
    """Choose an action on what a page shows, and say yes to what it asks."""
    await page.get_by_role("group", name="Actions").get_by_role("button", name=action).click()
    await page.get_by_role("dialog").get_by_role("button", name=yes).click()
