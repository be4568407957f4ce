"""The commands of a round: distinct keys, two headers of the user's, payloads that do not compress."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from light_scheduler.model import Headers

_POOL_BYTES = 1 << 20
_STRIDE = 7_919  # a prime: payloads begin all over the pool
_DIGITS = 9


class WorkloadCommand(NamedTuple):
    """A command record as a sender writes it."""

    key: bytes
    value: bytes
    headers: Headers


class Workload:
    """The schedules of a round, numbered from 0; number n is always the same for a seed.

    `target` is the topic to deliver to, `due` the one instant (UTC epoch ms) of all of them.
    """

    def __init__(self, *, messages: int, payload_bytes: int, seed: int, target: str, due: int) -> None:
        self.messages = messages
        self.due = due
        self._payload_bytes = payload_bytes
        self._pool = random.Random(seed).randbytes(_POOL_BYTES + payload_bytes)
        self._control: Headers = [("schedule-at", b"%d" % due), ("schedule-target-topic", target.encode())]

    def commands(self, first: int = 0, count: int | None = None) -> Iterator[WorkloadCommand]:
        """Yield `count` commands from number `first` on; default: all."""
        for number in range(first, self.messages if count is None else first + count):
            yield WorkloadCommand(
                b"bench-%0*d" % (_DIGITS, number),
                self.payload(number),
                [*self._control, ("content-type", b"application/octet-stream"), ("trace-id", b"%016x" % number)],
            )

    def payload(self, number: int) -> bytes:
        """Return the payload of a schedule."""
        start = number * _STRIDE % _POOL_BYTES
        return self._pool[start : start + self._payload_bytes]

    def number_of(self, key: bytes | None) -> int | None:
        """Return the number of the schedule that has a key; None if none has."""
        digits = (key or b"").removeprefix(b"bench-")
        if len(digits) != _DIGITS or not digits.isdigit() or int(digits) >= self.messages:
            return None
        return int(digits)
