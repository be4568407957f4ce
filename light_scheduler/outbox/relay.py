"""The relay: sends booked commands, from asyncio code or from its own thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from aiokafka.errors import KafkaError
from sqlalchemy import Engine, MetaData, inspect
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.connection import Connection
from light_scheduler.errors import ConfigurationError, SchedulerError
from light_scheduler.model import TopicNames

from .database import Database
from .failing_shards import FailingShards
from .ledger import Ledger, make_shard
from .shard import CommandsRefused, Route, ShardRelay, Step
from .tables import DEFAULT_NAME, SHARDS, OutboxTables, define
from .topic_limit import TopicLimit
from .wakeup import woken_by_bookings

FIRST_PAUSE_S, LAST_PAUSE_S = 0.5, 30.0
"""First and longest pause after failures. Each pause is twice as long as the last."""

ATTENDS_A_LEASE = 3
"""Number of heartbeats within a lease."""

_FAILURES = (SchedulerError, KafkaError, SQLAlchemyError, OSError, TimeoutError)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RelayOptions:
    """Options of a relay. All durations are in seconds.

    - `name`, `schema`: name of the outbox, which is also that of its table, and the schema of the table. Default of the
      schema: that of the connection.
    - `app_id`, `commands_topic`: destination of commands. Default of the topic: `{app_id}-commands`.
    - `poll`: how often the relay looks for bookings without a notification.
    - `lease`: how long until another relay takes over the shards of one that died.
    """

    name: str = DEFAULT_NAME
    app_id: str = "light-scheduler"
    commands_topic: str | None = None
    poll: float = 0.5
    lease: float = 5.0
    schema: str | None = None

    @property
    def topic(self) -> str:
        return self.commands_topic or TopicNames(self.app_id).commands

    @property
    def full_name(self) -> str:
        """The name with its schema, which distinguishes this outbox from others in transactional ids."""
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


class OutboxRelay:
    """Sends booked commands to the commands topic, each exactly once, until `stop`. For asyncio code.

        relay = OutboxRelay("postgresql+psycopg://app@db/app", Connection("127.0.0.1:9092"))
        await relay.run()

    Any number of relays share the work. Killing a relay at any moment neither loses nor duplicates commands.
    """

    def __init__(
        self,
        database: str | Engine | AsyncEngine,
        kafka: str | Connection = "127.0.0.1:9092",
        options: RelayOptions | None = None,
        *,
        clock: Clock | None = None,
        on_step: Callable[[Step], None] = lambda _: None,
    ) -> None:
        """Create a relay. `database` is an engine, blocking or asyncio, or a URL of SQLAlchemy.

        Raises ConfigurationError for an invalid URL. `on_step` is called after each step of `shard`.
        """
        self._options = options or RelayOptions()
        self._database = Database(database)
        self._connection = Connection(kafka) if isinstance(kafka, str) else kafka
        self._clock = clock or SystemClock()
        self._on_step = on_step
        self._tables = define(MetaData(schema=self._options.schema), self._options.name)
        self._ledger = Ledger(self._tables, str(uuid4()), int(self._options.lease * 1_000))
        self._limit = TopicLimit(self._connection, self._options.topic)
        self._mine: dict[int, ShardRelay] = {}
        self._owned: list[int] = []
        self._attended_at = -math.inf
        self._failing = FailingShards(FIRST_PAUSE_S, LAST_PAUSE_S)
        self._unknown: set[int] = set()
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._sent = 0
        self._refused_rows: int | None = None

    @property
    def sent(self) -> int:
        """How many commands this relay has sent."""
        return self._sent

    @property
    def refused(self) -> int:
        """How many commands this relay has set aside: they stay in the table, with the reason in column `refused`."""
        return len(self._ledger.refused)

    @property
    def refused_rows(self) -> int | None:
        """How many rows that this or other relays have set aside were in the table at the end of `drain`.

        None before, and if the database failed.
        """
        return self._refused_rows

    def stop(self) -> None:
        """Make `run` return after the current batches. Call it in the event loop of `run`."""
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Relay until `stop`. Failures of Kafka and of the database are logged and retried after a pause.

        Raises ConfigurationError if the tables do not exist, and the database's error if it cannot be reached at the
        start.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close)
            await self._prepare()
            await stack.enter_async_context(woken_by_bookings(self._database, self._tables.channel, self._wake))
            pause = FIRST_PAUSE_S
            while not self._is_stopping:
                self._wake.clear()
                try:
                    sent = await self._round()
                    pause = FIRST_PAUSE_S
                except _FAILURES as error:
                    self._attended_at = -math.inf
                    log.warning("the outbox waits for %g s: %s", pause, error)
                    await self._pause(pause)
                    pause = min(2 * pause, LAST_PAUSE_S)
                    continue
                if not sent:
                    await self._pause(min(self._options.poll, self._failing.wait_s(self._owned)))

    async def drain(self) -> int:
        """Relay the booked commands in this relay's shards. Return the number of sent commands.

        `refused` then says how many were set aside, and `refused_rows` how many are in the table. Raises what `run`
        logs, of several failures the first one of a shard. `sent`, `refused` and `refused_rows` are known then too.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close)
            await self._prepare()
            before = self._sent
            while await self._round():
                self._failing.try_at_once()
            uncounted = await self._count_refused()
            self._failing.raise_first(self._owned)
            if uncounted is not None:
                raise uncounted
            return self._sent - before

    async def _count_refused(self) -> Exception | None:
        """Count the rows that any relay has set aside. Return the failure, if any, as another may have to be raised."""
        try:
            self._refused_rows = await self._database.do(self._ledger.count_refused)
        except _FAILURES as error:
            log.warning("the refused rows of the outbox cannot be counted: %s", error)
            return error
        return None

    async def _prepare(self) -> None:
        """Add the rows of shards. Raises ConfigurationError if the tables do not exist."""
        tables, schema = self._tables, self._options.schema
        missing = await self._database.do(
            lambda connection: _missing(inspect(connection).get_table_names(schema), tables)
        )
        if missing:
            place = "" if schema is None else f" in schema {schema}"
            raise ConfigurationError(
                "database",
                f"has no table {', '.join(missing)}{place}: create the tables of the outbox with your own, or name the "
                "schema that they are in",
            )
        for shard in range(SHARDS):
            with contextlib.suppress(IntegrityError):
                await self._database.do(partial(make_shard, tables, shard))

    async def _round(self) -> int:
        """Relay a batch of each of this relay's shards that has rows. Return the number of sent commands."""
        await self._attend()
        waiting = await self._database.do(self._ledger.waiting)
        self._tell_of(waiting - set(range(SHARDS)))
        self._failing.keep(waiting)
        sent = 0
        for shard in sorted(waiting.intersection(self._owned)):
            if self._is_stopping:
                break
            await self._attend()
            if shard in self._owned and self._failing.may_try(shard):
                sent += await self._relay(shard)
        return sent

    async def _relay(self, shard: int) -> int:
        """Relay a batch of a shard. Return the number of sent commands; 0 if it fails."""
        try:
            sent = await self._cycle(shard)
        except _FAILURES as error:  # possibly of this shard alone, so the others continue
            self._attended_at = -math.inf  # the shard may be lost
            self._failing.failed(shard, error)
            return 0
        self._failing.worked(shard)
        self._sent += sent
        return sent

    async def _cycle(self, shard: int) -> int:
        """Relay a batch. If Kafka refuses it, send its commands one by one until the invalid one is set aside."""
        while shard in self._owned and not self._is_stopping:
            try:
                return await self._shard(shard).cycle()
            except CommandsRefused as error:
                log.warning("shard %d of the outbox: %s", shard, error)
                await self._attend()
        return 0

    def _tell_of(self, unknown: set[int]) -> None:
        """Log rows whose shards do not exist, when they appear or change."""
        if unknown and unknown != self._unknown:
            log.warning(
                "table %s: rows whose shard is %s are never sent: shards are 0 to %d. Delete these rows and book their "
                "commands again",
                *(self._tables.commands.name, ", ".join(sorted(map(repr, unknown))), SHARDS - 1),
            )
        self._unknown = unknown

    @property
    def _must_attend(self) -> bool:
        return time.monotonic() - self._attended_at > self._options.lease / ATTENDS_A_LEASE

    async def _attend(self) -> None:
        """Renew the leases of this relay's shards, and update which shards it has."""
        if not self._must_attend:
            return
        self._owned = await self._database.do(self._ledger.attend)
        self._attended_at = time.monotonic()
        for shard in set(self._mine) - set(self._owned):
            await self._mine.pop(shard).close()

    def _shard(self, shard: int) -> ShardRelay:
        if shard not in self._mine:
            options = self._options
            route = Route(self._connection, options.topic, f"{options.app_id}-outbox-{options.full_name}-{shard}")
            self._mine[shard] = ShardRelay(
                shard, route, self._ledger, self._database, self._limit, clock=self._clock, on_step=self._on_step
            )
        return self._mine[shard]

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _close(self) -> None:
        for shard in self._mine.values():
            await shard.close()
        self._mine.clear()
        try:
            await self._database.do(self._ledger.leave)
        except _FAILURES as error:
            if self._owned:
                log.warning("other relays take over the shards of this one when its lease ends: %s", error)
        await self._database.close()


