"""Moves one shard's commands from the database to Kafka.

Each batch has a number. The commands of a batch and its mark are one transaction of Kafka, so the mark shows which
batches are in the commands topic. The steps, and the state after a crash in each of them:

    0. Take over. Fence the previous owner: its open transaction is aborted, later ones fail. Read the mark. Delete
       the rows of batches up to the mark, and free later ones: their transaction cannot commit any more.
    1. Claim. Give the next rows the next number, and commit that.          Not sent: the next owner frees them.
    2. Send commands and mark as one transaction, and commit it.            Sent or not: the next owner's mark tells.
    3. Settle. Delete the rows of the batch.                                Sent: the next owner deletes them.

A relay that was frozen and wakes up as a former owner does no harm: it is fenced in Kafka, steps 0 and 1 check the
owner in the database, and so does setting aside a row that Kafka refused. The rows that step 3 deletes are in Kafka.
It may also be the owner again, without having noticed that it lost the shard. Then rows that the other relay left are
claimed: it finds none to claim, and begins at step 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from light_scheduler.client.marks import Mark, offsets_of, read_mark
from light_scheduler.clock import Clock
from light_scheduler.connection import Connection
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.batches import RecordBatches, size_alone
from light_scheduler.kafka.clients import KafkaClients, no_stray_cancellation
from light_scheduler.kafka.connection import broker_errors
from light_scheduler.kafka.refusals import RecordsRefusedError, TargetsStalledError
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.wire import partition_for

from .database import Database
from .ledger import MOST_ROWS, Batch, Ledger
from .rows import MAY_UNDO, REMEDY, BookedRow
from .topic_limit import TopicLimit

TRANSACTION_TIMEOUT_MS = 10_000
MARK_LASTS_MS = 3_600_000
"""How old a mark may be before the next batch: well below the time after which brokers forget it."""
_ANY_SIZE = 2**31 - 1


class CommandsRefused(BrokerError):
    """Kafka refused a batch because of one of its commands. The next cycles find that command and set it aside."""


class Step(Enum):
    """The last completed step of a batch."""

    FENCED = auto()
    RECOVERED = auto()
    CLAIMED = auto()
    SENT = auto()
    SETTLED = auto()


@dataclass(frozen=True)
class Route:
    """The destination of a shard's commands, and the name of its transactional id and of the group of its marks."""

    connection: Connection
    topic: str
    name: str


