"""The commands of a run and their times, drawn from a seed.

Most are plain one-shots, many of them due in bursts. Some schedules are changed again and again. Others are series,
wait for their completion, are large, or are invalid on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from .checker.records import PROMISE, Headers

ACK = "chaos-ack"
"""A header that tells the consumer how to complete a message; see `completions`."""

PLAIN, AHEAD, COMPLETED, NARROW, MISSING = "plain", "ahead", "completed", "narrow", "missing"
"""Target topics, without their prefix: for most schedules, for firings that may be staged ahead, for completed ones,
and for small records only. The last one does not exist."""

NARROW_BYTES = 4_000
FULL_SECOND_MS = 1_000
_QUIET_S = 2.0
"""Length of pauses with few commands, so that firings are staged ahead while nothing else is to be done. In the second
half of a run, one-shots are also due at full seconds, and series fire by cron."""

_STEP_S = 0.05
_TENANTS = ("default", "acme", "globex", "initech")
_POOL_BYTES = 1 << 21
_CHURNED = 400
_DRAIN_S = 8.0
"""This long before the end of a run, nothing is begun whose last firing comes later."""


class Command(NamedTuple):
    """A command, sent `at` seconds after the start of the run; due `soon` ms after it is sent, or at the next multiple
    of `grid_ms` after that."""

    at: float
    key: bytes
    value: bytes | None
    headers: Headers
    soon: int | None = None
    wants_answer: bool = True
    grid_ms: int = 1


@dataclass(frozen=True)
class Topics:
    """The topics of messages and answers, with names of the run's own."""

    prefix: str

    def target(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    @property
    def answers(self) -> str:
        return f"{self.prefix}-answers"


class Workload:
    """About `count` commands over some seconds; the same ones for the same seed.

    Most payloads have up to `payload_bytes` bytes; `partitions` are those of the targets.
    """

    def __init__(
        self, *, seed: int, seconds: float, messages: int, payload_bytes: int, partitions: int, topics: Topics
    ) -> None:
        self._random = random.Random(f"commands {seed}")  # nosec B311 # a draw that can be repeated
        self._seconds = seconds
        self._messages = messages
        self._payload_bytes = payload_bytes
        self._partitions = partitions
        self._topics = topics
        self._pool = self._random.randbytes(_POOL_BYTES)
        self._numbers = 0
        self._churned: list[str] = []
        self._bursts: list[float] = []
        self._kinds: dict[Callable[[float], Iterator[Command]], int] = {
            self._plain: 840,
            self._churn: 110,
            self._series: 20,
            self._acknowledged: 10,
            self._fixed_delay: 3,
            self._backoff: 7,
            self._poison: 8,
            self._large: 2,
        }

    def commands(self) -> Iterator[Command]:
        """Yield commands in the order of sending."""
        steps = [step * _STEP_S for step in range(int(self._seconds / _STEP_S))]
        shares = list(accumulate(0.02 if self._is_quiet(at) else 1.0 for at in steps))
        sent = 0
        for at, share in zip(steps, shares, strict=True):
            self._bursts = [burst for burst in self._bursts if burst > at + 0.5]
            while len(self._bursts) < 2:
                self._bursts.append(at + self._random.uniform(1.0, 6.0))
            while sent < int(self._messages * share / shares[-1]):
                for command in self._one(at):
                    yield command
                    sent += 1
        for id in sorted(set(self._churned)):  # no schedule stays paused
            yield self._on_churned(self._seconds, id, ("schedule-command", b"resume"))

    def _one(self, at: float) -> Iterator[Command]:
        (kind,) = self._random.choices(list(self._kinds), list(self._kinds.values()))
        return kind(at)

    # -- kinds --------------------------------------------------------------------------------------------------------

    def _plain(self, at: float) -> Iterator[Command]:
        draw = self._random.random()
        soon: int | None = None
        time: Headers = []
        is_ahead = self._is_ahead(at)
        if draw < 0.55:
            soon = round((self._random.choice(self._bursts) - at) * 1_000)
        elif draw < 0.8 or is_ahead:
            soon = self._random.randint(-200, 8_000)
        elif draw < 0.95:
            time = [("schedule-after", b"%d" % self._random.randint(0, 6_000))]
        id = self._new_id("p")
        key = id.encode() if self._random.random() < 0.8 else b"entity-%d" % self._random.randrange(50)
        target = AHEAD if is_ahead else PLAIN
        headers = [("schedule-id", id.encode()), *time, *self._to(target), *self._own_headers()]
        if self._random.random() < 0.1:
            headers.append(("schedule-target-partition", b"%d" % self._random.randrange(self._partitions)))
        if self._random.random() < 0.05:
            headers.append(("schedule-target-key", None if self._random.random() < 0.5 else b"other"))
        value = (
            None
            if self._random.random() < 0.02 and (time or soon is not None)
            else self._payload(0, self._payload_bytes)
        )
        wants_answer = self._random.random() < 0.1
        yield Command(at, key, value, headers, soon, wants_answer, grid_ms=FULL_SECOND_MS if is_ahead else 1)

    def _churn(self, at: float) -> Iterator[Command]:
        """Yield a command for an earlier schedule, or for a new one."""
        if len(self._churned) < _CHURNED or self._random.random() < 0.2:
            self._churned.append(self._new_id("c"))
            if len(self._churned) > 4 * _CHURNED:
                id = self._churned.pop(0)
                yield self._on_churned(at, id, ("schedule-command", b"resume"))
            yield self._defined(at, self._churned[-1])
            return
        id = self._random.choice(self._churned[-_CHURNED:])
        match self._random.choices(range(6), (45, 20, 8, 12, 6, 9))[0]:
            case 0:
                yield self._defined(at, id)
            case 1:
                if self._random.random() < 0.5:
                    yield self._on_churned(at, id, ("schedule-command", b"cancel"))
                else:
                    yield Command(at, id.encode(), None, [self._tenant_of(id)])
            case 2:
                yield self._on_churned(at, id, ("schedule-command", b"pause"))
            case 3:
                yield self._on_churned(at, id, ("schedule-command", b"resume"))
            case 4:
                yield self._on_churned(at, id, ("schedule-command", b"trigger"))
            case 5:
                soon = self._random.randint(100, 6_000)
                yield self._on_churned(at, id, ("schedule-command", b"reschedule"))._replace(soon=soon)

    def _defined(self, at: float, id: str) -> Command:
        conflict = self._random.choices((None, b"replace", b"keep", b"fail"), (80, 5, 8, 7))[0]
        is_ahead = self._is_ahead(at)
        headers = [self._tenant_of(id), *self._to(AHEAD if is_ahead else PLAIN), *self._own_headers()]
        if conflict is not None:
            headers.append(("schedule-on-conflict", conflict))
        soon = self._random.randint(50, 6_000)
        grid_ms = FULL_SECOND_MS if is_ahead else 1
        return Command(at, id.encode(), self._payload(0, 200), headers, soon, grid_ms=grid_ms)

    def _is_ahead(self, at: float) -> bool:
        return at >= self._seconds / 2

    def _time_left(self, at: float) -> float:
        return (self._seconds if self._is_ahead(at) else self._seconds / 2) - at

    def _is_quiet(self, at: float) -> bool:
        return self._is_ahead(at) and at // _QUIET_S % 2 == 1

    def _on_churned(self, at: float, id: str, *control: tuple[str, bytes]) -> Command:
        return Command(at, id.encode(), b"", [self._tenant_of(id), *control])

    def _series(self, at: float) -> Iterator[Command]:
        if self._time_left(at) < _DRAIN_S:
            return
        id = self._new_id("s")
        most = self._random.randint(2, 60)
        span = self._random.uniform(1.0, max(2.0, min(30.0, self._time_left(at))))
        headers: Headers = [("schedule-id", id.encode()), self._tenant_of(id)]
        if self._random.random() < 0.7 and not self._is_ahead(at):
            interval = max(20, round(span / most * 1_000))
            headers.append(("schedule-every", b"%d" % interval))
            if self._random.random() < 0.2:
                headers.append(("schedule-jitter", b"%d" % self._random.randint(1, interval - 1)))
        else:
            step = self._random.choice((1, 2, 3, 5))
            most = max(1, min(most, int(span / step)))
            dialect, expression = self._random.choice(
                (
                    ("unix", f"* * * * * */{step}"),
                    ("quartz", f"0/{step} * * * * ?"),
                    ("spring", f"*/{step} * * * * *"),
                )
            )
            if self._random.random() < 0.1 and self._seconds > 150:
                dialect, expression, most = "cron4j", "* * * * *", 1
            headers += [("schedule-cron", expression.encode()), ("schedule-cron-dialect", dialect.encode())]
        misfire, grace = self._random.choice(((b"all", 30_000), (b"coalesce", 30_000), (b"coalesce", 1_000)))
        headers += [
            ("schedule-max-firings", b"%d" % most),
            ("schedule-misfire", misfire),
            ("schedule-misfire-grace", b"%d" % grace),
            *self._to(AHEAD if self._is_ahead(at) else PLAIN),
            *self._own_headers(),
        ]
        size = 3_000 if self._random.random() < 0.3 else 200  # the larger ones are split in the table
        yield Command(at, id.encode(), self._payload(0, size), headers)
        if self._random.random() < 0.15:
            yield Command(at, id.encode(), b"", [self._tenant_of(id), ("schedule-command", b"cancel")])

    def _acknowledged(self, at: float) -> Iterator[Command]:
        if self._time_left(at) < _DRAIN_S:
            return
        headers: Headers = [
            ("schedule-ack-timeout", b"%d" % self._random.randint(500, 3_000)),
            ("schedule-max-attempts", b"%d" % self._random.randint(1, 4)),
            (ACK, self._random.choice((b"success", b"failure", b"ignore", b"second", b"twice"))),
        ]
        id = self._new_id("a")
        soon = self._random.randint(0, 4_000)
        yield Command(at, id.encode(), self._payload(0, 100), [*headers, *self._to(COMPLETED)], soon)

    def _fixed_delay(self, at: float) -> Iterator[Command]:
        if self._time_left(at) < _DRAIN_S:
            return
        headers: Headers = [
            ("schedule-every", b"%d" % self._random.randint(100, 1_000)),
            ("schedule-mode", b"fixed-delay"),
            ("schedule-max-firings", b"%d" % self._random.randint(2, 8)),
            ("schedule-ack-timeout", b"%d" % self._random.randint(500, 2_000)),
            (ACK, self._random.choice((b"success", b"failure", b"ignore", b"twice"))),
        ]
        yield Command(at, self._new_id("d").encode(), self._payload(0, 100), [*headers, *self._to(COMPLETED)])

    def _backoff(self, at: float) -> Iterator[Command]:
        if self._time_left(at) < _DRAIN_S:
            return
        steps = [self._random.randint(50, 500) << attempt for attempt in range(self._random.randint(2, 5))]
        headers: Headers = [
            ("schedule-backoff", ",".join(map(str, steps)).encode()),
            (ACK, self._random.choice((b"success", b"failure", b"ignore", b"second"))),
        ]
        yield Command(at, self._new_id("b").encode(), self._payload(0, 100), [*headers, *self._to(COMPLETED)])

    def _poison(self, at: float) -> Iterator[Command]:
        id = self._new_id("x").encode()
        rejected: Headers = [(PROMISE, b"rejected")]
        refused: Headers = [(PROMISE, b"refused")]
        narrow, missing = self._to(NARROW), self._to(MISSING)
        large = self._payload(NARROW_BYTES + 1_000, NARROW_BYTES + 2_000)
        after = ("schedule-after", b"%d" % self._random.randint(0, 3_000))
        yield self._random.choice(
            (
                Command(at, id, b"x", [*rejected, ("schedule-att", b"1"), *self._to(PLAIN)]),
                Command(at, id, b"x", [*rejected, ("schedule-at", b"tomorrow"), *self._to(PLAIN)]),
                Command(at, id, b"x", [*rejected, ("schedule-cron", b"61 * * * *"), *self._to(PLAIN)]),
                Command(at, id, b"x", [*rejected, ("schedule-id", b"\xff\xfe"), *self._to(PLAIN)]),
                Command(at, id, b"x", [*rejected, after]),
                Command(at, id, large, [*refused, after, *narrow]),
                Command(at, id, b"x", [*refused, after, *missing]),
                Command(at, id, b"x", [*refused, after, *self._to(PLAIN), ("schedule-target-partition", b"999999")]),
            )
        )

    def _large(self, at: float) -> Iterator[Command]:
        id = self._new_id("l").encode()
        yield Command(at, id, self._payload(100_000, 700_000), self._to(PLAIN), self._random.randint(0, 5_000))

    # -- parts --------------------------------------------------------------------------------------------------------

    def _new_id(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}-{self._numbers}"

    def _to(self, target: str) -> Headers:
        return [("schedule-target-topic", self._topics.target(target).encode())]

    def _tenant_of(self, id: str) -> tuple[str, bytes]:
        return "schedule-tenant", _TENANTS[int(id.rpartition("-")[2]) % len(_TENANTS)].encode()

    def _own_headers(self) -> Headers:
        if self._random.random() < 0.7:
            return []
        return [("trace-id", self._payload(8, 8)), ("empty", None), ("trace-id", b"\xff\x00")]

    def _payload(self, least: int, most: int) -> bytes:
        size = self._random.randint(least, most)
        start = self._random.randrange(_POOL_BYTES - size)
        return self._pool[start : start + size]
