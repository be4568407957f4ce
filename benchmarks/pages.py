"""Measures pages of the HTTP API while schedules fire, the lateness of these firings, and the cost of dashboards.

    python benchmarks/pages.py --pending 1000000 --rate 10000 --rounds 3

One worker with default settings has the pending schedules: of several tenants, with labels, due within 30 days, some
paused. In each round, schedules are due at an even rate twice: without clients, and while users request pages. Each
page is requested as often as any other, at random instants (a Poisson process), whether the last request was answered
or not. Lists are first pages, as the dashboard requests them, unless the name says something else: `page_2` is the
second page, `deep` a page in the middle of all schedules. A read_committed consumer records when it receives each
firing.

Then nothing is due, and the worker's processor time is measured without dashboards, with the event streams of open
dashboards, and also with their charts of upcoming firings.

Prints one JSON document: for each page p50, p95 and p99 of the time until the answer is read, and its statuses; for
each round lateness and rate of firings; for dashboards their share of a core (%).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

from even_load import ACCEPTED_PER_S, PARTITIONS, PAYLOAD_BYTES, Clients, EvenLoads, Rate

from light_scheduler.bench.dialects import Written
from light_scheduler.bench.figures import percentile
from light_scheduler.bench.filling import fill_with
from light_scheduler.bench.footprint import cpu_seconds
from light_scheduler.bench.looks import info_of
from light_scheduler.bench.machine import machine, versions
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.connection.worker_connection import WorkerAddress
from light_scheduler.devkit.waiting import wait_until
from light_scheduler.model import Headers

CLIENTS = str(Path(__file__).with_name("page_clients.py"))
DAY_MS = 24 * 3_600_000
SPREAD_MS = 30 * DAY_MS
LIST = "/api/v1/tenants/default/schedules"
TENANTS = 50
DEAD_LETTERS = 1_000
SETTLE_S = 5.0
TIMEOUT_S = 60.0


class Held(Workload):
    """The pending schedules: nine in ten of the tenant `default`; one in 100 with a label, one in 1,000 with another
    label, and one in 1,000 paused."""

    def due_of(self, number: int) -> int:
        return self.due + number * 2_654_435_761 % SPREAD_MS

    def written(self, number: int, key: bytes, headers: Headers) -> Written:
        ours: Headers = []
        if number % 10 == 3:
            ours.append(("schedule-tenant", b"tenant-%d" % (number // 10 % TENANTS)))
        if number % 100 == 1:
            ours.append(("schedule-labels", b"team=billing" + b",case=rare" * (number % 1_000 == 501)))
        if number % 1_000 == 7:
            ours.append(("schedule-paused", b"true"))
        return super().written(number, key, [*ours, *headers])


class Rejected(Workload):
    """Commands that become dead letters."""

    def written(self, number: int, key: bytes, headers: Headers) -> Written:
        key, value, (_at, *others) = super().written(number, key, headers)
        return key, value, [("schedule-at", b"never"), *others]


def prepare(application: BenchApplication, pending: int, progress: Progress) -> None:
    """Start the worker and create the data for the pages."""
    payloads, first = Payloads(PAYLOAD_BYTES, 1), DueTimes(SystemClock().now() + DAY_MS)

    def of(kind: type[Workload], messages: int, prefix: str) -> Workload:
        namespace = Namespace(prefix=prefix)
        return kind(messages=messages, payloads=payloads, target=application.target, due=first, namespace=namespace)

    fill_with(application, of(Held, pending, "held"), progress)
    rejected = of(Rejected, DEAD_LETTERS, "rejected")
    produce(application.bootstrap_servers, application.settings.topics.commands, rejected, progress)
    wait_until(lambda: dead_letters(application) >= DEAD_LETTERS, timeout=TIMEOUT_S, what="dead letters")
    worker = WorkerAddress(application.worker.url)
    for number in range(TENANTS):
        status, answer = worker.exchange("PUT", f"/api/v1/tenants/tenant-{number}", b'{"weight": 2}')
        assert status in (200, 201), answer


def dead_letters(application: BenchApplication) -> int:
    info = info_of(application.worker)
    return 0 if info is None else sum(lane.dead_letters for lane in info.lanes)


def behind(worker: WorkerAddress, path: str, where: str = "") -> str:
    """Return the path of the next page of a list; with `where`, of a page in the middle of the list."""
    status, answer = worker.exchange("GET", path + where)
    assert status == 200, answer
    return f"{path}&cursor={quote(json.loads(answer)['next_cursor'])}"


def pages(application: BenchApplication, pending: int) -> dict[str, str]:
    """Return the path of each page by name."""
    shown, due = f"{LIST}?limit=50&sort=due", SystemClock().now() + 10 * DAY_MS
    partition = quote(f"{application.settings.topics.commands}[1]")
    by_id = f"{LIST}?limit=50&sort=id"
    middle, half = SystemClock().now() + DAY_MS + SPREAD_MS // 2, f"held-{pending // 2:09}"[:-3]
    worker = WorkerAddress(application.worker.url)
    return {
        "schedules": shown,
        "schedules_page_2": behind(worker, shown),
        "schedules_deep": behind(worker, shown, f"&due_from={middle}"),
        "schedules_by_id_deep": behind(worker, by_id, f"&id_prefix={half}"),
        "schedules_by_id": by_id,
        "schedules_api_default": LIST,
        "schedules_api_1000": f"{LIST}?limit=1000",
        "due_range": f"{shown}&due_from={due}&due_to={due + 3_600_000}",
        "partition": f"{shown}&partition={partition}",
        "label_1_in_100": f"{shown}&label=team=billing",
        "label_1_in_1000": f"{shown}&label=case=rare",
        "label_without_match": f"{shown}&label=none=such",
        "state_paused": f"{shown}&state=paused",
        "state_without_match": f"{shown}&state=awaiting",
        "id_contains_1_in_1000": f"{shown}&id_contains=777",
        "id_contains_without_match": f"{shown}&id_contains=none-such",
        "id_contains_by_id": f"{by_id}&id_contains=none-such",
        "history": f"{LIST}/held-{pending // 2:09}/history?limit=50",
        "dead_letters": "/api/v1/dead-letters?limit=50",
        "tenants": "/api/v1/tenants",
        "tokens": "/api/v1/tokens",
        "delays": "/api/v1/delays",
        "changes": "/api/v1/changes?limit=50",
        "partitions": "/api/v1/cluster",
        "overview": "/api/v1/overview",
        "road_ahead": "/api/v1/upcoming?group=tenant&top=0&by=hour",
        "upcoming_minutes": "/api/v1/upcoming?group=tenant&top=50&by=minute",
        "upcoming_days": "/api/v1/upcoming?group=target&top=50&by=day",
        "upcoming_of_tenant": "/api/v1/tenants/default/upcoming?by=hour",
    }


Visits = dict[str, list[tuple[int, str]]]
"""The time (us) and status of each visit, by page."""


def figures_of(visits: Visits) -> dict[str, Any]:
    """Return the figures of visits, by page and in total."""
    return {name: _figures(each) for name, each in visits.items()} | {"all": _figures([*chain(*visits.values())])}


def _figures(visits: list[tuple[int, str]]) -> dict[str, Any]:
    times = sorted(us for us, _ in visits)
    shown = {f"p{each}_ms": round(percentile(times, each) / 1_000, 1) for each in (50, 95, 99)} if times else {}
    return {"visits": len(times), **shown, "statuses": dict(Counter(status for _, status in visits))}


def beside_firings(loads: EvenLoads, url: str, paths: dict[str, str], asked: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of pages, and those of firings with and without clients."""
    rate, firings = Rate(asked.rate, asked.seconds), {"quiet": [], "visited": []}  # type: ignore[var-annotated]
    visits: Visits = {name: [] for name in paths}
    for number in range(asked.rounds):
        for load in firings:
            per_s = asked.visits if load == "visited" else 0
            given = json.dumps(paths if per_s else {})
            options = ["--pages", given, "--per-second", str(per_s or 1), "--seed", str(number)]
            figures, found = loads.play(rate, [CLIENTS, "visits", url, *options])
            firings[load].append(figures)
            for name, each in found.items():
                visits[name] += each
            print(f"round {number + 1}, {load}: {figures}", file=sys.stderr)
    pairs = [*zip(*firings.values(), strict=True)]
    ratios = {
        f"{name}_to_quiet": round(median(visited[name] / quiet[name] for quiet, visited in pairs), 3)
        for name in ("lateness_p50_ms", "lateness_p99_ms", "fired_per_s")
    }
    return {"pages": figures_of(visits), "firings": firings, **ratios}


