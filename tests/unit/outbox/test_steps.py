"""Relays that are killed, or frozen and woken, between any two of their steps: the ledger against a model of Kafka.

The model has what the steps count on: records and mark are one transaction, and whoever fences ends all earlier owners.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import MetaData, create_engine
from sqlalchemy.pool import StaticPool
from support.tries import tries

from light_scheduler.client.marks import Mark
from light_scheduler.clock import SettableClock
from light_scheduler.outbox import DatabaseBehind, Outbox, OutboxInDoubt
from light_scheduler.outbox.errors import ShardLost
from light_scheduler.outbox.ledger import Ledger, make_shard
from light_scheduler.outbox.tables import shard_of

KEY = b"one"
SHARD = shard_of(KEY)
OVER_AT_ONCE_MS = -1
"""Leases that any other relay may take over."""
MOST = 2


class FencedError(Exception):
    """A later owner has taken over."""


class Kafka:
    """The commands topic, as ids, with the mark of one shard."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.mark: Mark | None = None
        self.epoch = 0

    def fence(self) -> int:
        self.epoch += 1
        return self.epoch

    def commit(self, epoch: int, ids: list[str], mark: Mark) -> None:
        if epoch != self.epoch:
            raise FencedError
        self.sent += ids
        self.mark = mark


class Shop:
    """A database with an outbox, and relays that share its one shard with rows."""

    def __init__(self) -> None:
        self.engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        self.outbox = Outbox(metadata := MetaData(), clock=SettableClock(1_893_456_000_000))
        metadata.create_all(self.engine)
        self.kafka = Kafka()
        self.booked: list[str] = []
        with self.engine.begin() as connection:
            make_shard(self.outbox.tables, SHARD, connection)

    def book(self, count: int) -> None:
        with self.engine.begin() as connection:
            for _ in range(count):
                self.booked.append(f"order-{len(self.booked)}")
                self.outbox.schedule(connection, self.booked[-1], topic="mails", after="1h", key=KEY)

    def relay(self, name: str) -> Iterator[None]:
        """Take one step for each value, as `ShardRelay` takes them; end when nothing is booked or the shard is lost."""
        ledger = Ledger(self.outbox.tables, name, OVER_AT_ONCE_MS)
        with self.engine.begin() as connection:
            ledger.attend(connection)
        yield
        epoch = self.kafka.fence()
        yield
        mark = self.kafka.mark
        yield
        with self.engine.begin() as connection:
            last = ledger.recover(connection, SHARD, mark)
        yield
        self.kafka.commit(epoch, [], last)
        while True:
            yield
            with self.engine.begin() as connection:
                batch = ledger.claim(connection, SHARD, MOST)
            if batch is None:
                return
            yield
            self.kafka.commit(epoch, [row.id for row in batch.rows], Mark(batch.number, last.identity))
            yield
            with self.engine.begin() as connection:
                ledger.settle(connection, SHARD, batch.number)


def take(relay: Iterator[None], steps: int) -> bool:
    """Take steps of a relay; tell whether it can go on."""
    try:
        return all(next(relay, "over") is None for _ in range(steps))
    except (FencedError, ShardLost):
        return False


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from(["steps", "steps", "steps", "killed"]),
            st.integers(1, 9),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
@settings(max_examples=tries(400), deadline=None)
def test_relays_that_are_killed_or_frozen_between_any_two_steps_lose_and_double_nothing(
    history: list[tuple[str, str, int, int]],
) -> None:
    shop = Shop()
    relays: dict[str, Iterator[None]] = {}
    for name, happens, steps, booked in history:
        shop.book(booked)
        relay = relays.setdefault(name, shop.relay(name))
        if not take(relay, steps) or happens == "killed":
            del relays[name]
    shop.book(1)
    assert not take(shop.relay("last"), 10_000)
    assert shop.kafka.sent == shop.booked
    with shop.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM light_scheduler_outbox").scalar() == 0


def test_rows_that_were_claimed_are_not_sent_if_kafka_has_forgotten_the_mark() -> None:
    shop = Shop()
    shop.book(1)
    assert take(shop.relay("a"), 6)  # claimed
    shop.kafka.mark = None
    with pytest.raises(OutboxInDoubt, match="1 rows of shard"):
        take(shop.relay("b"), 10)
    assert shop.kafka.sent == []


@pytest.mark.parametrize("change", ["identity", "batch"])
def test_nothing_is_sent_from_a_database_that_kafka_has_had_more_from(change: str) -> None:
    shop = Shop()
    shop.book(3)
    take(shop.relay("a"), 10_000)
    assert shop.kafka.mark is not None
    shop.kafka.mark = (
        shop.kafka.mark._replace(identity="other")
        if change == "identity"
        else shop.kafka.mark._replace(batch=shop.kafka.mark.batch + 1)
    )
    shop.book(1)
    with pytest.raises(DatabaseBehind):
        take(shop.relay("b"), 10_000)
    assert len(shop.kafka.sent) == 3
