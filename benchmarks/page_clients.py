"""Simulated users of a worker's pages, for `pages`: visits at random times, and dashboards that stay open.

    python benchmarks/page_clients.py visits URL --pages '{"overview": "/api/v1/overview"}' --per-second 5
    python benchmarks/page_clients.py dashboards URL --count 20 --chart

Both run until standard input ends, and then print JSON: for visits, the time (us) and status of each, by page; for
dashboards, the number of received bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from random import Random

import aiohttp
from even_load import stdin_ended
from yarl import URL

STREAM = "/api/v1/events?of=cluster&of=overview"
"""The stream that a dashboard's overview follows."""

CHART = "/api/v1/upcoming?group=tenant&top=0&by=hour"
CHART_EVERY_S = 15.0
"""The chart's request, and its interval."""

_NO_LIMIT = aiohttp.ClientTimeout(total=None)


async def visit(url: str, pages: dict[str, str], per_s: float, seed: int) -> None:
    """Request pages, each as often as any other. The times of requests do not depend on how long answers take."""
    random, ended = Random(seed), stdin_ended()  # nosec B311 # no secret
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in pages}
    names = [*pages]

    async def ask(name: str) -> None:
        begun = time.perf_counter_ns()
        try:
            async with session.get(URL(url + pages[name], encoded=True)) as response:
                await response.read()
                status = str(response.status)
        except aiohttp.ClientError as error:
            status = type(error).__name__
        found[name].append(((time.perf_counter_ns() - begun) // 1_000, status))

    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.TaskGroup() as asking,
    ):
        while names and not ended.done():
            random.shuffle(names)
            for name in names:
                await asyncio.wait([ended], timeout=random.expovariate(per_s))
                if ended.done():
                    break
                asking.create_task(ask(name))
        await ended
    print(json.dumps(found))


async def keep_open(url: str, count: int, *, chart: bool) -> None:
    """Keep the streams of `count` dashboards open, and request their charts, if they have any."""
    ended = stdin_ended()
    received = 0

    async def follow() -> None:
        nonlocal received
        async with session.get(url + STREAM, timeout=_NO_LIMIT, raise_for_status=True) as response:
            async for piece in response.content.iter_any():
                received += len(piece)
                if ended.done():
                    return

    async def draw(delay_s: float) -> None:
        await asyncio.wait([ended], timeout=delay_s)
        while not ended.done():
            async with session.get(url + CHART, raise_for_status=True) as response:
                await response.read()
            await asyncio.wait([ended], timeout=CHART_EVERY_S)

    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.TaskGroup() as dashboards,
    ):
        for number in range(count):
            dashboards.create_task(follow())
            if chart:
                dashboards.create_task(draw(number * CHART_EVERY_S / count))
        await ended
    print(json.dumps({"received_bytes": received}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    visits, dashboards = kinds.add_parser("visits"), kinds.add_parser("dashboards")
    for each in (visits, dashboards):
        each.add_argument("url")
    visits.add_argument("--pages", type=json.loads, required=True, help="Path of each page by its name, as JSON.")
    visits.add_argument("--per-second", type=float, default=5.0)
    visits.add_argument("--seed", type=int, default=1)
    dashboards.add_argument("--count", type=int, default=20)
    dashboards.add_argument("--chart", action="store_true", help="Ask for the road ahead too, every 15 s.")
    asked = parser.parse_args()
    if asked.kind == "visits":
        asyncio.run(visit(asked.url, asked.pages, asked.per_second, asked.seed))
    else:
        asyncio.run(keep_open(asked.url, asked.count, chart=asked.chart))


if __name__ == "__main__":
    main()
