"""A relay whose Kafka or database fails meanwhile, and the time that its commands have."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
from sqlalchemy import MetaData, create_engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool

from light_scheduler.clock import SettableClock
from light_scheduler.connection import Connection
from light_scheduler.errors import BrokerError
from light_scheduler.outbox import BlockingOutboxRelay, Outbox, OutboxRelay, relay, shard
from light_scheduler.outbox.ledger import Batch
from light_scheduler.outbox.rows import BookedRow


@pytest.fixture
def outbox_relay() -> OutboxRelay:
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    Outbox(metadata := MetaData())
    metadata.create_all(engine)
    return OutboxRelay(engine)


@pytest.mark.parametrize(
    "failure",
    [BrokerError("no broker answers"), OperationalError("SELECT 1", None, Exception("gone")), OSError("gone")],
    ids=lambda failure: type(failure).__name__,
)
async def test_a_failure_is_logged_and_tried_again_after_growing_pauses(
    failure: Exception,
    outbox_relay: OutboxRelay,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rounds, pauses = 0, []

    async def failing() -> int:
        nonlocal rounds
        rounds += 1
        if rounds in (1, 2, 3, 5):
            raise failure
        if rounds == 6:
            outbox_relay.stop()
        return 1

    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(outbox_relay, "_round", failing)
    monkeypatch.setattr(outbox_relay, "_pause", noted)
    with caplog.at_level(logging.WARNING):
        await asyncio.wait_for(outbox_relay.run(), 30)
    first = relay.FIRST_PAUSE_S
    assert (rounds, pauses) == (6, [first, 2 * first, 4 * first, first])
    assert caplog.text.count("the outbox waits for") == 4


async def test_pauses_after_failures_have_a_longest(outbox_relay: OutboxRelay, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def failing() -> int:
        if len(pauses) == 12:
            outbox_relay.stop()
        raise BrokerError("no broker answers")

    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(outbox_relay, "_round", failing)
    monkeypatch.setattr(outbox_relay, "_pause", noted)
    await asyncio.wait_for(outbox_relay.run(), 30)
    assert max(pauses) == relay.LAST_PAUSE_S


async def test_what_is_no_failure_from_outside_ends_a_relay(
    outbox_relay: OutboxRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing() -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(outbox_relay, "_round", failing)
    with pytest.raises(ZeroDivisionError):
        await outbox_relay.run()


def test_a_blocking_relay_that_is_stopped_before_it_runs_does_not_run(tmp_path: Path) -> None:
    engine = create_engine(url := f"sqlite:///{tmp_path}/shop.db")
    Outbox(metadata := MetaData())
    metadata.create_all(engine)
    engine.dispose()
    stopped = BlockingOutboxRelay(url)
    stopped.stop()
    running = threading.Thread(target=stopped.run, daemon=True)
    running.start()
    running.join(30)
    assert not running.is_alive()


class NotedBatches:
    """Record batches that note what is added, with its timestamp."""

    added: ClassVar[list[tuple[int, bytes]]] = []

    def __init__(self, timestamp: int, limit_of: object = None) -> None:
        self.timestamp = timestamp

    def add(self, _place: tuple[str, int], key: bytes, _value: bytes | None, _headers: object) -> None:
        self.added.append((self.timestamp, key))


class FakeProducer:
    async def partitions_of(self, _topic: str) -> int:
        return 3


async def test_a_command_has_the_time_of_its_booking_so_delays_count_from_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unused: Any = None
    route = shard.Route(Connection("127.0.0.1:9"), "commands", "x")
    sent: Any = shard.ShardRelay(0, route, unused, unused, unused, clock=SettableClock(99), on_step=print)

    async def committed(*_: object) -> None:
        return

    monkeypatch.setattr(shard, "RecordBatches", NotedBatches)
    monkeypatch.setattr(sent, "_commit", committed)
    rows = [BookedRow(seq, booked_at, "default", "a", b"%d" % seq, b"", []) for seq, booked_at in ((1, 7), (2, 5))]
    await sent._send(FakeProducer(), Batch(1, rows))
    assert NotedBatches.added == [(7, b"1"), (5, b"2")]
