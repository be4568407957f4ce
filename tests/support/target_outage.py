"""One target that takes nothing, beside another one: its own firings wait for it, and nobody else notices.

Its outage begins, for a worker, when Kafka has moved what else the broker led. From `DETECTION_MS` later on, whatever
goes elsewhere has to be as punctual as before.
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from light_scheduler.clock import SystemClock
from light_scheduler.devkit import EmbeddedCluster
from light_scheduler.model import EventType

from .application import Application, WorkerProcess
from .arrivals import Arrival, Arrivals, Asked, Asker
from .placing import await_leaders_elsewhere, await_writable, place_topic
from .reading import read_all
from .waiting import eventually

DETECTION_MS = 3_000
"""Within which a worker finds out that a target takes nothing."""
RETURN_MS = 2_000
"""Within which a worker fires what waits for a target that takes records again."""
READER_MS = 1_000
"""What the test's own reader may need to reach a broker that is back."""
ANSWER_MS = 3_000
MORE_LATE_MS = 1_000

HEALTHY = 700
FRAIL, SERIES = 195, 5
NORMAL_S = 12.0
AFTER_S = 15.0
SERIES_LENGTH = 25
BROKER = 3


@dataclass(frozen=True)
class Case:
    """How the target is made, what happens to broker 3 for `seconds`, and how many workers there are.

    Brokers wait so long (`marker_wait_ms`) for the copies of a marker, and write no other transaction's meanwhile.
    """

    copies: tuple[int, ...]
    deed: str
    seconds: float
    workers: int = 1
    configs: dict[str, str] = field(default_factory=dict)
    marker_wait_ms: int | None = None

    @property
    def brokers(self) -> dict[str, object]:
        """Properties of the brokers."""
        return {} if self.marker_wait_ms is None else {"request.timeout.ms": self.marker_wait_ms}

    @property
    def detection_ms(self) -> int:
        """Within which everything else is as punctual as before."""
        return DETECTION_MS + (self.marker_wait_ms or 0)


@dataclass
class Seen:
    """What a run showed; instants are UTC epoch ms. `looks` are (when, answer of a worker's /info)."""

    begun_at: int = 0
    elsewhere_at: int = 0
    ended_at: int = 0
    writable_at: int = 0
    healthy: list[Arrival] = field(default_factory=list)
    frail: list[Arrival] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    looks: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    metrics: str = ""


async def outlast(folder: Path, case: Case) -> None:
    """Play a case, and check everything."""
    with EmbeddedCluster(3, properties=case.brokers) as cluster:
        application = await Application.create(cluster.bootstrap_servers, folder, replication_factor="3")
        frail = f"{application.target}-frail"
        await asyncio.to_thread(place_topic, cluster.bootstrap_servers, frail, case.copies, case.configs)
        try:
            for _ in range(case.workers):
                await application.start_worker()
            seen = await play(cluster, application, frail, case)
            history = await application.history()
            dead = await read_all(cluster.bootstrap_servers, application.settings.topics.dead_letters)
        finally:
            await asyncio.to_thread(application.close)

    detected_at = seen.elsewhere_at + case.detection_ms
    check_healthy(seen, detected_at)
    check_commands(seen.asked, detected_at)
    check_frail(seen)
    check_view(seen, frail)
    assert dead == [], "an outage is no firing's failure"
    told = Counter(event.event for event in history if (event.id or "").startswith("frail"))
    assert told.keys() <= {EventType.SCHEDULED, EventType.FIRED, EventType.FINISHED}, "an outage spends no attempt"
    asked = Counter(event.id for event in history if (event.id or "").startswith("unheard"))
    assert set(asked.values()) == {1}, "a command whose answer cannot be delivered is carried out"


async def play(cluster: EmbeddedCluster, application: Application, frail: str, case: Case) -> Seen:
    """Have firings come due before, during and after an outage of broker 3."""
    clock, broker, servers = SystemClock(), cluster.nodes[BROKER - 1], cluster.bootstrap_servers
    topics = application.settings.topics
    spread_ms = round((NORMAL_S + case.seconds + AFTER_S) * 1_000)
    start = clock.now() + 6_000
    await schedule(application, frail, start, spread_ms)
    seen = Seen()
    with (
        Arrivals(servers, [application.target, frail]) as arrivals,
        Asker(servers, topics.commands, topics.results, application.target) as asker,
        Asker(servers, topics.commands, frail, application.target, name="unheard", pause_s=1.0),
    ):
        await asyncio.to_thread(cluster.wait_in_sync)
        await arrivals.await_count(application.target, round(HEALTHY * NORMAL_S * 1_000 / spread_ms), 60)
        seen.begun_at = clock.now()
        if case.deed == "kill":
            await asyncio.to_thread(broker.kill)
        else:
            broker.send_signal(signal.SIGSTOP)
        survivors = ",".join(node.bootstrap_servers for node in cluster.nodes if node is not broker)
        seen.elsewhere_at = await asyncio.to_thread(await_leaders_elsewhere, survivors, BROKER, but=frail)

        async def is_over() -> bool:
            """Return whether the outage has lasted long enough, after a look at all workers."""
            for worker in application.workers:
                seen.looks.append((clock.now(), await worker.get("/info")))
            seen.metrics = await metrics_of(application.workers)
            return clock.now() >= seen.begun_at + case.seconds * 1_000

        await eventually(is_over, within=case.seconds + 60, every=0.5)
        seen.ended_at = clock.now()
        if case.deed == "kill":
            await asyncio.to_thread(broker.start)
        else:
            broker.send_signal(signal.SIGCONT)
        seen.writable_at = await asyncio.to_thread(await_writable, servers, frail)
        await arrivals.await_count(application.target, HEALTHY, 90)
        await arrivals.await_count(frail, FRAIL + SERIES * SERIES_LENGTH, 90)
        for worker in application.workers:
            await no_target_is_away(worker)
        await asker.await_answers(90)
        seen.healthy, seen.frail, seen.asked = arrivals.seen[application.target], arrivals.seen[frail], asker.asked
    return seen


