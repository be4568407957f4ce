"""Probes of workers: what `/live` and the metrics say of them, and that nothing else does. Real broker and workers."""

from __future__ import annotations

from functools import partial
from typing import Any

import aiohttp
import pytest
from support.application import Application, WorkerProcess
from support.reading import read_all, read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.model import HistoryEvent
from light_scheduler.model.probe import PROBE_IDENTITY

pytestmark = pytest.mark.integration

HOUR = 3_600_000


async def probes_of(worker: WorkerProcess, wanted: int, since: int) -> list[dict[str, Any]]:
    """Wait until all of so many probes of a worker have come back after an instant (UTC epoch ms)."""
    found: list[dict[str, Any]] = []

    async def are_back() -> bool:
        found[:] = (await worker.get("/live")).get("probes", [])
        return len(found) == wanted and all((probe["last_success"] or 0) > since for probe in found)

    await eventually(are_back, within=60.0, what=f"{wanted} probes in {worker.url}/live")
    return found


async def metrics_of(worker: WorkerProcess) -> dict[str, float]:
    """Return the samples of a worker's lanes, added up by name."""
    async with aiohttp.ClientSession() as session, session.get(f"{worker.url}/metrics") as response:
        lines = [line for line in (await response.text()).splitlines() if 'partition="' in line]
    total: dict[str, float] = {}
    for line in lines:
        name, value = line.partition("{")[0], line.rpartition(" ")[2]
        total[name] = total.get(name, 0.0) + float(value)
    return total


@pytest.mark.soak
async def test_probes_pass_the_whole_path_and_only_their_results_show_until_a_crash_and_after_it(
    application: Application,
) -> None:
    settings, now = application.settings, SystemClock().now()
    worker = await application.start_worker(probe_interval="1s")
    async with application.client() as client:
        await client.schedule("soon", b"x", topic=application.target, after="1s")
        await client.schedule("later", b"x", topic=application.target, at=now + HOUR)
        await read_until(application.bootstrap_servers, [application.target], lambda firings: len(firings) > 0)
    samples: dict[str, float] = {}
    probes: list[dict[str, Any]] = []

    async def is_counted() -> bool:
        """Return whether both commands and the firing are: what consumers see is counted a moment later."""
        probes[:] = await probes_of(worker, settings.partitions, since=now)
        samples.update(await metrics_of(worker))
        found = [samples[f"light_scheduler_{name}_total"] for name in ("commands", "firings", "probe_failures")]
        return found == [2, 1, sum(probe["failures"] for probe in probes)]

    await eventually(is_counted, every=0.1, what="two commands and a firing in the metrics")
    assert [probe["partition"] for probe in probes] == list(range(settings.partitions))
    assert all(probe["latency_ms"] >= 0 for probe in probes)

    assert samples["light_scheduler_probe_successes_total"] >= settings.partitions
    assert samples["light_scheduler_probe_failures_total"] == sum(probe["failures"] for probe in probes)
    assert samples["light_scheduler_probe_latency_seconds"] >= 0
    assert samples["light_scheduler_firings_total"] == samples["light_scheduler_lateness_seconds_count"] == 1
    assert samples["light_scheduler_pending"] == 1
    assert samples["light_scheduler_commands_total"] == 2
    assert samples["light_scheduler_dead_letters_total"] == 0
    info = await worker.get("/info")
    assert {lane["oldest_due"] for lane in info["lanes"]} <= {None, now + HOUR}

    await read_until(application.bootstrap_servers, [settings.topics.history], lambda events: len(events) >= 3)
    events = await history_of(application)
    assert [(event.event, event.id) for event in events] == [
        ("fired", "soon"),
        ("scheduled", "later"),
        ("scheduled", "soon"),
    ]
    assert len(await read_all(application.bootstrap_servers, application.target)) == 1
    assert await read_all(application.bootstrap_servers, settings.topics.dead_letters) == []
    worker.kill()
    second = await application.start_worker()  # which probes nothing
    await second.shows(lambda info: all(lane["lag"] == 0 for lane in info["lanes"]))
    assert await second.get("/live") == {"status": "live"}
    await eventually(partial(no_probe_is_left, application), what="the state to have no probe")
    assert await history_of(application) == events
    assert await read_all(application.bootstrap_servers, settings.topics.dead_letters) == []


async def history_of(application: Application) -> list[HistoryEvent]:
    """Return all that history tells, in an order that does not depend on which partition is read first."""
    return sorted(await application.history(), key=lambda event: (event.event, str(event.id)))


async def no_probe_is_left(application: Application) -> bool:
    topics = application.settings.topics
    records = await read_all(application.bootstrap_servers, topics.changelog(topics.commands))
    last = {record.partition: record.value for record in records if record.key[1:] == PROBE_IDENTITY}
    assert len(last) == application.settings.partitions
    return not any(last.values())
