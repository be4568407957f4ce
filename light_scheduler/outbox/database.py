"""The database of a relay, behind a blocking or an asyncio engine of SQLAlchemy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from light_scheduler.errors import ConfigurationError

from .database_time import SUPPORTED

T = TypeVar("T")


class Database:
    """Runs functions in their own transactions. It owns its engine only if it was created from a URL."""

    def __init__(self, database: str | Engine | AsyncEngine) -> None:
        """Take an engine, or the URL of a database.

        Raises ConfigurationError for an invalid URL, a driver that is not installed, or a database other than
        PostgreSQL and SQLite.
        """
        self._is_own = isinstance(database, str)
        self.engine = _engine(database) if isinstance(database, str) else database
        _require_supported(self.engine.dialect.name)

    async def do(self, work: Callable[[Connection], T]) -> T:
        """Run a function in a transaction. Commit unless it raises."""
        if isinstance(self.engine, AsyncEngine):
            async with self.engine.begin() as connection:
                return await connection.run_sync(work)
        return await asyncio.to_thread(self._do, self.engine, work)

    async def close(self) -> None:
        """Close the connections of its own engine."""
        if not self._is_own:
            return
        if isinstance(self.engine, AsyncEngine):
            await self.engine.dispose()
        else:
            self.engine.dispose()

    @staticmethod
    def _do(engine: Engine, work: Callable[[Connection], T]) -> T:
        with engine.begin() as connection:
            return work(connection)


def _require_supported(dialect: str) -> None:
    if dialect not in SUPPORTED:
        raise ConfigurationError(
            "database", f"{dialect} is not supported: the outbox works in PostgreSQL and SQLite. Use one of them"
        )


def _engine(url: str) -> Engine | AsyncEngine:
    try:
        place = make_url(url)
        _require_supported(place.get_backend_name())
        is_async = place.get_dialect().is_async
        return create_async_engine(place) if is_async else create_engine(place)
    except ImportError as error:
        raise ConfigurationError("database", f"has no driver installed: {error}") from error
    except NoSuchModuleError:
        reason = f"{place.drivername} is no database that SQLAlchemy knows: use postgresql+psycopg or sqlite"
        raise ConfigurationError("database", reason) from None
    except (ArgumentError, ValueError):  # their texts may quote a password
        raise ConfigurationError(
            "database",
            "is not a URL of SQLAlchemy, such as postgresql+psycopg://app@db/app: write @, : and / in a password as "
            "%40, %3A and %2F",
        ) from None
