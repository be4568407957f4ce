"""Ajenda's tables, and who books and consumes in them, as its public repository (jmmurillo/ajenda) describes them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from light_scheduler.clock import SystemClock

GEN_NEXT, SKIP_MISSED = 1, 2
NOT_AT_HAND = -1
HOUR = 3_600_000


now = SystemClock().now


@dataclass
class Ajenda:
    """A topic of its own in a PostgreSQL. Instants are UTC epoch ms."""

    url: str
    topic: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        self.engine = create_engine(self.url, poolclass=NullPool)
        with self.engine.begin() as connection:
            connection.execute(
                text(
                    f"CREATE TABLE ajenda_{self.topic} (uuid uuid PRIMARY KEY, creation_date bigint, due_date bigint,"
                    " timeout_date bigint, ttl bigint, attempts integer, payload text, periodic_uuid uuid,"
                    " flags integer, version smallint DEFAULT 0, kind text)"
                )
            )
            connection.execute(
                text(
                    f"CREATE TABLE periodic_ajenda_{self.topic} (uuid uuid PRIMARY KEY, creation_date bigint,"
                    " pattern_type integer, pattern text, ttl bigint, payload text, key_iteration integer,"
                    " skip_missed boolean)"
                )
            )

    def book(self, due: int, payload: str | None = "pay!", *, ttl: int = -1, kind: str | None = None) -> uuid.UUID:
        """Book an appointment; `kind` is a column of the user's."""
        with self.engine.begin() as connection:
            return self._insert(connection, uuid.uuid4(), due, payload, ttl=ttl, kind=kind)

    def book_periodic(
        self, pattern_type: int, pattern: str, first_due: int, *, skip_missed: bool = True, iterations: int = 1
    ) -> uuid.UUID:
        """Book a periodic appointment; the last of its iterations, an hour apart, makes the next ones."""
        id = uuid.uuid4()
        with self.engine.begin() as connection:
            connection.execute(
                text(
                    f"INSERT INTO periodic_ajenda_{self.topic} VALUES"
                    " (:id, :now, :type, :pattern, -1, 'again', :iterations, :skip)"
                ),
                {
                    "id": id,
                    "now": now(),
                    "type": pattern_type,
                    "pattern": pattern,
                    "iterations": iterations,
                    "skip": skip_missed,
                },
            )
            for n in range(iterations):
                flags = GEN_NEXT if n == iterations - 1 else 0
                self._insert(connection, uuid.uuid4(), first_due + n * HOUR, "again", periodic=id, flags=flags)
        return id

    def _insert(
        self,
        connection: Connection,
        id: uuid.UUID,
        due: int,
        payload: str | None,
        *,
        ttl: int = -1,
        kind: str | None = None,
        periodic: uuid.UUID | None = None,
        flags: int = 0,
    ) -> uuid.UUID:
        connection.execute(
            text(
                f"INSERT INTO ajenda_{self.topic} VALUES"
                " (:id, :now, :due, :timeout, :ttl, 0, :payload, :periodic, :flags, 0, :kind)"
            ),
            {
                "id": id,
                "now": now(),
                "due": due,
                "timeout": NOT_AT_HAND,
                "ttl": ttl,
                "payload": payload,
                "periodic": periodic,
            }
            | {"flags": flags, "kind": kind},
        )
        return id

    def rows(self, due_from: int = 0) -> int:
        with self.engine.connect() as connection:
            counted = text(f"SELECT count(*) FROM ajenda_{self.topic} WHERE due_date >= :due")
            return int(connection.execute(counted, {"due": due_from}).scalar_one())

    def put_at_hand(self, id: uuid.UUID, until: int) -> None:
        """Have a consumer work on an appointment, or on a periodic one's iterations, until an instant."""
        with self.engine.begin() as connection:
            connection.execute(
                text(f"UPDATE ajenda_{self.topic} SET timeout_date = :until WHERE :id IN (uuid, periodic_uuid)"),
                {"id": id, "until": until},
            )

    @contextmanager
    def locked(self, id: uuid.UUID) -> Iterator[None]:
        """Have a transaction open that deletes an appointment, or a periodic one's iterations; roll it back."""
        with self.engine.connect() as connection:
            connection.execute(text(f"DELETE FROM ajenda_{self.topic} WHERE :id IN (uuid, periodic_uuid)"), {"id": id})
            yield
            connection.rollback()

    def consume_at_most_once(self) -> Sequence[Any]:
        """Delete up to five appointments that are due, make the next iterations, commit, and return them."""
        with self.engine.begin() as connection:
            due = connection.execute(self._polled("DELETE FROM", "RETURNING *"), {"now": now()}).all()
            for row in due:
                self._make_next(connection, row)
        return due

    def consume_at_least_once(self, timeout_ms: int = 60_000) -> Sequence[Any]:
        """Take up to five appointments that are due at hand, and return them when they are acknowledged."""
        with self.engine.begin() as connection:
            taken = connection.execute(
                self._polled("UPDATE", "RETURNING *", "SET timeout_date = greatest(due_date, :now) + :timeout"),
                {"now": now(), "timeout": timeout_ms},
            ).all()
        for row in taken:
            with self.engine.begin() as connection:
                connection.execute(text(f"DELETE FROM ajenda_{self.topic} WHERE uuid = :id"), {"id": row.uuid})
                self._make_next(connection, row)
        return taken

    def _polled(self, what: str, returning: str, change: str = "") -> Any:
        return text(
            f"{what} ajenda_{self.topic} {change} WHERE uuid = ANY(ARRAY("
            f"SELECT uuid FROM ajenda_{self.topic} WHERE due_date <= :now AND timeout_date <= :now"
            f" ORDER BY due_date FETCH FIRST 5 ROWS ONLY FOR UPDATE SKIP LOCKED)) {returning}"
        )

    def _make_next(self, connection: Connection, row: Any) -> None:
        if row.periodic_uuid is None or not row.flags & GEN_NEXT:
            return
        found = connection.execute(
            text(f"SELECT * FROM periodic_ajenda_{self.topic} WHERE uuid = :id"), {"id": row.periodic_uuid}
        ).one_or_none()
        if found is not None:
            due = row.due_date + int(found.pattern, 16)
            self._insert(connection, uuid.uuid4(), due, "again", periodic=row.periodic_uuid, flags=GEN_NEXT)


class Consumers:
    """Threads that consume until the context ends; `consumed` are the rows. It raises what one of them raised."""

    def __init__(self, ajenda: Ajenda) -> None:
        self.consumed: list[Any] = []
        self._failures: list[Exception] = []
        self._stopping = threading.Event()
        ways = (ajenda.consume_at_most_once, ajenda.consume_at_least_once)
        self._threads = [threading.Thread(target=self._run, args=[way]) for way in ways]
        for thread in self._threads:
            thread.start()

    def _run(self, consume: Any) -> None:
        try:
            while not self._stopping.wait(0.01):
                self.consumed += consume()
        except Exception as error:  # noqa: BLE001 - raised at the end
            self._failures.append(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]
