"""A worker's clock that is wrong, or is set: nothing is early by it, lost or doubled, and somebody is told."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

import aiohttp
import pytest
from support.application import Application, WorkerProcess
from support.clocks import DrivenClock
from support.reading import Record, header, read_all, read_until

from light_scheduler.clock import SystemClock

pytestmark = pytest.mark.integration

STEP = 3_000_000
"""Ahead by an hour, a broker would refuse what the worker sends."""

COUNT = 40
SKEW = re.compile(r"light_scheduler_clock_skew_seconds\{[^}]*\} (\S+)")


def clocked(application: Application, *, behind: int = 0, session: str) -> tuple[WorkerProcess, DrivenClock]:
    """Start a worker that has a clock of its own."""
    application.clock = DrivenClock.create(application.folder / f"clock-{len(application.workers)}", behind=behind)
    worker = application.new_worker(session_timeout=session)
    worker.start()
    return worker, application.clock


async def schedule(application: Application, name: str, start: int, step: int) -> None:
    """Schedule and await the answers: `COUNT` messages due at instants from `start` (UTC epoch ms) on."""
    async with application.client() as client:
        await client.schedule_many(
            (
                {"id": f"{name}-{number}", "topic": application.target, "at": start + number * step}
                for number in range(COUNT)
            ),
            wait=True,
        )


async def skews(worker: WorkerProcess) -> list[float]:
    async with aiohttp.ClientSession() as session, session.get(worker.url + "/metrics") as response:
        return [float(skew) for skew in SKEW.findall(await response.text())]


def check(records: list[Record], *names: str) -> None:
    times = Counter(header(record, "schedule-id") for record in records)
    assert times == {f"{name}-{number}": 1 for name in names for number in range(COUNT)}
    for record in records:
        assert int(header(record, "schedule-due") or "") <= int(header(record, "schedule-fired-at") or "")
        assert int(header(record, "schedule-due") or "") <= record.timestamp


@pytest.mark.soak
async def test_a_clock_that_steps_forward_and_back_fires_everything_once_and_never_early_by_itself(
    application: Application,
) -> None:
    worker, clock = clocked(application, session="30s")
    await worker.ready()
    now = SystemClock().now()
    await schedule(application, "soon", now + 2_000, 50)
    await schedule(application, "later", now + STEP // 2, 1)
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= COUNT // 2)

    clock.step(behind=-STEP)
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= 2 * COUNT)
    clock.step(behind=STEP)
    now = SystemClock().now()
    await schedule(application, "held", now - 1_000, 25)
    records = await read_all(application.bootstrap_servers, application.target)
    check(records, "soon", "later")
    assert min(await skews(worker)) == pytest.approx(-3_000, abs=60)

    clock.step(behind=0)
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= 3 * COUNT)
    await schedule(application, "last", SystemClock().now(), 1)
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= 4 * COUNT)
    check(await read_all(application.bootstrap_servers, application.target), "soon", "later", "held", "last")
    log = worker.log.read_text(errors="replace")
    assert re.search(r"clock is (29|30)\d{5} ms ahead of the broker's", log)
    assert re.search(r"clock is (29|30)\d{5} ms behind the broker's", log)
    assert "starts again" not in log


@pytest.mark.soak
async def test_workers_whose_clocks_differ_deliver_everything_once_when_partitions_move(
    application: Application,
) -> None:
    (ahead, _), (behind, _) = [clocked(application, behind=behind, session="3s") for behind in (-2_000, 2_000)]
    await asyncio.gather(ahead.ready(), behind.ready())
    await schedule(application, "a", SystemClock().now() + 1_000, 100)
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= COUNT // 4)
    ahead.kill()
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= COUNT)
    check(await read_all(application.bootstrap_servers, application.target), "a")
    assert behind.is_running