def dashboards_cost(application: BenchApplication, asked: argparse.Namespace) -> dict[str, Any]:
    """Return the worker's share of a core (%) for each kind of dashboards, in alternating rounds."""
    kinds: dict[str, list[str]] = {"none": ["--count", "0"], "streams": [], "streams_and_charts": ["--chart"]}
    shares: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(asked.rounds):
        for kind, options in kinds.items():
            given = ["dashboards", application.worker.url, "--count", str(asked.dashboards), *options]
            share, received = _watched(application, [CLIENTS, *given], asked.watch_seconds)
            shares[kind].append(round(share, 2))
            print(f"round {number + 1}, {kind}: {share:.2f} % of a core, {received} bytes sent", file=sys.stderr)
    none, *others = (median(each) for each in shares.values())
    more = {f"{kind}_percent_of_a_core": round(each - none, 2) for kind, each in zip([*kinds][1:], others, strict=True)}
    return {"dashboards": asked.dashboards, "worker_percent": shares, **more, "load": round(os.getloadavg()[0], 2)}


def _watched(application: BenchApplication, clients: list[str], seconds: float) -> tuple[float, int]:
    """Return the worker's share of a core (%), and the bytes that the dashboards received."""
    pid = application.worker.pid
    assert pid is not None
    watching = Clients(clients)
    time.sleep(SETTLE_S)
    begun, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)
    after, ended = cpu_seconds(pid), time.monotonic()
    received: int = watching.answers()["received_bytes"]
    assert before is not None
    assert after is not None
    return 100 * (after - before) / (ended - begun), received


