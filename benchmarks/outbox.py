"""Measures how soon the scheduler knows a booking in PostgreSQL, with a relay that LISTEN and NOTIFY wake.

    python benchmarks/outbox.py --bookings 300 > benchmarks/results/outbox.json

One worker and one relay with default settings. Each booking is a separate transaction; the next one follows when the
scheduler has accepted it. Prints one JSON document: the time from the return of the commit until the command is
readable in its topic (read_committed), and until the history shows that the schedule is accepted, in ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import MetaData, create_engine
from sqlalchemy.orm import Session

from benchmarks.contestants.postgres import Postgres
from benchmarks.contestants.toolbox import Toolbox
from light_scheduler.bench.machine import machine, versions
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.client import SchedulerClient
from light_scheduler.client.reading import Reader
from light_scheduler.model import EventType
from light_scheduler.outbox import Outbox, OutboxRelay, RelayOptions

WARM_UP = 20
"""Bookings before the measured ones, while the relay takes its shards and connections are opened."""


async def measure(application: BenchApplication, database: str, bookings: int) -> dict[str, dict[str, float]]:
    """Return the times (ms) until a command was readable, and until it was accepted."""
    metadata = MetaData()
    outbox = Outbox(metadata)
    engine = create_engine(f"postgresql+psycopg://{database}")
    metadata.create_all(engine)
    settings = application.settings
    relay = OutboxRelay(
        f"postgresql+psycopg://{database}", application.bootstrap_servers, RelayOptions(app_id=settings.app_id)
    )
    relaying = asyncio.create_task(relay.run())

    def book(number: int) -> float:
        with Session(engine) as session, session.begin():
            outbox.schedule(session, f"booking-{number}", b"x" * 200, topic=application.target, after="1h")
        return time.monotonic()

    readable: list[float] = []
    accepted: list[float] = []
    client = SchedulerClient(application.bootstrap_servers, app_id=settings.app_id)
    async with client, aclosing(client.watch(from_beginning=True, events={EventType.SCHEDULED})) as events:
        commands = await client._channel.reader(settings.topics.commands, from_beginning=True)
        records: AsyncIterator[Any] = aiter(_records(commands))
        for number in range(WARM_UP + bookings):
            committed = await asyncio.to_thread(book, number)
            came = await asyncio.gather(_arrival(records), _arrival(events))
            if number >= WARM_UP:
                readable.append((came[0] - committed) * 1_000)
                accepted.append((came[1] - committed) * 1_000)
        await commands.close()
    relay.stop()
    await relaying
    engine.dispose()
    return {"readable_ms": _figures(readable), "accepted_ms": _figures(accepted)}


async def _records(reader: Reader) -> AsyncIterator[Any]:
    async for record in reader:
        yield record


async def _arrival(arrivals: AsyncIterator[Any]) -> float:
    await anext(arrivals)
    return time.monotonic()


def _figures(times: list[float]) -> dict[str, float]:
    parts = statistics.quantiles(times, n=100)
    return {"p50": round(parts[49], 1), "p99": round(parts[98], 1), "max": round(max(times), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bookings", type=int, default=300)
    asked = parser.parse_args()
    found_on = machine()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o711)  # the server drops root
        installed = shutil.which("postgres")
        programs = Path(installed).resolve().parent if installed else Toolbox(folder / "programs").postgres
        tools: Any = SimpleNamespace(postgres=programs, python=sys.executable)
        server = Postgres(tools, folder / "server")
        try:
            with Stage(4) as stage, stage.application() as application:
                application.worker.start()
                found = asyncio.run(measure(application, server.address, asked.bookings))
        finally:
            server.close()
    settings = {"bookings": asked.bookings}
    print(json.dumps({"settings": settings, **found, "machine": found_on, "versions": versions()}, indent=2))


if __name__ == "__main__":
    main()
