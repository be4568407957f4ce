"""Schedules due at an even rate while clients query the worker; shared by `listing` and `pages`.

The clients are a separate process, which runs until its standard input ends and then prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from light_scheduler.bench.deliveries import Delivery, Tally, TargetTopic, read_deliveries
from light_scheduler.bench.footprint import cpu_seconds, rss_bytes
from light_scheduler.bench.looks import follow
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.stage import BenchApplication, Stage
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.errors import SchedulerError

PARTITIONS = 4
PAYLOAD_BYTES = 200
LEAD_S = 12
ACCEPTED_PER_S = 10_000
"""Default for the minimum number of commands that are sent and accepted per second."""

WARM_UP_S = 2
"""How long before the first due time the clients and the reader begin."""


class Rate(NamedTuple):
    """A number of schedules per second, for a number of seconds."""

    per_s: int
    seconds: int


class _Timed(Tally):
    """Deliveries, and when the last one was seen (UTC epoch ms)."""

    last_seen = 0

    def arrived(self, number: int, due: int, delivery: Delivery) -> None:
        super().arrived(number, due, delivery)
        self.last_seen = max(self.last_seen, delivery.visible_at)


class Clients:
    """A process that queries a worker until it is asked to stop."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def answers(self) -> Any:
        """Stop the clients, and return the JSON that they print. Raises SchedulerError if they failed."""
        printed, _ = self._process.communicate()
        if self._process.returncode:
            raise SchedulerError(f"the clients ended with exit code {self._process.returncode}: see above")
        return json.loads(printed)


def stdin_ended() -> asyncio.Future[str]:
    """Return a future that completes when standard input ends, which asks clients to stop."""
    return asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))


class EvenLoads:
    """Loads of one application, one after the other, each with its own target topic."""

    def __init__(
        self, stage: Stage, application: BenchApplication, progress: Progress, accepted_per_s: int = ACCEPTED_PER_S
    ) -> None:
        self._accepted_per_s = accepted_per_s
        self._stage = stage
        self._application = application
        self._progress = progress
        self._numbers = count(1)

    def play(self, rate: Rate, clients: Sequence[str]) -> tuple[dict[str, float], Any]:
        """Return the figures of the firings, and the output of the clients (given as arguments of Python).

        Raises SchedulerError if not everything was accepted before the first was due.
        """
        number = next(self._numbers)
        target = TargetTopic(self._application.bootstrap_servers, f"{self._application.target}-{number}", PARTITIONS)
        with self._stage.topics(PARTITIONS, target.name):
            workload = self._accepted(rate, number, target.name)
            return self._fired(rate, workload, target, clients)

    def _accepted(self, rate: Rate, number: int, target: str) -> Workload:
        application, clock = self._application, SystemClock()
        messages = rate.per_s * rate.seconds
        workload = Workload(
            messages=messages,
            payloads=Payloads(PAYLOAD_BYTES, number),
            target=target,
            due=DueTimes(clock.now() + LEAD_S * 1_000 + messages * 1_000 // self._accepted_per_s, rate.per_s),
            namespace=Namespace(prefix=f"load{number}"),
        )
        before = follow(application.worker, lambda seen: seen.carried_out, 0, self._progress)[-1].carried_out
        self._progress.phase("sending commands", messages)
        produce(application.bootstrap_servers, application.settings.topics.commands, workload, self._progress)
        self._progress.phase("accepting", messages)
        follow(application.worker, lambda seen: seen.carried_out - before, messages, self._progress)
        wait_s = (workload.due - clock.now()) / 1_000 - WARM_UP_S
        if wait_s < 0:
            raise SchedulerError(f"{messages} schedules were not accepted in time: use a lower rate")
        time.sleep(wait_s)
        return workload

    def _fired(
        self, rate: Rate, workload: Workload, target: TargetTopic, clients: Sequence[str]
    ) -> tuple[dict[str, float], Any]:
        pid = self._application.worker.pid
        assert pid is not None
        self._progress.phase("firing", workload.messages)
        asking, tally = Clients(clients), _Timed(workload)
        begun, cpu_begun = time.monotonic(), cpu_seconds(pid)
        read_deliveries(target, tally, self._progress, SystemClock())
        cpu_ended, seconds = cpu_seconds(pid), time.monotonic() - begun
        answers = asking.answers()
        assert cpu_begun is not None
        assert cpu_ended is not None
        fired_s = (tally.last_seen - workload.due) / 1_000
        figures = {
            **tally.lateness.figures(),
            **tally.faults(),
            "fired_per_s": round((rate.per_s * rate.seconds - tally.missing) / fired_s, 1),
            "worker_cpu_percent": round(100 * (cpu_ended - cpu_begun) / seconds, 1),
            "rss_mb": (rss_bytes(pid) or 0) >> 20,
            "load": round(os.getloadavg()[0], 2),
        }
        return figures, answers
