"""Booking: a command becomes a row in the caller's own transaction, and is sent if and only if that commits."""

from __future__ import annotations

from typing import Any, Unpack
from weakref import WeakSet

import msgspec
from sqlalchemy import Connection, MetaData, Table, event, func, insert, select
from sqlalchemy.orm import registry

from light_scheduler.client.argument_names import argument_errors
from light_scheduler.client.commands import CommandToSend, control_command, new_id, schedule_command
from light_scheduler.client.options import Id, Key, Payload, ScheduleOptions
from light_scheduler.client.serializers import Serializer, serialized
from light_scheduler.clock import Clock, SystemClock
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT

from .tables import DEFAULT_NAME, define, shard_of

Transaction = Any
"""An SQLAlchemy Session, AsyncSession, scoped_session or Connection, or an object with a method `add`. `add` gets a row
whose attributes are the columns of `Outbox.tables.commands` that have a value."""


class Outbox:
    """Books commands in the transactions of an application. A relay sends them after the commit.

        outbox = Outbox(Base.metadata)

        with Session(engine) as session, session.begin():
            session.add(order)
            outbox.schedule(session, f"order-{order.id}", b"pay!", topic="reminders", after="15m")

    The tables are part of `metadata`: create them like your other tables, with `create_all` or a migration. Delays
    count from the booking. With `notify`, a booking in PostgreSQL wakes the relays.
    """

    def __init__(
        self,
        metadata: MetaData,
        *,
        name: str = DEFAULT_NAME,
        tenant: str = DEFAULT_TENANT,
        notify: bool = True,
        serializer: Serializer | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.tables = define(metadata, name)
        self.tenant = tenant
        self._serializer = serializer
        self._clock = clock or SystemClock()
        self._wake = _Wake(self.tables.channel) if notify else None
        self._row = _mapped(self.tables.commands, metadata, self._wake)

    def schedule(
        self, session: Transaction, id: Id = None, payload: Payload = b"", **request: Unpack[ScheduleOptions]
    ) -> str:
        """Book a message, once or as a series. Return the id of the schedule.

        Takes the arguments of `SchedulerClient.schedule`. Raises InvalidCommand, which names the argument, if one is
        wrong: nothing is booked.
        """
        asked = serialized(self._serializer, {**request, "id": id, "payload": payload})
        with argument_errors():
            command = schedule_command(self.tenant, asked, generated_id=new_id(self._clock))
        return self._book(session, command)

    def cancel(
        self, session: Transaction, id: str, *, key: Key | None = None, expected_version: int | None = None
    ) -> None:
        """Book the cancellation of a schedule. `key` is the one that it was booked with. Raises InvalidCommand."""
        with argument_errors():
            command = control_command("cancel", self.tenant, id, key=key, expected_version=expected_version)
        self._book(session, command)

    def _book(self, session: Transaction, command: CommandToSend) -> str:
        values = {
            "shard": shard_of(command.key),
            "booked_at": self._clock.now(),
            "tenant": command.tenant,
            "schedule_id": command.id,
            "key": command.key,
            "value": command.value,
            "headers": msgspec.msgpack.encode(command.headers),
        }
        if callable(getattr(session, "add", None)):
            session.add(self._row(**values))
        elif isinstance(session, Connection):
            session.execute(insert(self.tables.commands).values(values))
            if self._wake is not None:
                self._wake(session)
        else:
            raise InvalidCommand(
                "session",
                f"must be a Session, AsyncSession or Connection of SQLAlchemy, not {type(session).__name__}",
            )
        return command.id


class _Wake:
    """Notifies the relays of bookings: once per transaction, when it commits."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._notified: WeakSet[Any] = WeakSet()

    def __call__(self, connection: Connection) -> None:
        transaction = connection.get_nested_transaction() or connection.get_transaction()
        if connection.dialect.name == "postgresql" and transaction not in self._notified:
            connection.execute(select(func.pg_notify(self._channel, "")))
            self._notified.add(transaction)


def _mapped(table: Table, metadata: MetaData, wake: _Wake | None) -> type[Any]:
    """Return a mapped class. Sessions of both kinds insert its rows when they flush."""

    class BookedCommand:
        def __init__(self, **values: object) -> None:
            for name, value in values.items():
                setattr(self, name, value)

    registry(metadata=metadata).map_imperatively(BookedCommand, table)
    if wake is not None:
        event.listen(BookedCommand, "after_insert", lambda _mapper, connection, _row: wake(connection))
    return BookedCommand