def options() -> Iterator[tuple[str, type, float, str]]:
    yield "--pending", int, 1_000_000, "Schedules that are pending all the time."
    yield "--rate", int, 10_000, "Schedules that are due in a second."
    yield "--accepted", int, ACCEPTED_PER_S, "Commands that are accepted in a second, at the least."
    yield "--seconds", int, 30, "How long they are due in each half of a round."
    yield "--rounds", int, 3, "Rounds."
    yield "--visits", float, 5.0, "Pages that are asked for in a second."
    yield "--dashboards", int, 20, "Dashboards that are open."
    yield "--watch-seconds", float, 30, "How long their cost is measured, for each kind in each round."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind, default, text in options():
        parser.add_argument(name, type=kind, default=default, help=f"{text} Default: {default}.")
    asked = parser.parse_args()
    found_on = machine()
    with Progress() as progress, Stage(PARTITIONS) as stage, stage.application() as application:
        prepare(application, asked.pending, progress)
        paths = pages(application, asked.pending)
        loads = EvenLoads(stage, application, progress, asked.accepted)
        found = beside_firings(loads, application.worker.url, paths, asked)
        costs = dashboards_cost(application, asked)
    whole = {"settings": vars(asked), "paths": paths, **found, "dashboards": costs}
    print(json.dumps({**whole, "machine": found_on, "versions": versions()}, indent=2))


if __name__ == "__main__":
    main()
