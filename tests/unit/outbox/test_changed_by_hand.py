"""Rows of an outbox that somebody has changed by hand: which are sent, and what is said of the others."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, create_engine, event, select, text
from sqlalchemy.pool import StaticPool

from light_scheduler.clock import SettableClock
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import LATEST_INSTANT
from light_scheduler.outbox import Outbox, OutboxRelay
from light_scheduler.outbox.ledger import MOST_ROWS, Ledger, make_shard
from light_scheduler.outbox.tables import SHARDS, shard_of

AT = 1_893_456_000_000
NAME = "light_scheduler_outbox"


class Shop:
    """A database in memory with an outbox, and a relay's ledger that has all shards."""

    def __init__(self) -> None:
        self.engine: Engine = create_engine(
            "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
        # As a table that somebody else has made: columns may hold anything.
        event.listen(self.engine, "before_cursor_execute", _without_constraints, retval=True)
        self.outbox = Outbox(metadata := MetaData(), clock=SettableClock(AT))
        metadata.create_all(self.engine)
        self.ledger = Ledger(self.outbox.tables, "relay", 5_000)
        with self.engine.begin() as connection:
            for shard in range(SHARDS):
                make_shard(self.outbox.tables, shard, connection)
            assert len(self.ledger.attend(connection)) == SHARDS

    def book(self, *ids: str) -> None:
        with self.engine.begin() as connection:
            for id in ids:
                self.outbox.schedule(connection, id, b"pay!", topic="mails", after="1h", key="one")

    def change(self, column: str, value: str, where: str = "schedule_id = 'changed'") -> None:
        with self.engine.begin() as connection:
            assert connection.execute(text(f"UPDATE {NAME} SET {column} = {value} WHERE {where}")).rowcount

    def claimed(self) -> list[str]:
        """Return the ids of the next batch."""
        with self.engine.begin() as connection:
            batch = self.ledger.claim(connection, shard_of(b"one"))
            return [] if batch is None else [row.id for row in batch.rows]

    def refused(self) -> dict[int, str]:
        """Return the reasons, by row."""
        commands = self.outbox.tables.commands
        with self.engine.connect() as connection:
            found = connection.execute(
                select(commands.c.seq, commands.c.refused).where(commands.c.refused.is_not(None))
            )
            return {row.seq: row.refused for row in found}


def _without_constraints(*arguments: Any) -> tuple[str, Any]:
    _, _, statement, parameters, *_ = arguments
    return statement.replace(" NOT NULL", "") if "CREATE TABLE" in statement else statement, parameters


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("headers", "NULL", "column headers is None, and has to be bytes"),
        ("headers", "x''", "column headers is not the MessagePack of headers"),
        ("headers", "x'ff00'", "column headers is not the MessagePack of headers"),
        ("headers", "'{\"a\": 1}'", "column headers is '{\"a\": 1}', and has to be bytes"),
        ("headers", "x'9192a1ffc401ff'", "column headers is not the MessagePack of headers"),
        ("headers", "x'91c0'", "column headers is not the MessagePack of headers"),
        ("headers", f"x'{'91' * 100_000}'", "column headers is not the MessagePack of headers"),
        ("key", "NULL", "column key is None, and has to be bytes"),
        ("key", "'one'", "column key is 'one', and has to be bytes"),
        ("key", "7", "column key is 7, and has to be bytes"),
        ("value", "'pay!'", "column value is 'pay!', and has to be bytes"),
        ("value", f"'{'x' * 1_000}'", f"column value is '{'x' * 59}..., and has to be bytes"),
        ("booked_at", "NULL", "column booked_at is None, and has to be UTC epoch ms"),
        ("booked_at", "-1", "column booked_at is -1, and has to be UTC epoch ms"),
        ("booked_at", f"{LATEST_INSTANT + 1}", "and has to be UTC epoch ms"),
        ("booked_at", "1.5", "column booked_at is 1.5, and has to be UTC epoch ms"),
        ("booked_at", "'2030-01-01'", "column booked_at is '2030-01-01', and has to be UTC epoch ms"),
        ("tenant", "NULL", "column tenant is None, and has to be text"),
        ("schedule_id", "x'00'", r"column schedule_id is b'\x00', and has to be text"),
    ],
)
def test_a_row_that_is_no_command_is_set_aside_by_column_and_the_others_are_sent(
    column: str, value: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Shop()
    shop.book("before", "changed", "after")
    shop.change(column, value)
    assert shop.claimed() == ["before", "after"]
    ((row, said),) = shop.refused().items()
    assert reason in said
    assert "set the column refused to null, or delete the row and book the command again" in said
    assert "sent after later commands of its key, so it can bring back a schedule that was cancelled since" in said
    assert f"table {NAME}: row {row} is set aside: " in caplog.text
    assert shop.ledger.refused == {row}
    assert shop.claimed() == []


def test_a_row_that_was_set_right_is_sent() -> None:
    shop = Shop()
    shop.book("changed")
    shop.change("key", "NULL")
    assert shop.claimed() == []
    shop.change("key", "x'6f6e65', refused = NULL")
    assert shop.claimed() == ["changed"]


def test_a_row_that_was_set_right_is_sent_after_the_cancellation_that_was_booked_later() -> None:
    """As what is said of it and docs/outbox.md warn."""
    shop = Shop()
    shop.book("changed")
    shop.change("key", "NULL")
    with shop.engine.begin() as connection:
        shop.outbox.cancel(connection, "changed", key="one")
    assert shop.claimed() == ["changed"]
    assert shop.claimed() == []
    shop.change("key", "x'6f6e65', refused = NULL", where="key IS NULL")
    assert shop.claimed() == ["changed"]


def test_however_many_rows_are_no_commands_the_next_is_sent() -> None:
    shop = Shop()
    shop.book(*["changed"] * (MOST_ROWS + 1), "last")
    shop.change("headers", "x''")
    assert shop.claimed() == ["last"]
    assert len(shop.refused()) == MOST_ROWS + 1


@pytest.mark.parametrize(
    ("column", "value"),
    [("value", "NULL"), ("value", "x''"), ("booked_at", "0"), ("headers", "x'90'"), ("tenant", "''")],
)
def test_what_can_be_sent_is_sent_for_the_scheduler_to_judge(column: str, value: str) -> None:
    shop = Shop()
    shop.book("changed")
    shop.change(column, value)
    assert shop.claimed() == ["changed"]


@pytest.mark.parametrize("shard", ["99", "-1", "NULL", "'x'"])
async def test_rows_of_a_shard_that_there_is_not_are_told_of_once(shard: str, caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop()
    shop.book("changed")
    shop.change("shard", shard)
    with shop.engine.begin() as connection:
        shop.ledger.leave(connection)
    relay = OutboxRelay(shop.engine)
    assert [await relay._round() for _ in range(2)] == [0, 0]
    (told,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert f"rows whose shard is {'None' if shard == 'NULL' else shard} are never sent: shards are 0 to 7" in told


@pytest.mark.parametrize("id", ["", "a\0b", "a\nb", "\ud800"], ids=["empty", "nul", "line", "half"])
def test_an_id_that_no_schedule_can_have_is_refused_where_it_is_booked(id: Any) -> None:
    shop = Shop()
    with shop.engine.begin() as connection, pytest.raises(InvalidCommand) as refused:
        shop.outbox.schedule(connection, id, topic="mails", after="1h")
    assert refused.value.field == "id"
    assert shop.claimed() == []


@pytest.mark.parametrize("session", [None, "session", object()])
def test_what_is_no_session_is_refused(session: object) -> None:
    with pytest.raises(InvalidCommand, match="must be a Session"):
        Shop().outbox.schedule(session, "a", topic="mails")
