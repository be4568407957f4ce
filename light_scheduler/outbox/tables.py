"""The tables of an outbox, in the metadata of the application.

    NAME            one row for each booked command that is not yet known to be in Kafka
    NAME_shards     one row for each shard: its identity, its relay, the end of the lease, the number of its last batch
    NAME_relays     one row for each running relay

A command belongs to the shard of its key, so the commands of one key stay in order. `batch` is null until a relay has
claimed the row. Few rows are refused, and an index of its own has these. Instants are UTC epoch ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, SmallInteger, String, Table, Text

SHARDS = 8
"""Number of relays that can work at the same time. Stored rows depend on it."""

DEFAULT_NAME = "light_scheduler_outbox"

_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")  # SQLite auto-increments only this type
_FREE = "0"


@dataclass(frozen=True)
class OutboxTables:
    """The three tables of one outbox."""

    commands: Table
    shards: Table
    relays: Table

    @property
    def channel(self) -> str:
        """The channel on which PostgreSQL notifies relays of bookings."""
        return self.commands.name


def define(metadata: MetaData, name: str) -> OutboxTables:
    """Add the tables to metadata. Raises sqlalchemy.exc.InvalidRequestError if it already has them."""
    refused = Column("refused", Text)
    of_refused = refused.is_not(None)
    commands = Table(
        name,
        metadata,
        Column("seq", _SEQUENCE, primary_key=True, autoincrement=True),
        Column("shard", SmallInteger, nullable=False),
        Column("batch", BigInteger),
        Column("booked_at", BigInteger, nullable=False),
        Column("tenant", String(64), nullable=False),
        Column("schedule_id", Text, nullable=False),
        Column("key", LargeBinary, nullable=False),
        Column("value", LargeBinary),
        Column("headers", LargeBinary, nullable=False),
        refused,
        Index(f"{name}_by_shard", "shard", "seq"),
        Index(f"{name}_refused", "seq", postgresql_where=of_refused, sqlite_where=of_refused),
        sqlite_autoincrement=True,
    )
    shards = Table(
        f"{name}_shards",
        metadata,
        Column("shard", SmallInteger, primary_key=True, autoincrement=False),
        Column("identity", String(36), nullable=False),
        Column("relay", String(36)),
        Column("until", BigInteger, nullable=False, server_default=_FREE),
        Column("batch", BigInteger, nullable=False, server_default=_FREE),
    )
    relays = Table(
        f"{name}_relays",
        metadata,
        Column("relay", String(36), primary_key=True),
        Column("until", BigInteger, nullable=False),
    )
    return OutboxTables(commands, shards, relays)


def shard_of(key: bytes) -> int:
    """Return the shard for the commands of a key."""
    return crc32(key) % SHARDS
