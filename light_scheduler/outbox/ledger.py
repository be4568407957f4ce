"""A relay's access to the database. Each method is the body of one transaction."""

from __future__ import annotations

import logging
from typing import NamedTuple
from uuid import uuid4

from sqlalchemy import Connection, delete, func, insert, select, update

from light_scheduler.client.marks import Mark

from .database_time import DatabaseTime
from .errors import DatabaseBehind, OutboxInDoubt, ShardLost
from .rows import BookedRow, booked_row, raw_columns
from .tables import SHARDS, OutboxTables

log = logging.getLogger(__name__)

MOST_ROWS = 500
MOST_BYTES = 8 * 1024 * 1024
"""Limits of a batch: number of rows, and bytes of payload. The last row may exceed the limit of bytes."""


class Batch(NamedTuple):
    """Rows of a shard that are sent together, in order, with a number that is unique within the shard."""

    number: int
    rows: list[BookedRow]


class Ledger:
    """The tables as one relay uses them. A relay keeps its shards for `lease_ms` after its last heartbeat.

    Leases begin and end by the clock of the database: the relays' own clocks may be hours apart.
    """

    def __init__(self, tables: OutboxTables, relay: str, lease_ms: int) -> None:
        self._commands, self._shards, self._relays = tables.commands, tables.shards, tables.relays
        self._relay = relay
        self._lease_end = DatabaseTime() + lease_ms
        self.refused: set[int] = set()
        """The rows (`seq`) that this relay has set aside."""

    def attend(self, connection: Connection) -> list[int]:
        """Send a heartbeat. Take or give up shards, so that relays have equal shares. Return this relay's shards."""
        shards = self._shards
        live = self._sign_of_life(connection)
        connection.execute(update(shards).where(shards.c.relay == self._relay).values(until=self._lease_end))
        mine = list(connection.scalars(select(shards.c.shard).where(shards.c.relay == self._relay)))
        share = -(-SHARDS // live)
        if len(mine) > share:
            self._give_up(connection, sorted(mine)[share:])
            return sorted(mine)[:share]
        return sorted([*mine, *self._take(connection, share - len(mine))])

    def leave(self, connection: Connection) -> None:
        """Give up all shards, so that others need not wait for the lease to end."""
        shards, relays = self._shards, self._relays
        connection.execute(update(shards).where(shards.c.relay == self._relay).values(relay=None, until=0))
        connection.execute(delete(relays).where(relays.c.relay == self._relay))

    def waiting(self, connection: Connection) -> set[int]:
        """Return the shards of any relay that have rows to send or settle."""
        commands = self._commands
        return set(connection.scalars(select(commands.c.shard).where(commands.c.refused.is_(None)).distinct()))

    def count_refused(self, connection: Connection) -> int:
        """Return how many rows any relay has set aside."""
        refused = self._commands.c.refused
        return connection.scalar(select(func.count()).select_from(self._commands).where(refused.is_not(None))) or 0

    def recover(self, connection: Connection, shard: int, mark: Mark | None) -> Mark:
        """Make the rows of a shard consistent with Kafka, where `mark` is the last committed batch.

        Returns the last claimed batch. Raises ShardLost, OutboxInDoubt, DatabaseBehind.
        """
        self._hold(connection, shard)
        commands, shards = self._commands, self._shards
        of_shard = commands.c.shard == shard
        known = select(shards.c.batch, shards.c.identity).where(shards.c.shard == shard)
        last = Mark(*connection.execute(known).one())
        if mark is None:
            claimed = select(func.count()).where(of_shard, commands.c.batch.is_not(None), commands.c.refused.is_(None))
            if in_doubt := connection.scalar(claimed):
                raise OutboxInDoubt(commands.name, shard, in_doubt)
            return last
        if mark.identity != last.identity or mark.batch > last.batch:
            raise DatabaseBehind(commands.name, shard)
        sent = commands.c.batch <= mark.batch
        connection.execute(delete(commands).where(of_shard, sent, commands.c.refused.is_(None)))
        connection.execute(update(commands).where(of_shard, commands.c.batch > mark.batch).values(batch=None))
        return last

    def claim(self, connection: Connection, shard: int, most: int = MOST_ROWS) -> Batch | None:
        """Claim the next rows of a shard as a batch; None if there are none. Raises ShardLost.

        Rows that are not valid commands are set aside.
        """
        self._hold(connection, shard)
        commands, shards = self._commands, self._shards
        rows: list[BookedRow] = []
        while not rows:
            found = connection.execute(
                select(commands.c.seq, func.length(commands.c.value))
                .where(commands.c.shard == shard, commands.c.batch.is_(None), commands.c.refused.is_(None))
                .order_by(commands.c.seq)
                .limit(most)
            )
            chosen = _first([(seq, size or 0) for seq, size in found])
            if not chosen:
                return None
            rows = self._commands_in(connection, chosen)
        connection.execute(update(shards).where(shards.c.shard == shard).values(batch=shards.c.batch + 1))
        number = connection.scalar(select(shards.c.batch).where(shards.c.shard == shard))
        assert number is not None, "its row is held"
        connection.execute(update(commands).where(commands.c.seq.in_([row.seq for row in rows])).values(batch=number))
        return Batch(number, rows)

    def settle(self, connection: Connection, shard: int, number: int) -> None:
        """Delete the rows of a batch that is in Kafka."""
        commands = self._commands
        connection.execute(
            delete(commands).where(commands.c.shard == shard, commands.c.batch == number, commands.c.refused.is_(None))
        )

    def refuse(self, connection: Connection, shard: int, number: int, seq: int, reason: str) -> None:
        """Set aside a row of batch `number`, which Kafka does not accept. It stays in the table, with the reason.

        Raises ShardLost if another relay has taken over the shard, even if it gave it back: the row may be in Kafka.
        """
        self._hold(connection, shard)
        commands = self._commands
        batch = select(commands.c.batch).where(commands.c.seq == seq, commands.c.refused.is_(None))
        if connection.scalar(batch) != number:
            raise ShardLost(shard)
        self._set_aside(connection, seq, reason)

    def _commands_in(self, connection: Connection, chosen: list[int]) -> list[BookedRow]:
        """Return the rows that are valid commands, and set the others aside."""
        commands, rows = self._commands, []
        found = connection.execute(
            select(*raw_columns(commands)).where(commands.c.seq.in_(chosen)).order_by(commands.c.seq)
        )
        for row in found.all():
            try:
                rows.append(booked_row(row))
            except ValueError as error:
                log.warning("table %s: row %d is set aside: %s", commands.name, row.seq, error)
                self._set_aside(connection, row.seq, str(error))
        return rows

    def _set_aside(self, connection: Connection, seq: int, reason: str) -> None:
        connection.execute(update(self._commands).where(self._commands.c.seq == seq).values(refused=reason))
        self.refused.add(seq)

    def _sign_of_life(self, connection: Connection) -> int:
        """Record that this relay is alive. Return the number of relays that are."""
        relays = self._relays
        known = connection.execute(update(relays).where(relays.c.relay == self._relay).values(until=self._lease_end))
        if known.rowcount == 0:
            connection.execute(insert(relays).values(relay=self._relay, until=self._lease_end))
        connection.execute(delete(relays).where(relays.c.until < DatabaseTime()))
        return connection.scalar(select(func.count()).select_from(relays)) or 1

    def _take(self, connection: Connection, wanted: int) -> list[int]:
        shards = self._shards
        is_free = shards.c.until < DatabaseTime()
        free = select(shards.c.shard).where(is_free).limit(wanted).with_for_update(skip_locked=True)
        taken = []
        for shard in list(connection.scalars(free)) if wanted > 0 else ():
            # SQLite does not lock rows, so the update checks the condition again.
            mine = update(shards).where(shards.c.shard == shard, is_free)
            changed = connection.execute(mine.values(relay=self._relay, until=self._lease_end))
            if changed.rowcount:
                taken.append(shard)
        return taken

    def _give_up(self, connection: Connection, given: list[int]) -> None:
        mine = update(self._shards).where(self._shards.c.relay == self._relay, self._shards.c.shard.in_(given))
        connection.execute(mine.values(relay=None, until=0))

    def _hold(self, connection: Connection, shard: int) -> None:
        """Lock the row of a shard until the end of the transaction. Raises ShardLost if another relay owns the
        shard."""
        shards = self._shards
        mine = update(shards).where(shards.c.shard == shard, shards.c.relay == self._relay)
        if connection.execute(mine.values(until=self._lease_end)).rowcount == 0:
            raise ShardLost(shard)


def make_shard(tables: OutboxTables, shard: int, connection: Connection) -> None:
    """Add the row of a shard. Raises sqlalchemy.exc.IntegrityError if another relay has just done so."""
    known = select(func.count()).where(tables.shards.c.shard == shard)
    if not connection.scalar(known):
        connection.execute(insert(tables.shards).values(shard=shard, identity=str(uuid4())))


def _first(found: list[tuple[int, int]]) -> list[int]:
    """Return the first rows, up to `MOST_BYTES`."""
    chosen, total = [], 0
    for seq, size in found:
        chosen.append(seq)
        total += size
        if total >= MOST_BYTES:
            break
    return chosen
