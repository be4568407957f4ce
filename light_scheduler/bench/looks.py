"""Progress and cost of a worker, seen from outside: its /info, its processor time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.errors import SchedulerError
from light_scheduler.model import Outcome
from light_scheduler.web.worker_documents import InfoDocument
from light_scheduler.worker_page import page_of_worker

from .footprint import cpu_seconds
from .progress import Progress

INTERVAL_S = 0.1
"""Interval between looks. An answer costs the worker about a millisecond; the end of a span is accurate to one
interval."""

PATIENCE_S = 60.0
"""How long a worker may make no progress before it counts as finished."""

_ANSWER_S = 10.0
_decode = msgspec.json.Decoder(InfoDocument).decode


@dataclass(frozen=True)
class Look:
    """The state of a worker, over all of its lanes, at `at` (monotonic s). `cpu_s` is None where it cannot be read."""

    at: float
    cpu_s: float | None
    accepted: int
    carried_out: int
    pending: int
    firings: int
    restored: int = 0


Counted = Callable[[Look], int]
"""Returns the number of the counted events in a look."""


@dataclass(frozen=True)
class Span:
    """Number of events, how long a worker took for them (s), and its processor time for them (None: not known)."""

    events: int
    seconds: float
    cpu_s: float | None

    @property
    def per_s(self) -> float:
        return self.events / self.seconds

    @property
    def cpu_us_per_event(self) -> float | None:
        return None if self.cpu_s is None else self.cpu_s * 1e6 / self.events


def info_of(worker: WorkerProcess) -> InfoDocument | None:
    """Request a worker's /info; None if it does not answer (yet)."""
    page = page_of_worker(worker.settings, "/info", timeout=_ANSWER_S)
    return None if page is None else _decode(page)


def look(worker: WorkerProcess) -> Look | None:
    """Look at a worker once; None if it does not answer (yet)."""
    info = info_of(worker)
    if info is None or worker.pid is None:
        return None
    return Look(
        at=time.monotonic(),
        cpu_s=cpu_seconds(worker.pid),
        accepted=sum(lane.outcomes.get(Outcome.SCHEDULED, 0) for lane in info.lanes),
        carried_out=sum(sum(lane.outcomes.values()) for lane in info.lanes),
        pending=sum(lane.pending for lane in info.lanes),
        firings=sum(lane.firings for lane in info.lanes),
        restored=sum(lane.restore.records for lane in info.lanes if lane.restore is not None),
    )


def follow(worker: WorkerProcess, counted: Counted, goal: int, progress: Progress) -> list[Look]:
    """Look at a worker until it has done `goal` events, or makes no progress for a minute. Return every look.

    Raises SchedulerError, with the end of its log, if the worker ends or never answers.
    """
    looks: list[Look] = []
    moved_at = time.monotonic()
    while True:
        if (return_code := worker.return_code) is not None:
            raise SchedulerError(f"the worker ended with exit code {return_code}. {worker.log_end()}")
        if (seen := look(worker)) is not None:
            if not looks or counted(seen) > counted(looks[-1]):
                moved_at = seen.at
            looks.append(seen)
            progress.done(counted(seen))
            if counted(seen) >= goal:
                return looks
        if time.monotonic() - moved_at > PATIENCE_S:
            if looks:
                return looks
            raise SchedulerError(f"the worker does not answer within {PATIENCE_S:g} s. {worker.log_end()}")
        time.sleep(INTERVAL_S)


def span_of(looks: Sequence[Look], counted: Counted, option: str = "--messages") -> Span:
    """Return the span between the first look with an event and the first look with all of them.

    Events in the first look are not counted, so it does not matter when they happened. If a single look showed all
    events, the span begins at the look before it. Raises SchedulerError if no event was seen to happen. The error names
    the `option` that sets the number of events.
    """
    last = next(index for index, seen in enumerate(looks) if counted(seen) == counted(looks[-1]))
    first = next((index for index, seen in enumerate(looks) if counted(seen) > 0), last)
    begin, end = looks[first if first < last else max(0, last - 1)], looks[last]
    events = counted(end) - counted(begin)
    if events == 0:
        raise SchedulerError(
            f"the worker was not seen at work: it did nothing, or all before the first look; use more {option}"
        )
    cpu_s = None if begin.cpu_s is None or end.cpu_s is None else end.cpu_s - begin.cpu_s
    return Span(events, end.at - begin.at, cpu_s)
