"""How late firings are while clients ask a worker without pause: lists, lists that match nothing, previews.

    python benchmarks/listing.py --pending 200000 --rate 2000 --clients 50

One worker with default settings holds the pending schedules. For each kind of load, schedules are due at an even rate,
and a read_committed consumer notes when it gets each one. The clients are a process of their own, and ask again as soon
as they have an answer. Prints one JSON document: for each load the lateness of firings, how many answers of each status
the clients had in a second, how long /live took, and the worker's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from itertools import count

import aiohttp
from rich.console import Console
from yarl import URL

from light_scheduler.bench.deliveries import Tally, TargetTopic, read_deliveries
from light_scheduler.bench.filling import fill
from light_scheduler.bench.footprint import rss_bytes
from light_scheduler.bench.machine import machine, versions
from light_scheduler.bench.options import Options
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock

LISTS = "/api/v1/tenants/default/schedules"
LOADS = {
    "quiet": "",
    "lists": LISTS,
    "lists_without_a_match": f"{LISTS}?label=none=such",
    "previews": "/api/v1/preview?cron_dialect=cron4j&count=1000&cron=" + "%7C".join(["0+0+29+2+1"] * 32),
    "large_previews": "/api/v1/preview?cron_dialect=cron4j&count=1000&cron=" + "%7C".join(["0+0+29+2+1"] * 90),
}
LEAD_S = 12
READING_S = 8
"""How long before the first is due the reading begins: what the loads before delivered has to be passed over."""
ASSUMED_PER_S = 10_000


async def ask_without_pause(url: str, path: str, clients: int) -> None:
    """Ask until standard input ends; print what came as JSON."""
    statuses: Counter[str] = Counter()
    live: list[float] = []
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def ask(path: str) -> None:
        while True:
            try:
                async with session.get(URL(url + path, encoded=True)) as response:
                    await response.read()
                    statuses[str(response.status)] += 1
            except aiohttp.ClientError as error:
                statuses[type(error).__name__] += 1

    async def look() -> None:
        while True:
            begun = time.monotonic()
            async with session.get(url + "/live") as response:
                await response.read()
            live.append(time.monotonic() - begun)
            await asyncio.sleep(0.2)

    async with session:
        begun = time.monotonic()
        tasks = [asyncio.create_task(look()), *(asyncio.create_task(ask(path)) for _ in range(clients if path else 0))]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
        seconds = time.monotonic() - begun
    rates = {status: round(number / seconds, 1) for status, number in statuses.items()}
    print(json.dumps({"answers_per_s": rates, "live_max_ms": round(max(live, default=0.0) * 1_000)}))


def measure(application: BenchApplication, load: str, number: int, asked: argparse.Namespace) -> dict[str, object]:
    """Return what one load did."""
    clock, silent = SystemClock(), Progress(Console(quiet=True))
    messages = asked.rate * asked.seconds
    workload = Workload(
        messages=messages,
        payloads=Payloads(200, number),
        target=application.target,
        due=DueTimes(clock.now() + LEAD_S * 1_000 + messages * 1_000 // ASSUMED_PER_S, asked.rate),
        namespace=Namespace(prefix=f"load{number}"),
    )
    produce(application.bootstrap_servers, application.settings.topics.commands, workload, silent)
    time.sleep(max(0.0, (workload.due - clock.now()) / 1_000 - READING_S))
    tally = Tally(workload)
    clients = subprocess.Popen(
        [
            sys.executable,
            __file__,
            "--ask",
            application.worker.url,
            "--path",
            LOADS[load],
            "--clients",
            str(asked.clients),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    read_deliveries(TargetTopic(application.bootstrap_servers, application.target, 4), tally, silent, clock)
    answers, _ = clients.communicate()
    assert application.worker.pid is not None
    memory = rss_bytes(application.worker.pid)
    return {**tally.lateness.figures(), **tally.faults(), **json.loads(answers), "rss_mb": (memory or 0) >> 20}


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
    options = Options(partitions=4, payload_bytes=200, repeat=1, seed=1)
    numbers = count(1)
    with Stage(options.partitions) as stage, stage.application() as application:
        fill(application, options, asked.pending, Progress(Console(stderr=True)))
        found = [(load, measure(application, load, next(numbers), asked)) for load in asked.loads.split(",")]
    settings = {"pending": asked.pending, "rate": asked.rate, "seconds": asked.seconds, "clients": asked.clients}
    print(json.dumps({"settings": settings, "found": found, "machine": machine(), "versions": versions()}, indent=2))


if __name__ == "__main__":
    main()
