"""Errors of a relay.

SchedulerError
└── OutboxError             a relay cannot go on with a shard by itself
    ├── OutboxInDoubt       ... because Kafka has forgotten which batch was sent last
    ├── DatabaseBehind      ... because Kafka has had more from it than the database knows of
    └── ShardLost           ... because another relay has it (retriable)
"""

from __future__ import annotations

from light_scheduler.errors import SchedulerError


class OutboxError(SchedulerError):
    """A relay cannot go on with a shard by itself."""


class OutboxInDoubt(OutboxError):
    """Rows were claimed, and Kafka has forgotten whether they were sent: they may be in the commands topic or not."""

    def __init__(self, table: str, shard: int, rows: int) -> None:
        super().__init__(
            f"table {table}: {rows} rows of shard {shard} may have been sent or not: Kafka has no position of this "
            "relay (offsets.retention.minutes passed, or it is another cluster). See whether the commands topic has "
            f"them; then delete them, or set their column batch to null to send them: WHERE shard = {shard} AND batch "
            "IS NOT NULL"
        )


class DatabaseBehind(OutboxError):
    """Kafka has had batches that the database knows nothing of: it was restored, or two outboxes have one name."""

    def __init__(self, table: str, shard: int) -> None:
        super().__init__(
            f"table {table}: Kafka has batches of shard {shard} that this database does not know: it was restored from "
            "a backup, or another database has an outbox of this name. Give each database its own name"
        )


class ShardLost(OutboxError):
    """Another relay has taken a shard over."""

    retriable = True

    def __init__(self, shard: int) -> None:
        super().__init__(f"shard {shard} belongs to another relay")
