"""The commands of a round: distinct keys, two user headers, payloads that do not compress."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from light_scheduler.model import Headers

from .dialects import WRITERS, Write, Written

_POOL_BYTES = 1 << 20
_STRIDE = 7_919  # a prime: payloads begin anywhere in the pool
_DIGITS = 9


class WorkloadCommand(NamedTuple):
    """A command record as its sender writes it."""

    key: bytes
    value: bytes
    headers: Headers


class Payloads:
    """Payloads of one size, numbered from 0. Number n is always the same for a seed."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._pool = random.Random(seed).randbytes(_POOL_BYTES + size)  # nosec B311 # no secret

    def of(self, number: int) -> bytes:
        """Return the payload with a number."""
        start = number * _STRIDE % _POOL_BYTES
        return self._pool[start : start + self._size]


class DueTimes(NamedTuple):
    """Due times of schedules: all at `first` (UTC epoch ms), or `rate` per second, at multiples of `grid_ms` after
    it."""

    first: int
    rate: int | None = None
    grid_ms: int = 1

    def of(self, number: int) -> int:
        """Return when a schedule is due."""
        if self.rate is None:
            return self.first
        return self.first + number * 1_000 // self.rate // self.grid_ms * self.grid_ms


class Namespace(NamedTuple):
    """The tenant of schedules, if not the default one, and the prefix of their keys, which distinguishes workloads."""

    tenant: str | None = None
    prefix: str = "bench"


BENCH = Namespace()


class Workload:
    """The schedules of a round, numbered from 0.

    `target` is the topic to deliver to, and `write` makes the command records.
    """

    def __init__(
        self,
        *,
        messages: int,
        payloads: Payloads,
        target: str,
        due: DueTimes,
        namespace: Namespace = BENCH,
        write: Write = WRITERS["native"],
    ) -> None:
        self._write = write
        self.messages = messages
        self._due = due
        self._payloads = payloads
        self._target = target
        self._prefix = namespace.prefix.encode() + b"-"
        tenant = namespace.tenant
        self._whose: Headers = [] if tenant is None else [("schedule-tenant", tenant.encode())]

    @property
    def due(self) -> int:
        """When the first schedule is due (UTC epoch ms)."""
        return self._due.first

    def commands(self, first: int = 0, count: int | None = None) -> Iterator[WorkloadCommand]:
        """Yield `count` commands from number `first` on; default: all."""
        for number in range(first, self.messages if count is None else first + count):
            key = b"%b%0*d" % (self._prefix, _DIGITS, number)
            user: Headers = [("content-type", b"application/octet-stream"), ("trace-id", b"%016x" % number)]
            yield WorkloadCommand(*self.written(number, key, [*self._whose, *user]))

    def written(self, number: int, key: bytes, headers: Headers) -> Written:
        """Return the record of a command."""
        return self._write(key, self.payload(number), headers, self._target, self.due_of(number))

    def due_of(self, number: int) -> int:
        """Return when a schedule is due."""
        return self._due.of(number)

    def payload(self, number: int) -> bytes:
        """Return the payload of a schedule."""
        return self._payloads.of(number)

    def number_of(self, key: bytes | None) -> int | None:
        """Return the number of the schedule with a key; None if there is none."""
        digits = (key or b"").removeprefix(self._prefix)
        if len(digits) != _DIGITS or not digits.isdigit() or int(digits) >= self.messages:
            return None
        return int(digits)


class MinutelyWorkload(Workload):
    """Schedules that all fire at each full minute, by cron."""

    def written(self, number: int, key: bytes, headers: Headers) -> Written:
        key, value, (_at, *others) = super().written(number, key, headers)
        return key, value, [("schedule-cron", b"* * * * *"), *others]
