"""What happens when more is due than can be delivered at once. Real broker, real `faust worker`."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import product
from pathlib import Path

import aiohttp
import pytest
from rich.console import Console
from support.application import Application
from support.reading import header, read_until

from light_scheduler.bench.deliveries import Tally, TargetTopic, read_deliveries
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.engine.token_bucket import BORROWED_MS, SAVED_S, SPARE_S
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

CROWD = 100_000
STEADY_PER_S, STEADY_S = 100, 9
BEHIND_MS = 60_000
"""How much time there is to accept everything."""
FREE, CAPPED, CAP = 100, 60, 8
"""Firings of a tenant without a cap, and of one with so many a second: some wait when all the others are delivered."""


@pytest.mark.soak
async def test_a_crowd_of_one_tenant_does_not_delay_the_steady_firings_of_another(application: Application) -> None:
    clock, silent = application.drive_clock(behind=BEHIND_MS), Progress(Console(quiet=True))
    worker = await application.start_worker()
    servers, target = application.bootstrap_servers, f"{application.target}-steady"
    await application.create_topic(target)
    due = clock.now() + BEHIND_MS
    crowd = Workload(
        messages=CROWD,
        payloads=Payloads(100, 1),
        target=application.target,
        due=DueTimes(due),
        namespace=Namespace("crowd"),
    )
    steady = Workload(
        messages=STEADY_PER_S * STEADY_S,
        payloads=Payloads(100, 2),
        target=target,
        due=DueTimes(due - 1_000, STEADY_PER_S),
        namespace=Namespace("steady"),
    )
    for workload in (steady, crowd):
        await asyncio.to_thread(produce, servers, application.settings.topics.commands, workload, silent)
    everything = CROWD + steady.messages
    left_s = (steady.due - clock.now()) / 1_000
    await worker.shows(lambda info: sum(lane["pending"] for lane in info["lanes"]) == everything, within=left_s)

    seen, all_of_it = Tally(steady), Tally(crowd)
    clock.advance_to(steady.due - 1_000)
    await asyncio.to_thread(read_deliveries, TargetTopic(servers, target, 4), seen, silent, clock)
    await asyncio.to_thread(read_deliveries, TargetTopic(servers, application.target, 4), all_of_it, silent)

    assert seen.faults() == all_of_it.faults() == {"missing": 0, "duplicate": 0, "early": 0}
    assert seen.lateness.figures()["lateness_p99_ms"] < 1_000


@pytest.mark.soak
@pytest.mark.every_case
async def test_firings_above_a_cap_wait_in_order_while_everything_else_goes_on(kafka: Kafka, tmp_path: Path) -> None:
    application = await Application.create(kafka.bootstrap_servers, tmp_path)
    worker = await application.start_worker(tenant_firing_rates=f"capped:{CAP}")
    async with application.client(tenant="capped") as capped, application.client(tenant="free") as free:
        all_free = asyncio.create_task(
            read_until(
                application.bootstrap_servers,
                [application.target],
                lambda records: sum(header(record, "schedule-tenant") == "free" for record in records) == FREE,
            )
        )
        due = SystemClock().now() + 4_000  # until then, everything is sent, and whoever reads is ready
        for client, prefix, count in ((capped, "c", CAPPED), (free, "f", FREE)):
            await client.schedule_many(
                {"id": f"{prefix}-{number}", "topic": application.target, "target_partition": 0, "at": due + number}
                for number in range(count)
            )
        await all_free
        waiting = (await worker.get("/api/v1/tenants/capped/schedules?sort=due&limit=1000"))["schedules"]
        assert waiting, "the cap lets no more than some at a time pass"
        cancelled = waiting[-1]["id"]
        assert (await capped.cancel(cancelled)).outcome == "cancelled"
        records = await read_until(
            application.bootstrap_servers, [application.target], lambda records: len(records) == FREE + CAPPED - 1
        )
    application_metrics = await metrics(worker.url)
    application.close()

    fired: dict[str, list[tuple[int, int]]] = defaultdict(list)  # source partition -> (due, fired at)
    for record in records:
        if header(record, "schedule-tenant") == "capped":
            assert header(record, "schedule-id") != cancelled
            instants = int(header(record, "schedule-due") or 0), int(header(record, "schedule-fired-at") or 0)
            fired[header(record, "schedule-source-partition") or ""].append(instants)
    assert len(fired) == 4
    for each in fired.values():
        assert [due for due, _ in each] == sorted(due for due, _ in each)
    times = [at for each in fired.values() for _, at in each]
    for start, seconds in product(times, (1, 2, 3)):
        in_window = sum(start <= at < start + 1_000 * seconds for at in times)
        assert in_window <= CAP * (seconds + SAVED_S + SPARE_S + BORROWED_MS / 1_000)
    assert application_metrics > CAPPED // 2


async def metrics(url: str) -> float:
    """Return how many firings had to wait for a cap."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        lines = (await response.text()).splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("light_scheduler_firings_throttled_total{"))
