"""Workers of an earlier version and of this one side by side, as in a rolling upgrade, while they are at work.

The earlier versions are in tests/golden/versions (see scripts/record_version.py). `Traffic` holds what came of its
commands against what they were: each is answered once, each schedule fires once, nothing fires early.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
import pytest
from support.application import Application, WorkerProcess
from support.reading import header, read_all, read_until
from support.traffic import traffic
from support.versions import EarlierWorker, Version, earlier_worker, writes_this_format
from support.waiting import eventually

from light_scheduler.client import SchedulerClient
from light_scheduler.clock import SystemClock
from light_scheduler.model import Outcome, Requester
from light_scheduler.model.rate_lending import RateAsk, RateKind, RateName
from light_scheduler.tenants import opened_tenants
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_result
from light_scheduler.wire.rate_lending import rate_headers
from light_scheduler.wire.state_format import FORMAT_VERSION

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(900)]

WORKERS, PARTITIONS = 3, 6
LISTED, BULK = 60, 600
QUOTA, WANTED = 60, 80
WITHIN_S = 90.0


class Pair(NamedTuple):
    """A worker of the earlier version, and the one that replaces it: in its place, with its folder and its name."""

    earlier: EarlierWorker
    current: WorkerProcess


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    application = await Application.create(
        kafka.bootstrap_servers, tmp_path, partitions=str(PARTITIONS), session_timeout="6s"
    )
    yield application
    application.close()


def pairs_of(application: Application, version: Version, **options: str) -> list[Pair]:
    current = [application.new_worker(instance_id=f"worker-{number}", **options) for number in range(WORKERS)]
    return [Pair(earlier_worker(application, version, worker), worker) for worker in current]


async def start(worker: WorkerProcess) -> None:
    worker.start()
    await worker.ready()


def running(pairs: Sequence[Pair]) -> list[WorkerProcess]:
    return [worker for pair in pairs for worker in pair if worker.is_running]


async def answer(worker: WorkerProcess, path: str) -> Any:
    """Return what a worker answers, None if it cannot at the moment."""
    async with aiohttp.ClientSession() as session, session.get(worker.url + path) as response:
        return await response.json(content_type=None) if response.status == 200 else None


async def answered(worker: WorkerProcess, path: str) -> None:
    """Wait until a worker can answer: on a busy machine, another one may be too slow for it."""
    await eventually(
        lambda: answer(worker, path), within=WITHIN_S, every=0.1, what=f"an answer from {worker.url}{path}"
    )


async def each_knows_all(workers: Sequence[WorkerProcess]) -> None:
    """Wait until each worker lists the schedules of all, which it asks the others for; it finds each by its id."""
    for worker in workers:

        async def lists_all(worker: WorkerProcess = worker) -> bool:
            page = await answer(worker, f"/api/v1/tenants/default/schedules?id_prefix=listed-&limit={LISTED + 1}")
            return page is not None and len(page["schedules"]) == LISTED

        await eventually(lists_all, within=WITHIN_S, every=0.1, what=f"{worker.url}: schedules of all workers")
        for number in range(0, LISTED, 7):
            await answered(worker, f"/api/v1/tenants/default/schedules/listed-{number}")
        if writes_this_format(worker):  # before it, there was no overview
            await answered(worker, "/api/v1/overview")  # it may lack partitions of the other version, and names them


async def counts_agree(workers: Sequence[WorkerProcess]) -> None:
    """Wait until each worker counts the schedules of all partitions."""
    for worker in workers:

        async def counts_all(worker: WorkerProcess = worker) -> bool:
            document = await answer(worker, "/api/v1/overview")
            return document is not None and not document["missing"] and document["pending"] >= LISTED

        await eventually(counts_all, within=WITHIN_S, every=0.1, what=f"{worker.url}: counts of all partitions")


async def schedule_over_http(workers: Sequence[WorkerProcess], target: str, name: str) -> None:
    """Have each worker take a command over HTTP, and wait until each reads in the history that it was carried out."""
    paths = [f"/api/v1/tenants/default/schedules/http-{name}-{number}" for number in range(len(workers))]
    for worker, path in zip(workers, paths, strict=True):
        body = {"trigger": {"after": "1h"}, "target": {"topic": target}}
        async with (
            aiohttp.ClientSession() as session,
            session.put(f"{worker.url}{path}?timeout=60s", json=body) as response,
        ):
            assert response.status == 201, await response.text()
    for worker, path in product(workers, paths):

        async def reads_history(worker: WorkerProcess = worker, path: str = path) -> bool:
            page = await answer(worker, f"{path}/history")
            return page is not None and [event["event"] for event in page["events"]] == ["scheduled"]

        await eventually(reads_history, within=WITHIN_S, every=0.1, what=f"{worker.url}{path}/history")


async def schedule_ahead(client: SchedulerClient, target: str) -> None:
    """Schedule what workers list, and what a bulk command is to cancel."""
    ids = [f"listed-{number}" for number in range(LISTED)] + [f"bulk-{number}" for number in range(BULK)]
    await client.schedule_many({"id": id, "topic": target, "after": "1h"} for id in ids)


async def cancel_in_bulk(client: SchedulerClient) -> None:
    result = await client.cancel_many(id_prefix="bulk-")
    assert (result.outcome, result.count) == (Outcome.CANCELLED, BULK)


async def fill_a_quota(application: Application, workers: Sequence[WorkerProcess]) -> None:
    """Give a tenant a quota, wait until each worker knows, and use it up: partitions lend each other room for it."""
    settings = application.settings
    async with opened_tenants(application.bootstrap_servers, settings.topics, SystemClock(), 30) as store:
        await store.set_rules(
            "shop", lambda rules: msgspec.structs.replace(rules, max_pending=QUOTA), by=Requester("test", "")
        )

    async def is_known() -> bool:
        books = [await answer(worker, "/api/v1/tenants") for worker in workers]
        return all(book and [tenant["name"] for tenant in book["tenants"]] == ["shop"] for book in books)

    await eventually(is_known, within=WITHIN_S, every=0.1, what="the quota on all workers")
    replies = f"{settings.app_id}-shop"
    await application.create_topic(replies, 1)
    async with application.sender() as send:
        for number in range(WANTED):
            fields = {"tenant": "shop", "after": 3_600_000, "target_topic": application.target, "reply_topic": replies}
            await send(f"order-{number}", **fields)
    found = await read_until(application.bootstrap_servers, [replies], lambda records: len(records) == WANTED)
    outcomes = Counter(decode_result(record.value).outcome for record in found)
    assert outcomes == {Outcome.SCHEDULED: QUOTA, Outcome.REJECTED: WANTED - QUOTA}


async def replaced(pair: Pair) -> None:
    """End the worker of the earlier version in order, and start the one of this version in its place."""
    assert await pair.earlier.end() == 0, pair.earlier.log_end()
    await start(pair.current)


async def killed_and_replaced(application: Application, pairs: list[Pair], number: int) -> None:
    """Kill a worker; start its replacement when both others, one of each version, have taken over its partitions."""
    pairs[number].earlier.kill()
    await serve_all(application, running(pairs))
    await start(pairs[number].current)


async def serve_all(application: Application, workers: Sequence[WorkerProcess]) -> None:
    """Wait until workers run all partitions."""

    async def run_all() -> bool:
        infos = [await answer(worker, "/info") for worker in workers]
        lanes = [lane for info in infos if info for lane in info["lanes"] if lane["state"] == "running"]
        return {lane["partition"] for lane in lanes} == set(range(PARTITIONS))

    await eventually(run_all, within=WITHIN_S, every=0.1, what="all partitions on the workers that are left")


async def dead_letters(application: Application) -> Counter[str | None]:
    """Return how many commands and firings of each tenant were refused."""
    letters = await read_all(application.bootstrap_servers, application.settings.topics.dead_letters)
    return Counter(header(record, "dead-letter-tenant") for record in letters)


@pytest.mark.soak
async def test_workers_are_upgraded_one_by_one_under_load_one_killed_and_one_back_for_a_while(
    application: Application, tmp_path: Path
) -> None:
    version = await asyncio.to_thread(Version.unpack, FORMAT_VERSION, tmp_path / "version")
    assert version.format == FORMAT_VERSION, "both versions read what the other writes"
    pairs = pairs_of(application, version)
    await asyncio.gather(*(start(pair.earlier) for pair in pairs))
    async with application.client() as client, traffic(application):
        await schedule_ahead(client, application.target)
        await each_knows_all(running(pairs))
        await replaced(pairs[0])
        await each_knows_all(running(pairs))
        await schedule_over_http(running(pairs), application.target, "first")
        await cancel_in_bulk(client)
        await fill_a_quota(application, running(pairs))
        await killed_and_replaced(application, pairs, 1)
        await each_knows_all(running(pairs))
        await schedule_over_http(running(pairs), application.target, "second")
        assert await pairs[0].current.end() == 0
        await start(pairs[0].earlier)
        await each_knows_all(running(pairs))
        await replaced(pairs[2])
        await replaced(pairs[0])
        await each_knows_all(running(pairs))
        await counts_agree(running(pairs))
    assert await dead_letters(application) == {"shop": WANTED - QUOTA}


@pytest.mark.soak
async def test_to_a_new_format_workers_are_upgraded_one_by_one_and_none_goes_back(
    application: Application, tmp_path: Path
) -> None:
    """In the order that docs/operating.md gives: with `instance_id`, partitions stay where they are meanwhile."""
    version = await asyncio.to_thread(Version.unpack, FORMAT_VERSION - 1, tmp_path / "version")
    pairs = pairs_of(application, version, session_timeout="30s")
    await asyncio.gather(*(start(pair.earlier) for pair in pairs))
    async with application.client() as client, traffic(application):
        await schedule_ahead(client, application.target)
        await each_knows_all(running(pairs))
        await replaced(pairs[0])
        await each_knows_all(running(pairs))
        await schedule_over_http(running(pairs), application.target, "first")
        await cancel_in_bulk(client)
        await replaced(pairs[1])
        await replaced(pairs[2])
        await counts_agree(running(pairs))
        assert await pairs[0].current.end() == 0
        pairs[0].earlier.start()
        assert await pairs[0].earlier.ended() == 1
        assert "run the newer version that wrote it. Nothing was changed" in pairs[0].earlier.log.read_text()
        await start(pairs[0].current)
        await each_knows_all(running(pairs))
    assert await dead_letters(application) == {}


def test_there_is_an_earlier_version_that_writes_this_format_and_one_of_the_format_before(tmp_path: Path) -> None:
    """A new format wants another recording: scripts/record_version.py, of the last commit before the change."""
    for format in (FORMAT_VERSION - 1, FORMAT_VERSION):
        assert Version.unpack(format, tmp_path / str(format)).format == format


def test_asks_for_tokens_of_a_rate_are_answers_that_nobody_asked_for_to_an_earlier_version(tmp_path: Path) -> None:
    ask = RateAsk(RateName(RateKind.COMMANDS, "acme"), 1, 2, 3)
    version = Version.unpack(FORMAT_VERSION, tmp_path)
    assert version.mark_of(rate_headers(ask, "commands", 0, b"secret")) == "RoomGrant"
