"""A partition of the commands topic that loses its leader: whoever asked it for tokens stands still once, and soon goes
on without it."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from support.application import Application
from support.placing import await_leaders_elsewhere
from support.strays import place_commands
from support.waiting import eventually

from light_scheduler.client import SchedulerClient
from light_scheduler.clock import SystemClock
from light_scheduler.devkit import EmbeddedCluster
from light_scheduler.model import Outcome, Requester
from light_scheduler.model.tenant_rules import TenantRules
from light_scheduler.tenants import opened_tenants
from light_scheduler.wire import partition_for

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.every_case, pytest.mark.timeout(420)]

COPIES = [[1], [2], [1], [3]]
"""The broker of each partition of the commands topic."""
BROKER = 3
"""The broker that is killed."""

RATE = 8
"""Commands a second of the tenant, a quarter of them in each partition: one that gets all needs tokens of others."""
BEFORE, AFTER_MS = 40, 30_000
"""Answers before the outage, and how long commands are sent in it."""
STALL_MS = 8_000
"""How long a transaction lasts at least if it writes to a partition without a leader: then it fails."""


class Answered(NamedTuple):
    """A command that was sent and answered (UTC epoch ms)."""

    sent_at: int
    answered_at: int
    is_over_rate: bool

    @property
    def wait(self) -> int:
        return self.answered_at - self.sent_at


async def ask(client: SchedulerClient, key: str, answers: list[Answered]) -> None:
    """Send commands one after the other, without end."""
    clock = SystemClock()
    while True:
        sent_at = clock.now()
        result = await client.cancel("nobody", key=key, timeout=120, raise_on_refusal=False)
        answers.append(Answered(sent_at, clock.now(), result.outcome is Outcome.REJECTED))
        await asyncio.sleep(0.05)


async def rule(application: Application) -> None:
    servers, topics = application.bootstrap_servers, application.settings.topics
    async with opened_tenants(servers, topics, SystemClock(), 30) as store:
        await store.set_rules("shop", lambda _: TenantRules(commands_per_second=RATE), by=Requester("test", ""))


async def test_a_partition_without_a_leader_is_asked_for_no_tokens(tmp_path: Path) -> None:
    key = next(f"{number}" for number in range(100) if partition_for(b"%d" % number, len(COPIES)) == 0)
    with EmbeddedCluster(3) as cluster:
        servers, app_id = cluster.bootstrap_servers, f"test-{uuid.uuid4().hex[:8]}"
        await place_commands(servers, f"{app_id}-commands", COPIES)
        application = await Application.create(servers, tmp_path, app_id=app_id, replication_factor="3")
        answers: list[Answered] = []
        try:
            await application.start_worker()
            await rule(application)
            await asyncio.to_thread(cluster.wait_in_sync)
            async with application.client(tenant="shop") as client, asyncio.TaskGroup() as group:
                asking = [group.create_task(ask(client, key, answers)) for _ in range(4)]
                await eventually(lambda: len(answers) > BEFORE)
                await asyncio.to_thread(cluster.nodes[BROKER - 1].kill)
                survivors = ",".join(node.bootstrap_servers for node in cluster.nodes[: BROKER - 1])
                elsewhere_at = await asyncio.to_thread(
                    await_leaders_elsewhere, survivors, BROKER, but=application.settings.topics.commands
                )
                await eventually(lambda: answers[-1].sent_at > elsewhere_at + AFTER_MS, within=120)
                for task in asking:
                    task.cancel()
        finally:
            with suppress(TimeoutError):
                await asyncio.to_thread(application.close)

    during = [each for each in answers if each.sent_at >= elsewhere_at]
    assert max(each.wait for each in during) < 2 * STALL_MS, "a transaction that was under way may have to fail"
    later = [each for each in during if each.sent_at >= elsewhere_at + 2 * STALL_MS]
    assert max(each.wait for each in later) < STALL_MS
    taken = sum(not each.is_over_rate for each in during)
    assert taken > 1.5 * AFTER_MS / 1_000 * RATE / len(COPIES), "with tokens of those that are left"
