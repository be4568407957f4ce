"""A schedule, how far it has come, and the two together as the table keeps them.

Definition and progress are values of their own: a series with a large payload moves on without rewriting it.
Fields are only ever appended, with a default, and with a new format version: the state record is these structs as
arrays (see `wire.state`). A field that is not known is refused; it would be lost when the record is written again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

import msgspec

from .trigger import NEVER, Trigger

Headers = list[tuple[str, bytes | None]]
"""Kafka record headers, in order; names may repeat."""

DEFAULT_TENANT = "default"
DEFAULT_PRIORITY = 100
"""Of 0 (first) to 255 (last) among firings due in the same instant."""


class Target(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Where a firing goes. A null key stays null.

    The partition is `partition` if given, else Kafka's murmur2 of `partition_key`, else of `key`, else of the
    schedule's id.
    """

    topic: str
    key: bytes | None = None
    partition: int | None = None
    partition_key: bytes | None = None


State = Literal["pending", "paused", "awaiting"]
"""`pending`: a firing is to come. `paused`: not before it is resumed. `awaiting`: a firing is not completed."""

Misfire = Literal["coalesce", "skip", "all"]
Overlap = Literal["allow", "skip", "queue"]


class Bounds(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Limits and spread of a schedule's firings. Instants are UTC epoch ms, durations ms.

    Firings are planned from `start` to `end`, at most `max_firings` of them. A firing is due up to `jitter` later than
    planned, and may be delivered up to `window` later than due. A firing that is later than `misfire_grace` is a
    misfire, and `misfire` is the policy for it.
    """

    start: int | None = None
    end: int | None = None
    max_firings: int | None = None
    jitter: int = 0
    window: int = 0
    misfire: Misfire = "coalesce"
    misfire_grace: int = 30_000


NO_BOUNDS = Bounds()


class Acknowledgement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Firings have to be completed: otherwise each is delivered again after `timeout` ms, `max_attempts` times in all.

    `overlap` is the policy for a series' next firing while an earlier one is not completed.
    """

    timeout: int
    max_attempts: int
    overlap: Overlap = "allow"


class HomeKey(IntEnum):
    """Where to find the key that decides a schedule's partition, if the schedule does not have it by itself."""

    UNKNOWN = 0
    """The schedule is older than the storing of keys."""
    TARGET_KEY = 1
    ID = 2


class Schedule(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The stored intent: what to deliver, where, and when.

    `source_partition` and `source_offset` name the command record that defined it; `ttl` is in ms after due.
    `home_key` is the key of its commands, which decides its partition, or where to find that.
    """

    tenant: str
    id: str
    version: int
    trigger: Trigger
    target: Target
    payload: bytes | None
    headers: Headers
    source_partition: int
    source_offset: int
    accepted_at: int
    ttl: int | None = None
    priority: int = DEFAULT_PRIORITY
    labels: dict[str, str] | None = None
    bounds: Bounds | None = None
    acknowledgement: Acknowledgement | None = None
    home_key: bytes | int = HomeKey.UNKNOWN

    @property
    def key(self) -> bytes | None:
        """The key that decides its partition; None: it is not known."""
        match self.home_key:
            case bytes() as key:
                return key
            case HomeKey.TARGET_KEY:
                return self.target.key
            case HomeKey.ID:
                return self.id.encode()
        return None


def home_key_of(key: bytes | None, id: str, target: Target) -> bytes | int:
    """Return what a schedule stores of the key that its commands have; without one the id is the key."""
    if key is None or key == id.encode():
        return HomeKey.ID
    return HomeKey.TARGET_KEY if key == target.key else key


def state_of(paused: bool, is_awaited: bool, due: int) -> State:
    """Return the state of a schedule; `is_awaited`: a firing of it is not completed."""
    if paused:
        return "paused"
    return "awaiting" if is_awaited and due == NEVER else "pending"


class Awaited(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A firing that was delivered and is not completed. `until` is when it is delivered again."""

    due: int
    sequence: int
    attempt: int
    until: int
    fired_at: int


NONE_PLANNED = 1
"""For `Progress.delivered`: before all instants at which a firing can be planned."""


class Progress(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """How far a schedule has come: what its next firing is, and what else is to be done. Instants are UTC epoch ms.

    `due` is NEVER if nothing more is planned. `arrival` orders schedules that are due in the same instant: the offset
    of the command that set the due time, or less than 0 if that command is in the log of another application. `wake` is
    when the schedule is to be looked at, if that is not when it is due.
    """

    due: int
    arrival: int
    sequence: int = 1
    attempt: int = 1
    wake: int | None = None
    planned: int | None = None
    """When the next firing was planned, if jitter moved it."""
    first_due: int | None = None
    """When the first attempt of a backoff series was due."""
    refusals: int = 0
    """How often the target has refused what is to be delivered next."""
    retry_at: int | None = None
    """When what was refused is tried again."""
    paused: bool = False
    triggered: tuple[int, ...] = ()
    """Due times of firings that were asked for besides those planned: when they were asked for."""
    queued: int | None = None
    """Due time of a firing that waits for the completion of the one before it."""
    awaited: tuple[Awaited, ...] = ()
    bulk_offset: int = 0
    """Offset of the last bulk command that was carried out on this schedule, or -1 if it was imported since."""
    delivered: int = 0
    """Due time of the latest planned firing that was delivered, and of a one-shot that was triggered; 0: none was, as
    far as is known, and NONE_PLANNED: only firings that were asked for besides the planned ones."""

    @property
    def wakes_at(self) -> int:
        """When the schedule is to be looked at."""
        return self.due if self.wake is None else self.wake

    @property
    def state(self) -> State:
        """The state of the schedule until it wakes."""
        return state_of(self.paused, bool(self.awaited), self.due)

    @property
    def next_due(self) -> int | None:
        """When the next firing is due, if that is known: not while the schedule is paused or waits for a completion."""
        planned = NEVER if self.paused else self.due
        due = min((planned, *self.triggered)) if self.triggered else planned
        return None if due == NEVER else due


class Entry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A pending schedule as the table keeps it."""

    schedule: Schedule
    progress: Progress
