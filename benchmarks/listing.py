"""Measures the lateness of firings while clients query a worker without pause: lists, lists without matches, previews.

    python benchmarks/listing.py --pending 200000 --rate 2000 --clients 50

One worker with default settings has the pending schedules. For each kind of load, schedules are due at an even rate,
and a read_committed consumer records when it receives each firing. The clients are a separate process, and send the
next request as soon as they have an answer. Prints one JSON document: for each load the lateness of firings, the number
of answers per second by status, the duration of /live, and the worker's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter

import aiohttp
from even_load import PARTITIONS, PAYLOAD_BYTES, EvenLoads, Rate, stdin_ended
from yarl import URL

from light_scheduler.bench.filling import fill
from light_scheduler.bench.machine import machine, versions
from light_scheduler.bench.options import Options
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.stage import Stage

LISTS = "/api/v1/tenants/default/schedules"
LOADS = {
    "quiet": "",
    "lists": LISTS,
    "lists_without_a_match": f"{LISTS}?label=none=such",
    "previews": "/api/v1/preview?cron_dialect=cron4j&count=1000&cron=" + "%7C".join(["0+0+29+2+1"] * 32),
    "large_previews": "/api/v1/preview?cron_dialect=cron4j&count=1000&cron=" + "%7C".join(["0+0+29+2+1"] * 90),
}


async def ask_without_pause(url: str, path: str, clients: int) -> None:
    """Send requests until standard input ends. Print the results as JSON."""
    statuses: Counter[str] = Counter()
    live: list[float] = []
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    ended = stdin_ended()

    async def ask() -> None:
        while not ended.done():
            try:
                async with session.get(URL(url + path, encoded=True)) as response:
                    await response.read()
                    statuses[str(response.status)] += 1
            except aiohttp.ClientError as error:
                statuses[type(error).__name__] += 1

    async def look() -> None:
        while not ended.done():
            begun = time.monotonic()
            async with session.get(url + "/live") as response:
                await response.read()
            live.append(time.monotonic() - begun)
            await asyncio.sleep(0.2)

    begun = time.monotonic()
    async with session, asyncio.TaskGroup() as asking:
        asking.create_task(look())
        for _ in range(clients if path else 0):
            asking.create_task(ask())
    seconds = time.monotonic() - begun
    rates = {status: round(number / seconds, 1) for status, number in statuses.items()}
    print(json.dumps({"answers_per_s": rates, "live_max_ms": round(max(live, default=0.0) * 1_000)}))


def measure(loads: EvenLoads, url: str, load: str, asked: argparse.Namespace) -> dict[str, object]:
    """Return the figures of one load."""
    clients = [__file__, "--ask", url, "--path", LOADS[load], "--clients", str(asked.clients)]
    figures, answers = loads.play(Rate(asked.rate, asked.seconds), clients)
    return {**figures, **answers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pending", type=int, default=200_000)
    parser.add_argument("--rate", type=int, default=2_000, help="Schedules that are due in a second.")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--loads", default=",".join(LOADS), help="Which, in order.")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.ask:
        asyncio.run(ask_without_pause(asked.ask, asked.path, asked.clients))
        return
    options = Options(partitions=PARTITIONS, payload_bytes=PAYLOAD_BYTES, repeat=1, seed=1)
    found_on = machine()
    with Progress() as progress, Stage(options.partitions) as stage, stage.application() as application:
        fill(application, options, asked.pending, progress)
        loads = EvenLoads(stage, application, progress)
        found = [(load, measure(loads, application.worker.url, load, asked)) for load in asked.loads.split(",")]
    settings = {"pending": asked.pending, "rate": asked.rate, "seconds": asked.seconds, "clients": asked.clients}
    print(json.dumps({"settings": settings, "found": found, "machine": found_on, "versions": versions()}, indent=2))


if __name__ == "__main__":
    main()
