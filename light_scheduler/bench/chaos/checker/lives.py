"""The promise of each accepted schedule command, and whether the deliveries keep it.

A life begins with a command that defines a schedule or changes its time. It ends when the schedule is replaced,
cancelled, or has no firing left. Times are UTC epoch ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from .records import Answer, RecordId

DEFAULT_GRACE = 30_000
DEFAULT_ACK_TIMEOUT = 300_000


class Arrival(NamedTuple):
    """A message of a life; `at` is when the broker received it."""

    due: int
    fired_at: int
    at: int
    sequence: int
    attempt: int
    version: int


class Completion(NamedTuple):
    """A `complete` command with the answer `completed`."""

    due: int
    attempt: int
    succeeded: bool
    recorded_at: int


End = Literal["open", "replaced", "cancelled", "done"]
"""`open` until the log shows an end. When no work is left, open lives become `done`."""

Trouble = tuple[str, str]
"""(kind of fault, description)."""


@dataclass(slots=True)
class Life:
    """One definition of a schedule.

    `grid` defines the times of a series: (anchor, interval). `steps` are the intervals of a backoff series, or the
    delay of a fixed-delay one. `quiet` are spans in which it was paused, `triggers` are the times when it was asked to
    fire at once. `gone_at` is when an answer showed that it had no firing left. `former` is the life before it was
    rescheduled.
    """

    place: RecordId
    tenant: str
    id: str
    form: Literal["once", "grid", "delay", "backoff"]
    contents: bytes
    partition: int
    version: int | None
    due: int = 0
    grid: tuple[int, int] = (0, 0)
    steps: tuple[int, ...] = ()
    most: int | None = None
    jitter: int = 0
    misfire: str = "coalesce"
    grace: int = DEFAULT_GRACE
    ack_timeout: int | None = None
    max_attempts: int = 10
    refused: bool = False
    end: End = "open"
    ended_at: int = 0
    gone_at: int | None = None
    triggers: tuple[int, ...] = ()
    quiet: list[tuple[int, int | None]] | None = None
    completions: list[Completion] | None = None
    deliveries: list[Arrival] = field(default_factory=list)
    former: Life | None = None

    @property
    def name(self) -> str:
        return f"{self.tenant}/{self.id} of command {self.place[0]}:{self.place[1]}"

    def finish(self, end: End, answer: Answer | None) -> None:
        """End the life, at the time of the answer that ended it."""
        self.end = end
        self.ended_at = 0 if answer is None else answer.at

    def rescheduled(self, due: int, answer: Answer) -> Life:
        """End the life. Return its successor: the same schedule with another time and the next version."""
        self.finish("replaced", answer)
        return replace(
            self, version=answer.version, due=due, triggers=(), end="open", ended_at=0, deliveries=[], former=self
        )

    def of_version(self, version: int) -> Life:
        """Return the life, this one or a former one, that delivered as a version."""
        life = self
        while life.former is not None and life.version is not None and version < life.version:
            life = life.former
        return life

    def troubles(self) -> Iterator[Trouble]:
        """Yield the broken promises of this life and of its former ones."""
        if self.former is not None:
            yield from self.former.troubles()
        yield from self._early()
        if self.refused:
            if self.deliveries:
                yield "wrong", "was delivered although its target cannot take it"
            return
        yield from self._after_end()
        yield from self._while_paused()
        yield from _FORMS[self.form](self)

    def _early(self) -> Iterator[Trouble]:
        for delivery in self.deliveries:
            if delivery.fired_at < delivery.due:
                yield "early", f"due {delivery.due}, fired at {delivery.fired_at}"

    def _after_end(self) -> Iterator[Trouble]:
        if self.end in ("cancelled", "replaced"):
            late = [each for each in self.deliveries if each.at > self.ended_at]
            # It cannot be cancelled once it has delivered everything.
            if self.form == "once" and self.ack_timeout is None:
                late = self.deliveries
            for each in late:
                kind = "after_cancel" if self.end == "cancelled" else "wrong"
                yield kind, f"{self.end} at {self.ended_at}, delivered at {each.at} all the same"
        if self.gone_at is not None:
            for each in self.deliveries:
                if each.at > self.gone_at:
                    yield "wrong", f"said to be gone at {self.gone_at}, delivered at {each.at}"

    def _while_paused(self) -> Iterator[Trouble]:
        for begun, ended in self.quiet or ():
            for each in self.deliveries:
                triggered = bool(self.triggers) and each.due >= self.triggers[0]
                if each.at > begun and (ended is None or each.at < ended) and not triggered:
                    yield "wrong", f"delivered at {each.at}, while paused since {begun}"

    def given_up(self) -> Iterator[int]:
        """Yield the due times of runs of a fixed-delay series that were not completed, but were followed by others."""
        if self.form == "delay":
            for each, _ in pairwise(sorted(self.deliveries, key=_sequence)):
                if self.completed(each.due, 1) is None:
                    yield each.due

    def completed(self, due: int, attempt: int | None = None) -> Completion | None:
        """Return the completion that ends a firing: of one attempt, or a successful one of any attempt."""
        for each in self.completions or ():
            if each.due == due and (each.attempt == attempt if attempt is not None else each.succeeded):
                return each
        return None


def _once(life: Life) -> Iterator[Trouble]:
    deliveries = life.deliveries
    if life.ack_timeout is not None:
        yield from _acknowledged(life)
        return
    if life.end == "done" and not deliveries:
        yield "missing", f"due {life.due}, triggered {len(life.triggers)} times, never delivered"
    for extra in deliveries[1:]:
        yield "duplicate", f"delivered {len(deliveries)} times, again at {extra.at}"
    for each in deliveries[:1]:
        if life.triggers:
            if not life.triggers[0] <= each.due <= each.fired_at:
                yield "wrong", f"triggered at {life.triggers}, due {each.due}"
        elif each.due != life.due:
            yield "wrong", f"due {each.due} instead of {life.due}"
        if each.sequence != 1 or each.attempt != 1:
            yield "wrong", f"sequence {each.sequence}, attempt {each.attempt}"
        yield from _version(life, each)


def _version(life: Life, each: Arrival) -> Iterator[Trouble]:
    if life.version is not None and each.version != life.version:
        yield "wrong", f"version {each.version} instead of {life.version}"


def _acknowledged(life: Life) -> Iterator[Trouble]:
    """Attempts are delivered until one is completed or none is left."""
    assert life.ack_timeout is not None
    deliveries = life.deliveries
    yield from _counted_up(deliveries, "attempt")
    for before, each in pairwise(deliveries):
        failed = life.completed(each.due, before.attempt)
        if failed is not None and failed.succeeded:
            yield "wrong", f"attempt {each.attempt} came although {before.attempt} was completed"
        elif failed is None and each.fired_at < before.fired_at + life.ack_timeout:
            yield "early", f"attempt {each.attempt} at {each.fired_at}, {before.attempt} at {before.fired_at}"
    for each in deliveries:
        if each.due != life.due or each.sequence != 1:
            yield "wrong", f"due {each.due}, sequence {each.sequence}"
        yield from _version(life, each)
    if life.end == "done":
        attempts = len({each.attempt for each in deliveries})
        if life.completed(life.due) is None and attempts < life.max_attempts:
            yield "missing", f"{attempts} of {life.max_attempts} attempts, none completed"


def _grid(life: Life) -> Iterator[Trouble]:
    """A fixed rate or a cron expression: times on a grid, each at most once, skipped only as the policy allows."""
    anchor, interval = life.grid
    deliveries = life.deliveries
    yield from _counted_up(deliveries, "sequence")
    at = life.due - interval  # the time on the grid before the first
    for each in sorted(deliveries, key=_sequence):
        planned = each.due - (each.due - anchor) % interval
        if each.due - planned > life.jitter:
            yield "wrong", f"due {each.due} is no time of its own"
        elif planned <= at:
            yield "duplicate", f"due {each.due} comes after {at}"
        elif planned > at + interval:
            last = at + interval if life.misfire == "all" else planned - interval
            if life.misfire == "all" or each.fired_at - last <= life.grace:
                yield "missing", f"due {last}, left out before {each.due}, fired at {each.fired_at}"
        at = planned
        yield from _version(life, each)
    if life.end == "done":
        yield from _all_of(life, life.most or 0)


def _delay(life: Life) -> Iterator[Trouble]:
    """Fixed delay: each firing is due a delay after the previous one was completed or counted as failed."""
    delay = life.steps[0]
    timeout = DEFAULT_ACK_TIMEOUT if life.ack_timeout is None else life.ack_timeout
    yield from _counted_up(life.deliveries, "sequence")
    before: Arrival | None = None
    for each in sorted(life.deliveries, key=_sequence):
        if before is None:
            due = life.due
        elif (done := life.completed(before.due, 1)) is not None:
            due = max(before.fired_at, done.recorded_at) + delay
        else:
            due = before.fired_at + timeout + delay
        if each.due != due and (before is None or each.sequence == before.sequence + 1):
            yield "wrong", f"due {each.due} instead of {due}"
        before = each
        yield from _version(life, each)
    if life.end == "done":
        yield from _all_of(life, life.most or 0)


def _backoff(life: Life) -> Iterator[Trouble]:
    """Attempts at given intervals, until one is completed. Missed time is added."""
    yield from _counted_up(life.deliveries, "attempt")
    before: Arrival | None = None
    for each in sorted(life.deliveries, key=_attempt):
        if each.attempt > len(life.steps):
            yield "wrong", f"attempt {each.attempt} of {len(life.steps)}"
            continue
        if before is None:
            begun = life.due - life.steps[0]
        else:
            begun = before.fired_at if before.fired_at - before.due > life.grace else before.due
            if (done := life.completed(before.due, before.attempt)) is not None and done.succeeded:
                yield "wrong", f"attempt {each.attempt} came although {before.attempt} was completed"
        if each.due != begun + life.steps[each.attempt - 1] and (before is None or each.attempt == before.attempt + 1):
            yield "wrong", f"attempt {each.attempt} due {each.due} instead of {begun + life.steps[each.attempt - 1]}"
        before = each
        yield from _version(life, each)
    if life.end == "done" and not any(each.succeeded for each in life.completions or ()):
        yield from _all_of(life, len(life.steps))


def _counted_up(deliveries: list[Arrival], what: Literal["sequence", "attempt"]) -> Iterator[Trouble]:
    """Numbers from 1 without a gap, each once, in log order."""
    numbers = [getattr(each, what) for each in deliveries]
    seen = set(numbers)
    for number, times in Counter(numbers).items():
        if times > 1:
            yield "duplicate", f"{what} {number} was delivered {times} times"
    if gaps := set(range(1, max(seen, default=0) + 1)) - seen:
        yield "missing", f"{what} {sorted(gaps)[:5]} of {max(seen)}"
    if any(later < earlier for earlier, later in pairwise(numbers)):
        yield "out_of_order", f"{what} {numbers[:20]}"


def _all_of(life: Life, most: int) -> Iterator[Trouble]:
    last = max((each.sequence for each in life.deliveries), default=0)
    if last < most:
        yield "missing", f"{last} of {most} were delivered"
    elif last > most:
        yield "wrong", f"{last} of {most} were delivered"


def _sequence(delivery: Arrival) -> int:
    return delivery.sequence


def _attempt(delivery: Arrival) -> int:
    return delivery.attempt


_FORMS: dict[str, Callable[[Life], Iterator[Trouble]]] = {
    "once": _once,
    "grid": _grid,
    "delay": _delay,
    "backoff": _backoff,
}
