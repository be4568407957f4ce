"""A match: one round of one contestant, with each part on an otherwise idle scheduler.

1. *pending*: many schedules due in a month, on an empty scheduler: rate of acceptance and footprint.
2. *steady*: on another empty one, an even rate for some seconds: lateness. This is also the warm-up.
3. *burst*: many due at one instant: rate from the instant to the last delivery.
4. *kill*: a burst again; SIGKILL after half of the time that the last one took, and a restart at once. What is missing
   at the end is lost, unless the store still has it.
"""

from __future__ import annotations

import time

from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload
from light_scheduler.clock import SystemClock
from light_scheduler.errors import SchedulerError

from .contestant import Contestant, Workspace
from .figures import Count, summed
from .memory import settled_bytes

PAYLOAD_BYTES = 200
RATE = 200
SECONDS = 10
_MONTH_MS = 30 * 24 * 3_600_000
_LEAD_S = 2.0
_SPARE = 1.6  # multiple of the time that submitting and accepting the pending ones took
_ATTEMPTS = 3
_DRAIN_S = 120.0
_AFTERWARDS_S = 3.0  # for late duplicates after everything has been delivered


class Match:
    """A round of one contestant. `scale` is a factor for all numbers of schedules."""

    def __init__(self, make: type[Contestant], place: Workspace, scale: float) -> None:
        self._make = make
        self._place = place
        self._progress = place.progress
        self._pending = max(100, int(make.pending * scale))
        self._burst = max(100, int(make.burst * scale))
        self._clock = SystemClock()
        self._accepted_per_s = self._overhead_s = self._burst_s = 0.0
        self._works = 0
        self.versions: dict[str, str] = {}

    def play(self, *, with_kill: bool) -> dict[str, float]:
        """Return the figures of the round. Raises SchedulerError if a contestant fails."""
        with self._contestant("held") as contestant:
            self.versions = dict(contestant.versions())
            found = self._hold(contestant)
        with self._contestant("live") as contestant:
            lateness, steady_faults = self._steady(contestant)
            burst, burst_faults = self._burst_of(contestant)
            found |= lateness | burst | summed([steady_faults, burst_faults])
            if with_kill:
                found |= self._kill(contestant)
        return found

    def _contestant(self, name: str) -> Contestant:
        folder = self._place.folder / name
        folder.mkdir(mode=0o755)
        self._progress.phase("starting")
        return self._make(Workspace(folder, self._place.toolbox, self._place.stage, self._progress))

    def _hold(self, contestant: Contestant) -> dict[str, float]:
        memory, store = settled_bytes(contestant.pid), contestant.store_bytes()
        self._progress.phase("accepting what is to be pending", self._pending)
        begun = time.monotonic()
        seconds = contestant.submit(self._work(contestant, self._pending, self._clock.now() + _MONTH_MS))
        self._accepted_per_s = self._pending / seconds
        self._overhead_s = time.monotonic() - begun - seconds
        self._progress.phase("looking at its memory")
        return {
            "accepted_per_s": self._accepted_per_s,
            "scheduler_bytes_per_pending": (settled_bytes(contestant.pid) - memory) / self._pending,
            "store_bytes_per_pending": (contestant.store_bytes() - store) / self._pending,
        }

    def _steady(self, contestant: Contestant) -> tuple[dict[str, float], dict[str, float]]:
        work = self._accepted(contestant, RATE * SECONDS, RATE)
        self._progress.phase("steady", work.messages)
        count = self._settled(contestant, work, _DRAIN_S)
        return count.lateness(), count.faults()

    def _burst_of(self, contestant: Contestant) -> tuple[dict[str, float], dict[str, float]]:
        work = self._accepted(contestant, self._burst)
        self._progress.phase("burst", work.messages)
        count = self._settled(contestant, work, _DRAIN_S)
        self._burst_s = count.seconds
        return {"burst_per_s": count.came / count.seconds}, count.faults()

    def _kill(self, contestant: Contestant) -> dict[str, float]:
        work = self._accepted(contestant, self._burst)
        self._progress.phase("burst with SIGKILL", work.messages)
        before = len(contestant.arrivals.seen())
        time.sleep(max(0.0, (work.due - self._clock.now()) / 1_000 + self._burst_s / 2))
        contestant.kill()
        killed = self._clock.now()
        contestant.restart()
        after = sum(arrival.at <= killed for arrival in contestant.arrivals.seen()[before:])
        count = self._settled(contestant, work, contestant.patience_s)
        found = {"killed_after": after, **{f"killed_{name}": number for name, number in count.faults().items()}}
        if (left := contestant.left()) is not None:
            found["killed_left"] = left
        if count.came:
            found["killed_to_last_s"] = (count.last_at - killed) / 1_000
        return found

    def _work(self, contestant: Contestant, messages: int, due: int, rate: int | None = None) -> Workload:
        self._works += 1
        return Workload(
            messages=messages,
            payloads=Payloads(PAYLOAD_BYTES, self._works),
            target=contestant.target,
            due=DueTimes(due, rate),
            namespace=Namespace(prefix=f"work{self._works}"),
        )

    def _accepted(self, contestant: Contestant, messages: int, rate: int | None = None) -> Workload:
        """Submit work that is due as soon as all of it should be accepted. Repeat it with more time if that was too
        soon."""
        for attempt in range(_ATTEMPTS):
            lead_s = (_LEAD_S + _SPARE * (self._overhead_s + messages / self._accepted_per_s)) * 2**attempt
            work = self._work(contestant, messages, self._clock.now() + int(lead_s * 1_000), rate)
            self._progress.phase("accepting", messages)
            contestant.submit(work)
            if self._clock.now() < work.due:
                return work
            self._settled(contestant, work, _DRAIN_S)
        raise SchedulerError(f"{self._make.title} did not accept {messages} schedules within {lead_s:.0f} s")

    def _settled(self, contestant: Contestant, work: Workload, patience_s: float) -> Count:
        """Wait until everything has arrived and nothing is left, or nothing more arrives."""
        count, counted, moved_at = Count(work), 0, time.monotonic()
        while count.missing or contestant.left():
            time.sleep(0.25)
            arrivals = contestant.arrivals.seen()
            if (seen := len(arrivals)) > counted:
                count.add(arrivals[counted:seen])
                counted, moved_at = seen, time.monotonic()
                self._progress.done(count.came)
            elif self._clock.now() > work.due and time.monotonic() - moved_at > patience_s:
                break
        time.sleep(_AFTERWARDS_S)
        count.add(contestant.arrivals.seen()[counted:])
        return count
