"""Counts the firings of pending schedules in each minute, without iterating over all firings.

`expand` asks the engine, firing by firing. If only the time rule matters, `Expansion` counts:

- A fixed rate of I ms: with L = lcm(I, a minute), every (L / I)-th firing is in every (L / minute)-th minute. So a
  series is a few sequences with a step of whole minutes. Only the begin and end of each sequence are stored, and the
  sequences of all series with the same step are summed up at once.
- A cron expression: its times are listed once. A series is a part of that list, stored as begin and end.

Everything else (jitter, windows, fixed delays, backoff, triggered, queued or moved firings) uses `expand`.

Missed firings follow the rules of the engine: the misfire policy of their series, and their time to live.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import islice, takewhile
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from light_scheduler.engine import deliveries
from light_scheduler.engine.recurrence import next_of
from light_scheduler.model import LATEST_INSTANT, NO_BOUNDS, Cron, Entry, FixedRate, Once

from .cron_times import times_between
from .overdue import caught_up, wanted_from

MOST_FIRINGS = 100_000
"""Maximum number of counted firings of a schedule. Fixed rates that are counted by arithmetic have no limit."""

MINUTE_MS = 60_000
_DENSE = 4
"""Sequences with more than one firing in this many minutes are summed up over all minutes."""

Array = np.ndarray[Any, np.dtype[np.int64]]


class Firings(NamedTuple):
    """Numbers of firings of a tenant that are due for a topic, by minute. A minute is given by its start (UTC epoch
    ms)."""

    tenant: str
    topic: str
    minutes: Array
    numbers: Array


def expand(entry: Entry, start: int, end: int) -> list[int]:
    """Return the times of a schedule's deliveries before `end`, at most MOST_FIRINGS. Overdue firings are delivered at
    `start`."""
    entry = caught_up(entry, start)
    progress = entry.progress
    wanted_since = wanted_from(entry, start)
    asked = [*progress.triggered]
    if progress.paused:
        return [start for due in asked if due >= wanted_since]
    if progress.queued is not None:
        asked.append(progress.queued)
    planned = takewhile(lambda each: each[1] < end, deliveries(entry, start))
    times = islice((at for due, at in planned if due >= wanted_since), MOST_FIRINGS)
    return [*(max(start, due) for due in asked if due >= wanted_since), *times]


class Expansion:
    """Counts the firings of schedules from `start` to `end` (UTC epoch ms; both at the start of a minute).

    `cut` is the number of schedules of which only the first firings are counted.
    """

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        self._minutes = -(-(end - start) // MINUTE_MS)
        self._single: Counter[tuple[str, str, int]] = Counter()
        self._rates: defaultdict[tuple[str, str, int], list[tuple[int, int]]] = defaultdict(list)
        self._crons: defaultdict[tuple[str, str, Cron], list[tuple[int, int]]] = defaultdict(list)
        self._times = cache(self._listed)
        self.cut = 0

    def add(self, entry: Entry) -> None:
        """Count a schedule's firings."""
        entry = caught_up(entry, self._start)
        schedule, progress = entry.schedule, entry.progress
        trigger, bounds = schedule.trigger, schedule.bounds or NO_BOUNDS
        whose = schedule.tenant, schedule.target.topic
        moves = progress.triggered or progress.paused or progress.queued is not None or progress.planned is not None
        moves = moves or progress.due < wanted_from(entry, self._start)
        if moves or bounds.jitter or bounds.window or not isinstance(trigger, Once | FixedRate | Cron):
            firings = expand(entry, self._start, self._end)
            self.cut += len(firings) >= MOST_FIRINGS
            self._single.update((*whose, self._minute(at)) for at in firings)
            return
        if progress.due >= self._end:
            return
        self._single[*whose, self._minute(progress.due)] += 1
        # The firing at `due` is one of them.
        left = None if bounds.max_firings is None else max(0, bounds.max_firings - progress.sequence)
        until = min(self._end - 1, LATEST_INSTANT if bounds.end is None else bounds.end)
        if isinstance(trigger, FixedRate):
            self._add_rate(whose, trigger, progress.due, until, left)
        elif isinstance(trigger, Cron):
            most = MOST_FIRINGS - 1 if left is None else min(left, MOST_FIRINGS - 1)
            self.cut += self._add_cron(whose, trigger, progress.due, until, most) + 1 >= MOST_FIRINGS

    def _add_rate(self, whose: tuple[str, str], trigger: FixedRate, due: int, until: int, most: int | None) -> None:
        """Count the firings after `due`, at most `most`."""
        interval = trigger.interval
        first = next_of(trigger, due)
        assert first is not None
        number = max(0, (until - first) // interval + 1)
        number = number if most is None else min(most, number)
        overdue = min(number, max(0, -(-(self._start - first) // interval)))
        if overdue:
            self._single[*whose, self._start] += overdue
        if number > overdue:
            self._rates[*whose, interval].append((first + overdue * interval, number - overdue))

    def _add_cron(self, whose: tuple[str, str], trigger: Cron, due: int, until: int, most: int) -> int:
        overdue = times_between(trigger, due, min(until + 1, self._start), most)
        if overdue:
            self._single[*whose, self._start] += overdue
        times = self._times(trigger)
        begin = bisect_right(times, due)
        number = max(0, min(most - overdue, bisect_right(times, until) - begin))
        if number:
            self._crons[*whose, trigger].append((begin, begin + number))
        return overdue + number

    def firings(self) -> Iterator[Firings]:
        """Yield the counts. A minute may be split over several parts."""
        by_owner: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for (tenant, topic, minute), number in self._single.items():
            by_owner[tenant, topic].append((minute, number))
        for whose, pairs in by_owner.items():
            counted = np.array(pairs, np.int64)
            yield Firings(*whose, counted[:, 0], counted[:, 1])
        for (tenant, topic, interval), series in self._rates.items():
            firsts, numbers = np.array(series, np.int64).T
            counts = self._of_rate(interval, firsts, numbers)
            yield _nonzero(tenant, topic, self._start + np.arange(self._minutes) * MINUTE_MS, counts)
        for (tenant, topic, trigger), parts in self._crons.items():
            begins, ends = np.array(parts, np.int64).T
            minutes = np.array(self._times(trigger), np.int64) // MINUTE_MS * MINUTE_MS
            numbers = _running(begins, ends, 1, len(minutes))
            heads = np.flatnonzero(np.diff(minutes, prepend=-1))
            yield _nonzero(tenant, topic, minutes[heads], np.add.reduceat(numbers, heads))

    def _of_rate(self, interval: int, firsts: Array, numbers: Array) -> Array:
        """Return the number of firings per minute of all series with the same interval."""
        whole = lcm(interval, MINUTE_MS)
        sequences, step = whole // interval, whole // MINUTE_MS
        if numbers.sum() * _DENSE < self._minutes * sequences or step > self._minutes:
            counts = np.zeros(self._minutes, np.int64)
            edges = self._start + np.arange(self._minutes + 1) * MINUTE_MS
            for first, number in zip(firsts, numbers, strict=True):
                if number > self._minutes:
                    counts += np.diff(np.clip(-(-(edges - first) // interval), 0, number))
                else:
                    np.add.at(counts, (first + interval * np.arange(number) - self._start) // MINUTE_MS, 1)
            return counts
        counts = np.zeros(self._minutes, np.int64)
        for number in range(sequences):
            begins = (firsts + number * interval - self._start) // MINUTE_MS
            lengths = np.maximum(0, -(-(numbers - number) // sequences))
            has_any = lengths > 0
            begins, lengths = begins[has_any], lengths[has_any]
            counts += _running(begins, begins + lengths * step, step, self._minutes)
        return counts

    def _minute(self, due: int) -> int:
        return max(self._start, due) // MINUTE_MS * MINUTE_MS

    def _listed(self, trigger: Cron) -> list[int]:
        """Return the times of a cron expression from `start` on."""
        return list(takewhile(lambda at: at < self._end, _after(trigger, self._start - 1)))


def _after(trigger: Cron, after: int) -> Iterator[int]:
    while (following := next_of(trigger, after)) is not None:
        yield following
        after = following


def _nonzero(tenant: str, topic: str, minutes: Array, counts: Array) -> Firings:
    has_any = counts > 0
    return Firings(tenant, topic, minutes[has_any], counts[has_any])


def _running(begins: Array, ends: Array, step: int, size: int) -> Array:
    """Return how many sequences have an element at each index. A sequence is `begin`, `begin + step`, ... before
    `end`."""
    padded = -(-size // step) * step
    changes = np.bincount(begins, minlength=padded)[:padded].astype(np.int64)
    changes -= np.bincount(ends[ends < padded], minlength=padded)
    return changes.reshape(-1, step).cumsum(axis=0).ravel()[:size]
