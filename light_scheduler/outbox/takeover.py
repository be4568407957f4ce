"""Takes over a topic of Ajenda: books its appointments, and relays the bookings to the commands topic at the same
time."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection, MetaData, func, select

from light_scheduler import connection as kafka
from light_scheduler.errors import ConfigurationError
from light_scheduler.kafka.topic_admin import TIMEOUT_S, admin_client, partition_counts
from light_scheduler.model import DEFAULT_TENANT
from light_scheduler.wire.fields import parse_tenant, parse_topic

from .ajenda import AjendaTopic
from .booking import Outbox
from .database import Database
from .relay import OutboxRelay, RelayOptions


@dataclass
class TakenOver:
    """The result of a takeover, and the number of remaining rows. `refused` maps ids that cannot be booked to the
    reasons."""

    appointments: int = 0
    periodic: int = 0
    remaining: int = 0
    refused: dict[str, str] = field(default_factory=dict)


class AjendaTakeover:
    """Turns the appointments of a topic into schedules, each once, while consumers of Ajenda run.

    The outbox is in Ajenda's database. A takeover can be killed at any moment, and started again.
    """

    def __init__(
        self,
        database: str,
        topic: str,
        target: str,
        options: RelayOptions,
        *,
        schema: str = "public",
        tenant: str = DEFAULT_TENANT,
    ) -> None:
        """Prepare a takeover. `database` is a URL of SQLAlchemy.

        Raises ConfigurationError if it is not PostgreSQL, or if the target or the tenant is invalid.
        """
        for name, parse, text in (("target_topic", parse_topic, target), ("tenant", parse_tenant, tenant)):
            try:
                parse(text)
            except ValueError as error:
                raise ConfigurationError(name, str(error)) from None
        self._database = Database(database)
        if self._database.engine.dialect.name != "postgresql":
            raise ConfigurationError("database", "is not PostgreSQL, in which Ajenda has its appointments")
        self._place, self._target, self._options = (topic, schema), target, options
        self._tables = MetaData()
        self._outbox = Outbox(self._tables, name=options.name, tenant=tenant)
        self._stopping = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Make `run` return once everything taken over has been sent. Call it in the event loop of `run`."""
        self._stopping.set()

    async def preview(self) -> TakenOver:
        """Return what `run` would take over at this moment. Only reads, and locks nothing. Raises as `run`."""
        try:
            topic = await self._database.do(self._topic)
            find = partial(topic.preview, tenant=self._outbox.tenant, target=self._target)
            found = await self._database.do(find)
        finally:
            await self._database.close()
        return TakenOver(*found, topic.refused)

    async def run(self, broker: kafka.Connection, *, follow: bool = False) -> TakenOver:
        """Take over idle appointments, and wait until their commands are in Kafka. With `follow`, continue until
        `stop`.

        Nothing is taken over before Kafka has answered. Raises BrokerError if it does not, ConfigurationError if the
        topic or the commands topic does not exist, and the errors of the database and the relay.
        """
        done = TakenOver()
        try:
            topic = await self._database.do(self._topic)
            await asyncio.to_thread(_require_topic, broker, self._options.topic)
            await self._database.do(self._tables.create_all)
            settled = asyncio.Event()
            relay = OutboxRelay(self._database.engine, broker, self._options, on_step=lambda _: settled.set())
            relaying = asyncio.create_task(relay.run())
            try:
                while await self._take(topic, done) or follow:
                    if self._stopping.is_set() or relaying.done():
                        break
                while not relaying.done() and await self._database.do(self._unsent):
                    settled.clear()
                    await self._pause(settled)
            finally:
                relay.stop()
                await relaying
            done.remaining, done.refused = await self._database.do(topic.remaining), topic.refused
        finally:
            await self._database.close()
        return done

    async def _take(self, topic: AjendaTopic, done: TakenOver) -> bool:
        """Take over appointments, one transaction for some of them or for one periodic appointment. False if there were
        none."""
        do = self._database.do
        taken = await do(partial(topic.take, outbox=self._outbox, target=self._target))
        done.appointments += taken
        series = 0
        for uuid in await do(topic.periodic):
            take = partial(topic.take_periodic, outbox=self._outbox, target=self._target, uuid=uuid)
            series += await do(take)
        done.periodic += series
        if not taken and not series:
            await self._pause(self._stopping)
            return False
        return True

    async def _pause(self, until: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), self._options.poll)

    def _topic(self, connection: Connection) -> AjendaTopic:
        return AjendaTopic(connection, *self._place)

    def _unsent(self, connection: Connection) -> bool:
        commands = self._outbox.tables.commands
        return bool(connection.scalar(select(func.count()).where(commands.c.refused.is_(None))))


def _require_topic(broker: kafka.Connection, topic: str) -> None:
    if topic not in partition_counts(admin_client(broker), broker, TIMEOUT_S):
        raise ConfigurationError(
            "commands_topic",
            f"there is no topic {topic}: name another, or create it with `light-scheduler topics create`",
        )