class ShardRelay:
    """Relays one shard. `on_step` is called after each step."""

    def __init__(
        self,
        shard: int,
        route: Route,
        ledger: Ledger,
        database: Database,
        limit: TopicLimit,
        clock: Clock,
        on_step: Callable[[Step], None],
    ) -> None:
        self._shard = shard
        self._route = route
        self._ledger = ledger
        self._database = database
        self._limit = limit
        self._clock = clock
        self._on_step = on_step
        self._producer: TransactionalProducer | None = None
        self._identity = ""
        self._marked_at = 0
        self._suspects = 0

    async def cycle(self) -> int:
        """Relay a batch. Return its number of commands. Call it if rows are waiting, claimed or not.

        After an error, the next call begins at step 0. So does this one if it finds no row to claim.

        Raises CommandsRefused, BrokerError, LaneError, KafkaError, OutboxError and the database's errors. After
        CommandsRefused, each further call narrows the search for the refused command.
        """
        try:
            if self._clock.now() - self._marked_at > MARK_LASTS_MS:
                await self.close()
            is_new = self._producer is None
            producer = self._producer or await self._take_over()  # 0.
            batch = await self._claim()  # 1.
            if batch is None and not is_new:  # another relay had the shard meanwhile, and has claimed the rows
                await self.close()
                producer = await self._take_over()  # 0.
                batch = await self._claim()  # 1.
            if batch is None:
                return 0
            self._on_step(Step.CLAIMED)
            await self._send(producer, batch)  # 2.
            self._on_step(Step.SENT)
            await self._database.do(lambda connection: self._ledger.settle(connection, self._shard, batch.number))  # 3.
            self._on_step(Step.SETTLED)
        except BaseException:
            await self.close()
            raise
        self._suspects = max(0, self._suspects - len(batch.rows))
        return len(batch.rows)

    async def close(self) -> None:
        """Close the producer."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.discard()

    async def _take_over(self) -> TransactionalProducer:
        """Carry out step 0."""
        route = self._route
        producer = TransactionalProducer(KafkaClients(route.connection, TRANSACTION_TIMEOUT_MS), route.name)
        self._producer = producer
        with broker_errors(f"cannot take over {route.name}"), no_stray_cancellation():
            await producer.fence()
        self._on_step(Step.FENCED)
        mark = await asyncio.to_thread(read_mark, route.connection, route.name, route.topic)
        last = await self._database.do(lambda connection: self._ledger.recover(connection, self._shard, mark))
        self._identity = last.identity
        # Even without changes: it refreshes the mark, or creates the first one.
        await self._commit(producer, RecordBatches(self._clock.now()), last.batch)
        self._on_step(Step.RECOVERED)
        return producer

    async def _claim(self) -> Batch | None:
        most = 1 if self._suspects else MOST_ROWS
        return await self._database.do(lambda connection: self._ledger.claim(connection, self._shard, most))

    async def _send(self, producer: TransactionalProducer, batch: Batch) -> None:
        topic = self._route.topic
        with broker_errors(f"cannot look up topic {topic}"):
            partitions = await producer.partitions_of(topic)
        batches = RecordBatches(self._clock.now(), limit_of=lambda _: _ANY_SIZE)
        for row in batch.rows:
            batches.timestamp = row.booked_at
            batches.add((topic, partition_for(row.key, partitions)), row.key, row.value, row.headers)
        try:
            await self._commit(producer, batches, batch.number)
        except RecordsRefusedError as error:
            if error.is_of_topic or error.may_pass:
                raise BrokerError(f"topic {topic} refused commands of the outbox: {error.cause!r}") from error
            raise await self._refused(batch, error.cause) from error

    async def _commit(self, producer: TransactionalProducer, batches: RecordBatches, number: int) -> None:
        route = self._route
        mark = offsets_of(Mark(number, self._identity), route.topic)
        try:
            with broker_errors(f"cannot send to {route.topic}"), no_stray_cancellation():
                await producer.commit(batches, route.name, mark)
        except TargetsStalledError as error:
            raise BrokerError(f"cannot send to {route.topic}: {error}") from error
        self._marked_at = self._clock.now()

    async def _refused(self, batch: Batch, cause: KafkaError) -> CommandsRefused:
        """Have the rows of a batch sent one by one, to find out which it is; set a single one aside.

        Returns what to raise.
        """
        if len(batch.rows) > 1:
            self._suspects = len(batch.rows)
            refused = f"topic {self._route.topic} refused a batch of {len(batch.rows)} commands ({cause!r})"
            return CommandsRefused(f"{refused}: they are sent one by one")
        self._suspects = max(0, self._suspects - 1)
        row = batch.rows[0]
        reason = await self._reason(row, cause)
        await self._database.do(
            lambda connection: self._ledger.refuse(connection, self._shard, batch.number, row.seq, reason)
        )
        return CommandsRefused(f"row {row.seq}, {row.tenant}/{row.id}, is set aside: {reason}")

    async def _reason(self, row: BookedRow, cause: KafkaError) -> str:
        """Say why the topic does not take a row, and what to do."""
        topic = self._route.topic
        if not isinstance(cause, MessageSizeTooLargeError):
            return f"topic {topic} refuses it: {cause!r}. {REMEDY}"
        size = size_alone(row.booked_at, row.key, row.value, row.headers)
        limit = await self._limit.largest()
        takes = "less" if limit is None else f"at most {limit:,}"
        return (
            f"its record has {size:,} bytes, and topic {topic} takes {takes} (max.message.bytes). Raise that, and set "
            "the column refused to null, or delete the row and book a smaller command. Either way it is sent after "
            f"later commands of its key{MAY_UNDO}"
        )
