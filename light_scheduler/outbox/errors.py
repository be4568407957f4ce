"""Errors of a relay.

SchedulerError
└── OutboxError             a relay cannot continue with a shard by itself
    ├── OutboxInDoubt       ... because Kafka has forgotten which batch was sent last
    ├── DatabaseBehind      ... because Kafka has batches that the database does not know
    └── ShardLost           ... because another relay owns it (retriable)
"""

from __future__ import annotations

from light_scheduler.errors import SchedulerError


class OutboxError(SchedulerError):
    """A relay cannot continue with a shard by itself."""


class OutboxInDoubt(OutboxError):
    """Rows were claimed, but Kafka has forgotten whether they were sent: they may or may not be in the commands
    topic."""

    def __init__(self, table: str, shard: int, rows: int) -> None:
        super().__init__(
            f"table {table}: {rows} rows of shard {shard} may have been sent or not: Kafka has no position of this "
            "relay (offsets.retention.minutes passed, or it is another cluster). See whether the commands topic has "
            f"them; then delete them, or set their column batch to null to send them: WHERE shard = {shard} AND batch "
            "IS NOT NULL"
        )


class DatabaseBehind(OutboxError):
    """Kafka has batches that the database does not know: it was restored, or two outboxes have the same name."""

    def __init__(self, table: str, shard: int) -> None:
        super().__init__(
            f"table {table}: Kafka has batches of shard {shard} that this database does not know: it was restored from "
            "a backup, or another database has an outbox of this name. Give each database its own name"
        )


class ShardLost(OutboxError):
    """Another relay has taken over a shard."""

    retriable = True

    def __init__(self, shard: int) -> None:
        super().__init__(f"shard {shard} belongs to another relay")
