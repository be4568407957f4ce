"""The numbers that the pages show after kills, held against what is counted in the topics.

The test counts for itself, from committed records alone: what was sent (commands), what was said of it (history), what
came out (target topic), what was refused (dead letters), and what is kept (changelog).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from support.application import Application
from support.pages import open_view
from support.reading import header, read_all
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.testing import Kafka

pytestmark = [
    pytest.mark.integration,
    pytest.mark.chaos,
    pytest.mark.timeout(400),
    pytest.mark.asyncio(loop_scope="session"),
]

TENANTS = ("east", "west")
ROUNDS = 60
KILLS = (ROUNDS // 3, 2 * ROUNDS // 3)
"""After which rounds a worker is killed, each another one."""

HOUR_MS, HOURS = 3_600_000, 5
SETTLED_S = 120.0
ROWS = 50
"""Of a page of the explorer."""

SCHEDULE_KIND = b"\x01"
"""The first byte of a schedule's key in the changelog; tenant, a zero byte and the id follow (see `wire.state`)."""

Name = tuple[str, str]
"""(tenant, id)."""


@pytest_asyncio.fixture(loop_scope="session")
async def two_workers(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    """Return an application with two workers that share the partitions."""
    application = await Application.create(kafka.bootstrap_servers, tmp_path, session_timeout="3s")
    with contextlib.closing(application):
        for _ in range(2):
            await application.start_worker()
        await share_all(application)
        yield application


async def share_all(application: Application) -> None:
    """Wait until each of the two workers runs half of the partitions."""
    for worker in application.workers:
        await worker.ready()
        await worker.shows(lambda info: [lane["state"] for lane in info["lanes"]] == ["running"] * 2)


async def load(application: Application, begin: int) -> AsyncIterator[int]:
    """Send commands round by round: what fires soon, what stays pending, what is cancelled, and what comes too late."""
    later = (begin // HOUR_MS + 2) * HOUR_MS
    async with application.sender() as send:
        for number in range(ROUNDS):
            for tenant in TENANTS[: 1 + number % 2]:
                of = {"tenant": tenant, "target_topic": application.target}
                await send(f"soon-{number}", at=begin + 200 * number, **of)
                await send(f"far-{number}", at=later + number % HOURS * HOUR_MS, **of)
                await send(f"gone-{number}", at=later, **of)
                await send(f"gone-{number}", command="cancel", tenant=tenant)
                await send(f"late-{number}", at=1_000_000_000_000, on_past="reject", **of)
            yield number


async def load_with_kills(application: Application) -> None:
    """Load; meanwhile, kill each of the workers by SIGKILL and start it again, one after the other.

    The load goes on while partitions have no owner.
    """
    async for number in load(application, SystemClock().now()):
        if number in KILLS:
            await share_all(application)
            victim = application.workers[KILLS.index(number)]
            victim.kill()
            await asyncio.to_thread(victim.wait, 30)
            victim.start()
    await share_all(application)


class Topics(NamedTuple):
    """What the topics say: what was sent to be delivered and when, and what has become of it."""

    due: dict[Name, int]
    cancelled: set[Name]
    delivered: Counter[Name]
    refused: Counter[Name]
    kept: set[Name]
    open: set[Name]
    """Scheduled by the history, and neither fired nor cancelled there."""

    @property
    def pending(self) -> set[Name]:
        """What has to be pending by what was sent, delivered and refused."""
        return self.due.keys() - self.cancelled - self.delivered.keys() - self.refused.keys()


async def topics_of(application: Application) -> Topics:
    """Read all topics from their beginnings."""
    names, servers = application.settings.topics, application.bootstrap_servers
    due: dict[Name, int] = {}
    cancelled: set[Name] = set()
    for record in await read_all(servers, names.commands):
        name = (header(record, "schedule-tenant") or "", record.key.decode())
        if header(record, "schedule-command") == "cancel":
            cancelled.add(name)
        else:
            due[name] = int(header(record, "schedule-at") or 0)
    delivered = Counter(
        (header(each, "schedule-tenant") or "", header(each, "schedule-id") or "")
        for each in await read_all(servers, application.target)
    )
    refused = Counter(
        (header(each, "dead-letter-tenant") or "", header(each, "dead-letter-id") or "")
        for each in await read_all(servers, names.dead_letters)
    )
    last = {each.key: each.value for each in await read_all(servers, names.changelog(names.commands))}
    kept = {key[1:] for key, value in last.items() if key[:1] == SCHEDULE_KIND and value is not None}
    told: dict[Name, str] = {}
    for event in await application.history():
        told[event.tenant, event.id or ""] = event.event.value
    return Topics(
        due,
        cancelled,
        delivered,
        refused,
        {(tenant.decode(), id.decode()) for tenant, _, id in (each.partition(b"\0") for each in kept)},
        {name for name, event in told.items() if event == "scheduled"},
    )


async def settled(application: Application) -> Topics:
    """Wait until the workers are through with everything; return what the topics say then."""
    found: Topics | None = None

    async def is_settled() -> bool:
        nonlocal found
        found = await topics_of(application)
        is_through = len(found.due) == len(
            found.pending | found.delivered.keys() | found.refused.keys() | found.cancelled
        )
        is_told = found.pending <= found.kept and found.pending <= found.open
        return (
            is_through and is_told and all(id.startswith("far-") for _, id in found.pending | found.kept | found.open)
        )

    await eventually(is_settled, within=SETTLED_S, every=1.0, what="the end of all that was sent")
    assert found is not None
    return found


@pytest.mark.soak
async def test_pages_show_what_is_in_the_topics_after_workers_were_killed(two_workers: Application, page: Page) -> None:
    await load_with_kills(two_workers)
    topics = await settled(two_workers)
    assert topics.pending == topics.kept == topics.open
    assert set(topics.delivered.values()) == set(topics.refused.values()) == {1}
    assert len(topics.pending) == len(topics.delivered) == len(topics.refused) == ROUNDS * 3 // 2
    by_tenant = Counter(tenant for tenant, _ in topics.pending)
    start = two_workers.workers[1].url
    await open_view(page, "overview", start)
    await expect(page.get_by_text("2 workers, 4 partitions: all running.")).to_be_visible()
    tile = page.locator("section.tile").filter(has=page.get_by_role("heading", name="Pending", exact=True))
    await expect(tile.locator(".value")).to_have_text(str(len(topics.pending)))
    for tenant in TENANTS:
        own = {id: topics.due[tenant, id] for of, id in topics.pending if of == tenant}
        await open_view(page, "overview", start)
        row = page.get_by_role("region", name="Tenants").get_by_role("row").filter(has_text=tenant)
        await expect(row).to_contain_text(str(by_tenant[tenant]))
        for hour, number in Counter(due // HOUR_MS * HOUR_MS for due in own.values()).items():
            await open_view(page, f"upcoming?tenant={tenant}&by=minute&from={hour}", start)
            await expect(page.get_by_text(f"{number} schedules due from")).to_be_visible()
        await open_view(page, f"schedules?tenant={tenant}&sort=id", start)
        await check_rows(page, own)
        await open_view(page, f"dead-letters?tenant={tenant}", start)
        letters = page.get_by_role("row").filter(has_text="late-")
        refused = sum(number for (of, _), number in topics.refused.items() if of == tenant)
        await expect(letters).to_have_count(min(refused, ROWS))


async def check_rows(page: Page, own: dict[str, int]) -> None:
    """Hold the rows of the explorer, page by page, against the ids of schedules."""
    rows = page.get_by_role("row").filter(has_text="far-")
    shown: list[str] = []
    for left in range(len(own), 0, -ROWS):
        await expect(rows).to_have_count(min(left, ROWS))
        shown += await rows.get_by_role("link").all_inner_texts()
        if left > ROWS:
            await page.get_by_role("link", name="Next page").click()
        elif left == len(own):
            await expect(page.get_by_text(f"{left} schedules")).to_be_visible()
    assert shown == sorted(own)