class BlockingOutboxRelay:
    """An `OutboxRelay` for its own thread or process. The arguments are the same."""

    def __init__(
        self,
        database: str | Engine,
        kafka: str | Connection = "127.0.0.1:9092",
        options: RelayOptions | None = None,
    ) -> None:
        self._make = partial(OutboxRelay, database, kafka, options)
        self._running: tuple[asyncio.AbstractEventLoop, OutboxRelay] | None = None
        self._is_stopping = False
        self._sent = self._refused = 0
        self._refused_rows: int | None = None

    @property
    def sent(self) -> int:
        """How many commands were sent by the calls of `run` and `drain` that have ended."""
        return self._sent

    @property
    def refused(self) -> int:
        """How many commands were set aside by the calls of `run` and `drain` that have ended."""
        return self._refused

    @property
    def refused_rows(self) -> int | None:
        """As `OutboxRelay.refused_rows`, of the last `drain`."""
        return self._refused_rows

    def run(self) -> None:
        """Relay until `stop`, which any thread may call. Raises as `OutboxRelay.run`."""
        asyncio.run(self._run())

    def drain(self) -> int:
        """Relay what is booked, and return how many commands were sent. Raises as `OutboxRelay.drain`."""
        return asyncio.run(self._drain())

    def stop(self) -> None:
        """Make `run` return after the current batches."""
        self._is_stopping = True
        if self._running is not None:
            loop, relay = self._running
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(relay.stop)

    async def _drain(self) -> int:
        relay = self._make()
        try:
            return await relay.drain()
        finally:
            self._add(relay)
            self._refused_rows = relay.refused_rows

    async def _run(self) -> None:
        relay = self._make()
        self._running = asyncio.get_running_loop(), relay
        if self._is_stopping:
            relay.stop()
        try:
            await relay.run()
        finally:
            self._add(relay)

    def _add(self, relay: OutboxRelay) -> None:
        self._sent += relay.sent
        self._refused += relay.refused


def _missing(found: list[str], tables: OutboxTables) -> list[str]:
    return [table.name for table in (tables.commands, tables.shards, tables.relays) if table.name not in found]
