"""Moves appointments of Ajenda (github.com/jmmurillo/ajenda) to bookings of an outbox in the same PostgreSQL.

    SCHEMA.ajenda_TOPIC            one row for each appointment, and for each iteration of a periodic one
    SCHEMA.periodic_ajenda_TOPIC   one row for each periodic appointment

One transaction deletes an appointment there and books it here, so it is always in exactly one place, even after a
crash. Appointments that Ajenda's consumers are processing are left alone: their row is locked, or their `timeout_date`
is in the future. Instants are UTC epoch ms.

A periodic appointment is taken over with all of its iterations, when none of them is due or being processed. Ajenda
books the next iterations in the transaction that deletes the last one, and only if the periodic appointment exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, MetaData, Table, Uuid, all_, delete, func, literal, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import NoSuchTableError

from light_scheduler.client.commands import schedule_command
from light_scheduler.client.options import ScheduleOptions
from light_scheduler.clock import Clock, SystemClock
from light_scheduler.engine.timing import begin
from light_scheduler.errors import ConfigurationError, InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, CronDialect, ScheduleCommand
from light_scheduler.wire import UnsentRecord
from light_scheduler.wire.native import NATIVE

from .booking import Outbox
from .database_time import DatabaseTime

MOST_ROWS = 500
"""Maximum number of rows in one transaction."""

_OWN = {
    *("uuid", "creation_date", "due_date", "timeout_date", "ttl", "attempts", "payload", "periodic_uuid", "flags"),
    *("version", "pattern_type", "pattern", "key_iteration", "skip_missed"),
}
_FIXED_RATE, _FIXED_DELAY = 1, 2
_DIALECTS: Mapping[int, CronDialect] = {10: "unix", 11: "cron4j", 12: "quartz", 13: "spring"}


class Preview(NamedTuple):
    """The numbers of appointments and periodic appointments that could be taken over, and of the remaining rows."""

    appointments: int
    periodic: int
    remaining: int


class AjendaTopic:
    """The tables of one topic. `take` and `take_periodic` are bodies of transactions, with PostgreSQL's read committed.

    `refused` maps the ids of schedules that cannot be booked to the reasons. Their appointments stay in Ajenda.
    """

    def __init__(self, connection: Connection, topic: str, schema: str = "public", clock: Clock | None = None) -> None:
        """Read the columns of the tables. Raises ConfigurationError if they do not exist."""
        self._topic = topic.lower()
        self._clock = clock or SystemClock()
        metadata = MetaData()
        try:
            self._appointments = Table(f"ajenda_{self._topic}", metadata, schema=schema, autoload_with=connection)
            self._periodic = Table(f"periodic_ajenda_{self._topic}", metadata, schema=schema, autoload_with=connection)
        except NoSuchTableError as error:
            raise ConfigurationError("topic", f"{topic!r} is not a topic of Ajenda: no table {error}") from None
        self.refused: dict[str, str] = {}
        self._left: set[UUID] = set()

    def take(self, connection: Connection, outbox: Outbox, target: str) -> int:
        """Take over some idle appointments. Return their number; 0 if there are none."""
        table = self._appointments
        while rows := self._at_rest(connection):
            taken = [row.uuid for row in rows if self._booked(connection, outbox, row, target)]
            if taken:
                connection.execute(delete(table).where(table.c.uuid.in_(taken)))
                return len(taken)
        return 0

    def periodic(self, connection: Connection) -> list[UUID]:
        """Return the ids of the periodic appointments."""
        return list(connection.scalars(select(self._periodic.c.uuid).where(self._is_not_refused(self._periodic))))

    def take_periodic(self, connection: Connection, outbox: Outbox, target: str, uuid: UUID) -> bool:
        """Take over a periodic appointment. False if it no longer exists, or if any of its iterations is due or being
        processed."""
        definitions, table = self._periodic, self._appointments
        found = select(definitions).where(definitions.c.uuid == uuid).with_for_update(skip_locked=True)
        definition = connection.execute(found).one_or_none()
        of_it = table.c.periodic_uuid == uuid
        at_rest = select(table.c.due_date).where(of_it, table.c.timeout_date <= _NOW).with_for_update(skip_locked=True)
        dues = list(connection.scalars(at_rest))
        # Counted after locking: a transaction that books iterations meanwhile has deleted one that is not among the
        # locked.
        if definition is None or not dues or connection.scalar(select(func.count()).where(of_it)) != len(dues):
            return False
        try:
            with connection.begin_nested():
                self._book_series(connection, outbox, definition, target, min(dues))
        except _AlreadyDue:
            return False
        except (InvalidCommand, ValueError) as error:
            self._refuse(uuid, f"{self._topic}-periodic-{uuid}", str(error))
            return False
        connection.execute(delete(definitions).where(definitions.c.uuid == uuid))
        connection.execute(delete(table).where(of_it))
        return True

    def preview(self, connection: Connection, tenant: str, target: str) -> Preview:
        """Return what could be taken over. Locks nothing, so it may include appointments that Ajenda is processing."""
        appointments = sum(self._fits(row, tenant, target) for row in self._all_at_rest(connection))
        series = [self._iterations(connection, row, target) for row in connection.execute(select(self._periodic)).all()]
        left = self.remaining(connection) - appointments - sum(series)
        return Preview(appointments, sum(map(bool, series)), left)

    def _all_at_rest(self, connection: Connection) -> Iterator[Any]:
        """Yield the idle appointments, ordered by id."""
        table = self._appointments
        found = select(table).where(table.c.periodic_uuid.is_(None), table.c.timeout_date <= _NOW)
        rows = connection.execute(found.order_by(table.c.uuid).limit(MOST_ROWS)).all()
        while rows:
            yield from rows
            further = found.where(table.c.uuid > rows[-1].uuid)
            rows = connection.execute(further.order_by(table.c.uuid).limit(MOST_ROWS)).all()

    def _fits(self, row: Any, tenant: str, target: str) -> bool:
        """Return whether an appointment can be booked."""
        id = f"{self._topic}-{row.uuid}"
        try:
            schedule_command(tenant, {**appointment(row, target), "id": id, "payload": _payload(row)})
        except InvalidCommand as error:
            self._refuse(row.uuid, id, str(error))
            return False
        return True

    def _iterations(self, connection: Connection, row: Any, target: str) -> int:
        """Return the number of iterations of a periodic appointment that can be booked; 0 if it cannot be booked, or
        not yet."""
        table = self._appointments
        of_it = select(table.c.due_date, (table.c.timeout_date <= _NOW).label("is_at_rest"))
        found = connection.execute(of_it.where(table.c.periodic_uuid == row.uuid)).all()
        if not found or not all(each.is_at_rest for each in found):
            return 0
        first_due, id = min(each.due_date for each in found), f"{self._topic}-periodic-{row.uuid}"
        try:
            _check(id, periodic(row, target, first_due))
        except (InvalidCommand, ValueError) as error:
            self._refuse(row.uuid, id, str(error))
            return 0
        return 0 if self._clock.now() >= first_due else len(found)

    def remaining(self, connection: Connection) -> int:
        """Return the number of appointments and iterations left in Ajenda."""
        return connection.scalar(select(func.count()).select_from(self._appointments)) or 0

    def _is_not_refused(self, table: Table) -> ColumnElement[bool]:
        """Return the condition that a row was not refused. It has a single parameter, since a statement can have at
        most 65,535."""
        return table.c.uuid != all_(literal(list(self._left), ARRAY(Uuid())))

    def _at_rest(self, connection: Connection) -> Sequence[Any]:
        """Lock and return some idle appointments, the next due first."""
        table = self._appointments
        is_so = (table.c.periodic_uuid.is_(None), self._is_not_refused(table), table.c.timeout_date <= _NOW)
        found = select(table).where(*is_so).order_by(table.c.due_date).limit(MOST_ROWS)
        return connection.execute(found.with_for_update(skip_locked=True)).all()

    def _booked(self, connection: Connection, outbox: Outbox, row: Any, target: str) -> bool:
        id = f"{self._topic}-{row.uuid}"
        try:
            outbox.schedule(connection, id, _payload(row), **appointment(row, target))
        except InvalidCommand as error:
            self._refuse(row.uuid, id, str(error))
            return False
        return True

    def _book_series(self, connection: Connection, outbox: Outbox, row: Any, target: str, first_due: int) -> None:
        """Book a series. Raises _AlreadyDue if its first due time has passed meanwhile: Ajenda then delivers that
        one."""
        request = periodic(row, target, first_due)
        id = f"{self._topic}-periodic-{row.uuid}"
        _check(id, request)
        outbox.schedule(connection, id, _payload(row), **request)
        if self._clock.now() >= first_due:
            raise _AlreadyDue

    def _refuse(self, uuid: UUID, id: str, reason: str) -> None:
        self._left.add(uuid)
        self.refused[id] = reason


_NOW = DatabaseTime()
"""Ajenda uses the same clock."""


class _AlreadyDue(Exception):
    """An iteration became due before its series was booked."""


def appointment(row: Any, target: str) -> ScheduleOptions:
    """Return an appointment as a schedule. Booking its uuid again updates it, in Ajenda as here."""
    return {**_common(row, target), "at": row.due_date}


def periodic(row: Any, target: str, first_due: int) -> ScheduleOptions:
    """Return a periodic appointment as a series. Raises ValueError for an invalid pattern."""
    request: ScheduleOptions = {**_common(row, target), "start": first_due, "on_conflict": "keep"}
    if row.pattern_type != _FIXED_DELAY:
        request["misfire"] = "skip" if row.skip_missed else "all"
    if row.pattern_type in _DIALECTS:
        return {**request, "cron": row.pattern, "cron_dialect": _DIALECTS[row.pattern_type]}
    if row.pattern_type not in (_FIXED_RATE, _FIXED_DELAY):
        raise ValueError(f"pattern_type {row.pattern_type} is not known: expected 1, 2 or 10 to 13")
    interval = int(row.pattern, 16)
    if row.pattern_type == _FIXED_DELAY:
        return {**request, "every": interval, "mode": "fixed-delay"}
    return {**request, "every": interval}


def _check(id: str, request: ScheduleOptions) -> None:
    """Raise InvalidCommand for a series that a worker would reject."""
    sent = schedule_command(DEFAULT_TENANT, {**request, "id": id, "payload": b""})
    command = NATIVE.decode(UnsentRecord(sent.key, sent.value, sent.headers, now := SystemClock().now()))
    assert isinstance(command, ScheduleCommand)
    begin(command, now)


def _payload(row: Any) -> bytes | None:
    return None if row.payload is None else row.payload.encode()


def _common(row: Any, target: str) -> ScheduleOptions:
    """Return the options that appointments and periodic ones share. Columns that Ajenda does not define become
    headers."""
    extra = {str(name): value for name, value in row._mapping.items() if name not in _OWN and value is not None}
    headers = {name: value if isinstance(value, bytes) else str(value) for name, value in extra.items()}
    request: ScheduleOptions = {"topic": target, "headers": headers}
    if row.ttl is not None and row.ttl > 0:
        request["ttl"] = row.ttl
    return request
