"""Workers of an earlier version and of this one side by side, as in a rolling upgrade, while they are at work.

The earlier versions are in tests/golden/versions (see scripts/record_version.py). `Traffic` holds what came of its
commands against what they were: each is answered once, each schedule fires once, nothing fires early.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import product
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application, WorkerProcess
from support.counting import as_of_format_8
from support.reading import read_all, read_until
from support.traffic import traffic
from support.upgrading import (
    BULK,
    PARTITIONS,
    WITHIN_S,
    answer,
    counts_agree,
    dead_letters,
    each_knows_all,
    killed_and_replaced,
    pairs_of,
    recorded_version,
    replaced,
    running,
    schedule_ahead,
    serve_all,
    start,
    version_before_lacking,
)
from support.versions import Version, earlier_worker
from support.waiting import eventually

from light_scheduler.client import SchedulerClient
from light_scheduler.clock import SystemClock
from light_scheduler.model import BulkTotal, ControlCommand, Outcome, Requester, Selection
from light_scheduler.model.bulk import SubTotal, lacking
from light_scheduler.model.rate_lending import RateAsk, RateKind, RateName
from light_scheduler.tables import Overlay, ScheduleTable
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.table import CHECKPOINT_VERSION, IN_LATER_LOG
from light_scheduler.tenants import opened_tenants
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_result
from light_scheduler.wire.delayed_state import DelayedQueue
from light_scheduler.wire.rate_lending import rate_headers
from light_scheduler.wire.state import (
    POSITION_KEY,
    CommandsLog,
    bulk_total_key,
    encode_bulk_total,
    encode_position,
)
from light_scheduler.wire.state_format import FORMAT_VERSION
from light_scheduler.wire.waiting_state import encode_waiting_queue, waiting_queue_key

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(900)]

QUOTA, WANTED = 60, 80


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    application = await Application.create(
        kafka.bootstrap_servers, tmp_path, partitions=str(PARTITIONS), session_timeout="6s"
    )
    yield application
    application.close()


async def schedule_over_http(workers: Sequence[WorkerProcess], target: str, name: str) -> None:
    """Have each worker take a command over HTTP, and wait until each reads in the history that it was carried out."""
    paths = [f"/api/v1/tenants/default/schedules/http-{name}-{number}" for number in range(len(workers))]
    for worker, path in zip(workers, paths, strict=True):

        async def is_scheduled(worker: WorkerProcess = worker, path: str = path) -> bool:
            body = {"trigger": {"after": "1h"}, "target": {"topic": target}}
            async with (
                aiohttp.ClientSession() as session,
                session.put(f"{worker.url}{path}?timeout=60s", json=body) as response,
            ):
                if response.status == 503:  # another worker is too slow to say whether it has this id
                    return False
                assert response.status == 201, await response.text()
                return True

        await eventually(is_scheduled, within=WITHIN_S, every=0.1, what=f"PUT {worker.url}{path}")
    for worker, path in product(workers, paths):

        async def reads_history(worker: WorkerProcess = worker, path: str = path) -> bool:
            page = await answer(worker, f"{path}/history")
            return page is not None and [event["event"] for event in page["events"]] == ["scheduled"]

        await eventually(reads_history, within=WITHIN_S, every=0.1, what=f"{worker.url}{path}/history")


async def cancel_in_bulk(client: SchedulerClient) -> None:
    result = await client.cancel_many(id_prefix="bulk-", timeout=120.0)
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


OF_THIS_FORMAT = [recorded_version, pytest.param(version_before_lacking, marks=pytest.mark.every_case)]
"""The earlier one does not know the records of bulk commands in a topic that grows, both do not know `LACKING`."""


@pytest.mark.soak
@pytest.mark.parametrize("earlier", OF_THIS_FORMAT)
async def test_workers_are_upgraded_one_by_one_under_load_one_killed_and_one_back_for_a_while(
    application: Application, tmp_path: Path, earlier: Callable[[Path], Version]
) -> None:
    version = await asyncio.to_thread(earlier, tmp_path / "version")
    assert version.format == FORMAT_VERSION, "both versions read what the other writes"
    pairs = pairs_of(application, version, session_timeout="20s")  # so that the one that is back has its partitions
    await asyncio.gather(*(start(pair.earlier) for pair in pairs))
    async with application.client() as client, traffic(application):
        await schedule_ahead(client, application.target)
        await each_knows_all(running(pairs))
        await replaced(pairs[0])
        await each_knows_all(running(pairs))
        await schedule_over_http(running(pairs), application.target, "first")
        await cancel_in_bulk(client)
        await fill_a_quota(application, running(pairs))
        await killed_and_replaced(pairs, 1)
        await each_knows_all(running(pairs))
        await schedule_over_http(running(pairs), application.target, "second")
        assert await pairs[0].current.end() == 0
        pairs[0].earlier.start()
        assert await pairs[0].earlier.ended() == 1, "its local copies are in a format that is new"
        assert "run the newer version that wrote it. Nothing was changed" in pairs[0].earlier.log.read_text()
        await asyncio.to_thread(shutil.rmtree, pairs[0].current.data_dir)
        await start(pairs[0].earlier)
        await each_knows_all(running(pairs))
        await replaced(pairs[2])
        await replaced(pairs[0])
        await each_knows_all(running(pairs))
        await counts_agree(running(pairs))
    assert await dead_letters(application) == {"shop": WANTED - QUOTA}


@pytest.mark.soak
@pytest.mark.every_case
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


COMMAND = ControlCommand("pause", "default", "*", None, 0, 7, 0, selection=Selection(""))
ABOVE = BulkTotal(COMMAND, (1,), token="0" * 32)
LATER_LOG = CommandsLog("id", "app", "commands", number=1)
OF_THEIR_OWN = {
    128: (bulk_total_key(7), encode_bulk_total(SubTotal(COMMAND, (1,), token="0" * 32))),
    129: (bulk_total_key(7), encode_bulk_total(lacking(ABOVE, [2]))),
    130: (waiting_queue_key(2), encode_waiting_queue(DelayedQueue(0, 1, 100))),
}
"""Records whose versions are above the format's."""