async def schedule(application: Application, frail: str, start: int, spread_ms: int) -> None:
    """Schedule one-shots for both targets, evenly over the run, and series for the one that fails."""
    async with application.client() as client:
        await client.schedule_many(
            {"id": f"{name}-{number}", "payload": b"x", "topic": topic, "at": start + number * spread_ms // count}
            for name, topic, count in (("frail", frail, FRAIL), ("healthy", application.target, HEALTHY))
            for number in range(count)
        )
    async with application.sender() as send:
        for number in range(SERIES):
            # From shortly before the outage on until it is over.
            first = start + round(NORMAL_S * 1_000) - 3_000 + 10 * number
            options = {"every": 1_000, "start": first, "max_firings": SERIES_LENGTH, "misfire": "all"}
            await send(f"frail-series-{number}", b"x", target_topic=frail, **options)


async def metrics_of(workers: Iterable[WorkerProcess]) -> str:
    async with aiohttp.ClientSession() as session:
        pages = []
        for worker in workers:
            async with session.get(f"{worker.url}/metrics") as response:
                pages.append(await response.text())
    return "\n".join(pages)


async def no_target_is_away(worker: WorkerProcess) -> None:
    """Return when a worker says that every target takes records."""
    await worker.shows(lambda info: not info.get("targets"), within=60)


def p99(latenesses: list[int]) -> int:
    """Return the 99th percentile by nearest rank."""
    return sorted(latenesses)[math.ceil(0.99 * len(latenesses)) - 1]


def check_healthy(seen: Seen, detected_at: int) -> None:
    """Every one came once, never early, and after the detection as punctually as before the outage."""
    assert Counter(firing.id for firing in seen.healthy) == {f"healthy-{number}": 1 for number in range(HEALTHY)}
    assert all(firing.lateness >= 0 for firing in seen.healthy)
    normal = [firing.lateness for firing in seen.healthy if firing.due < seen.begun_at - 1_000]
    later = [firing.lateness for firing in seen.healthy if firing.due >= detected_at]
    assert min(len(normal), len(later)) > 100
    allowed = p99(normal) + MORE_LATE_MS
    too_late = [(firing.due - seen.begun_at, firing.lateness) for firing in seen.healthy if firing.lateness > allowed]
    assert p99(later) <= allowed, (
        f"p99 {p99(normal)} ms before; from when the outage began, it ended after {seen.ended_at - seen.begun_at} ms, "
        f"the target took records after {seen.writable_at - seen.begun_at} ms, and these (due, lateness) came later "
        f"than {allowed} ms: {too_late}"
    )


def check_commands(asked: list[Asked], detected_at: int) -> None:
    """Every command was answered, and after the detection soon."""
    later = [one.took for one in asked if one.sent_at >= detected_at]
    assert len(later) > 20
    assert max(took for took in later if took is not None) <= ANSWER_MS


def check_frail(seen: Seen) -> None:
    """Every one came once, at its first attempt, in order for each schedule, and soon after the target's return."""
    expected = {f"frail-{number}": 1 for number in range(FRAIL)}
    expected |= {f"frail-series-{number}": SERIES_LENGTH for number in range(SERIES)}
    assert Counter(firing.id for firing in seen.frail) == expected
    assert {firing.attempt for firing in seen.frail} == {"1"}
    dues: defaultdict[str, list[int]] = defaultdict(list)
    for firing in seen.frail:
        dues[firing.id].append(firing.due)
    assert all(due == sorted(set(due)) for due in dues.values())
    waited = [firing for firing in seen.frail if seen.begun_at < firing.due < seen.writable_at]
    assert len(waited) > 50
    assert max(firing.fired_at for firing in waited) <= seen.writable_at + RETURN_MS
    assert max(firing.at for firing in waited) <= seen.writable_at + RETURN_MS + READER_MS


def check_view(seen: Seen, frail: str) -> None:
    """A worker says which target takes nothing, since when, why, and how many firings wait for it."""
    looks = [look for at, look in seen.looks if at >= seen.elsewhere_at + 2 * DETECTION_MS]
    entries = [target for look in looks for target in look["targets"]]
    assert {entry["topic"] for entry in entries} == {frail}, "the others took all they were given"
    assert all(entry["partitions"] and set(entry["partitions"]) <= set(range(4)) for entry in entries)
    latest = seen.elsewhere_at + DETECTION_MS
    since = [entry["unavailable_since"] - seen.begun_at for entry in entries]
    assert min(since) >= 0
    assert max(since) <= latest - seen.begun_at, f"unavailable {since} ms after the outage began"
    assert all(entry["reason"] for entry in entries)
    assert max(entry["waiting"] for entry in entries) > 5
    for name in ("light_scheduler_target_unavailable_seconds", "light_scheduler_target_waiting_firings"):
        values = [line for line in seen.metrics.splitlines() if line.startswith(f'{name}{{topic="{frail}"}}')]
        assert values, f"{name} of {frail} is not in /metrics"
        assert max(float(line.rpartition(" ")[2]) for line in values) > 0
