"""Wakes a relay at once when PostgreSQL notifies it of a booking. Other bookings are found by polling."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from .database import Database

RETRY_S = 5.0
LOOK_S = 0.5
"""How soon a listening thread notices that it must end."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def woken_by_bookings(database: Database, channel: str, wake: asyncio.Event) -> AsyncIterator[None]:
    """While the body runs, set the event at each notification on a channel, and once when it begins to listen, since
    earlier bookings were not notified.

    Does nothing without PostgreSQL, or with a driver other than psycopg (3) and asyncpg.
    """
    dialect = database.engine.dialect
    if dialect.name != "postgresql" or dialect.driver not in ("psycopg", "psycopg_async", "asyncpg"):
        yield
        return
    listening = asyncio.create_task(_listen(database.engine, channel, wake))
    try:
        yield
    finally:
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


async def _listen(engine: Engine | AsyncEngine, channel: str, wake: asyncio.Event) -> None:
    failures = (SQLAlchemyError, OSError, engine.dialect.loaded_dbapi.Error)
    while True:
        try:
            if isinstance(engine, AsyncEngine):
                await _listen_async(engine, channel, wake.set)
            else:
                await _listen_beside(engine, channel, wake.set)
        except failures as error:
            log.warning("cannot listen for bookings, so the relay polls for them: %s", error)
        await asyncio.sleep(RETRY_S)


async def _listen_async(engine: AsyncEngine, channel: str, tell: Callable[[], None]) -> None:
    """Listen until the connection ends."""
    async with engine.connect() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        try:
            if engine.dialect.driver == "asyncpg":
                ended = asyncio.Event()
                driver.add_termination_listener(lambda _: ended.set())
                await driver.add_listener(channel, lambda *_: tell())
                tell()
                await ended.wait()
            else:
                await driver.set_autocommit(True)
                await driver.execute(f'LISTEN "{channel}"')
                tell()
                async for _ in driver.notifies():
                    tell()
        finally:
            await connection.invalidate()  # it must not be reused while it listens


async def _listen_beside(engine: Engine, channel: str, tell: Callable[[], None]) -> None:
    """Listen in a thread until the connection ends."""
    loop, is_over = asyncio.get_running_loop(), threading.Event()
    listening = asyncio.ensure_future(
        asyncio.to_thread(_listen_blocking, engine, channel, lambda: loop.call_soon_threadsafe(tell), is_over)
    )
    try:
        await asyncio.shield(listening)
    except asyncio.CancelledError:
        is_over.set()
        await asyncio.wait([listening])
        raise


def _listen_blocking(engine: Engine, channel: str, tell: Callable[[], object], is_over: threading.Event) -> None:
    connection = engine.raw_connection()
    try:
        driver: Any = connection.driver_connection
        driver.autocommit = True
        driver.execute(f'LISTEN "{channel}"')
        tell()
        while not is_over.is_set():
            for _ in driver.notifies(timeout=LOOK_S, stop_after=1):
                tell()
    finally:
        connection.invalidate()  # it must not be reused while it listens
        connection.close()