@pytest.mark.parametrize(
    ("earlier", "refused"), [*((recorded_version, number) for number in OF_THEIR_OWN), (version_before_lacking, 129)]
)
def test_an_earlier_version_refuses_a_record_that_it_does_not_know_and_leaves_it_as_it_is(
    tmp_path: Path, earlier: Callable[[Path], Version], refused: int
) -> None:
    """In the changelog before it takes over, in a local copy when it comes to it: to a queue in its first cycle."""
    version, (key, value), copy = earlier(tmp_path / "version"), OF_THEIR_OWN[refused], tmp_path / "copy"
    table = ScheduleTable(RocksStore(copy))
    overlay = Overlay(table)
    overlay.replay(key, value)
    overlay.apply(changelog_offset=1, complete_at=1)
    as_of_format_8(table.store)
    table.close()
    said = version.refuses(key, value, copy)
    assert len(said) == 2
    assert all(f"format {refused}" in each and each.endswith("Nothing was changed") for each in said)


def test_an_earlier_version_refuses_a_position_in_a_later_log_and_a_copy_with_it(tmp_path: Path) -> None:
    """It would take arrivals there for those of the first log."""
    version, position = recorded_version(tmp_path / "version"), encode_position(7, LATER_LOG)
    table = ScheduleTable(RocksStore(tmp_path / "copy"))
    overlay = Overlay(table)
    overlay.replay(POSITION_KEY, position)
    overlay.apply(changelog_offset=1, complete_at=1)
    table.close()
    said = version.refuses_position(POSITION_KEY, position, tmp_path / "copy")
    formats = position[0], CHECKPOINT_VERSION | IN_LATER_LOG
    assert all(f"format {number}" in each for number, each in zip(formats, said, strict=True))
    assert all(each.endswith("Nothing was changed") for each in said)


@pytest.mark.soak
@pytest.mark.parametrize("earlier", OF_THIS_FORMAT)
async def test_a_worker_of_an_earlier_version_ends_before_it_changes_a_partition_with_a_total_that_it_does_not_know(
    application: Application, tmp_path: Path, earlier: Callable[[Path], Version]
) -> None:
    names = application.settings.topics
    changelog, record = names.changelog(names.commands), OF_THEIR_OWN[129]
    producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
    await producer.start()
    try:
        await producer.send_and_wait(changelog, key=record[0], value=record[1], partition=0)
    finally:
        await producer.stop()
    version = await asyncio.to_thread(earlier, tmp_path / "version")
    worker = application.new_worker(rebuild_processes="0")
    older = earlier_worker(application, version, worker)
    older.start()
    assert await older.ended() == 1
    assert "state was written in format 129" in older.log.read_text()
    found = await read_all(application.bootstrap_servers, changelog)
    assert [(each.key, each.value) for each in found if each.partition == 0] == [record]
    await start(worker)
    await serve_all([worker])


@pytest.mark.every_case
def test_asks_for_tokens_of_a_rate_are_answers_that_nobody_asked_for_to_an_earlier_version(tmp_path: Path) -> None:
    ask = RateAsk(RateName(RateKind.COMMANDS, "acme"), 1, 2, 3)
    version = Version.unpack(FORMAT_VERSION, tmp_path)
    assert version.mark_of(rate_headers(ask, "commands", 0, b"secret")) == "RoomGrant"
