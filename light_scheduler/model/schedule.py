"""A schedule, its progress, and the two together as an entry of the table.

Definition and progress are separate, so that a series with a large payload can advance without rewriting it. State
records contain these structs as arrays (see `wire.state`): only append fields, with a default and a new format version.
Unknown fields are refused, since they would be lost when the record is written again.
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
"""Priorities are 0 (first) to 255 (last) among firings due at the same instant."""


class Target(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The target of a firing. A null key stays null.

    The partition is `partition` if given. Otherwise it is Kafka's murmur2 hash of `partition_key`, or of `key`, or of
    the schedule's id, whichever is given first.
    """

    topic: str
    key: bytes | None = None
    partition: int | None = None
    partition_key: bytes | None = None


State = Literal["pending", "paused", "awaiting"]
"""`pending`: a firing is planned. `paused`: nothing fires until it is resumed. `awaiting`: waits for a completion."""

Misfire = Literal["coalesce", "skip", "all"]
Overlap = Literal["allow", "skip", "queue"]


class Bounds(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Limits and spread of a schedule's firings. Instants are UTC epoch ms, durations are ms.

    Firings are planned from `start` to `end`, at most `max_firings` of them. A firing is due up to `jitter` later than
    planned, and may be delivered up to `window` later than due. A firing later than `misfire_grace` is a misfire, which
    is handled according to `misfire`.
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
    """Requires completion of firings. Otherwise, each is redelivered after `timeout` ms, up to `max_attempts` in total.

    `overlap` is the policy for the next firing of a series while an earlier one is not completed.
    """

    timeout: int
    max_attempts: int
    overlap: Overlap = "allow"


class HomeKey(IntEnum):
    """Where to find the key that decides a schedule's partition, if it is not stored separately."""

    UNKNOWN = 0
    """The schedule was stored before keys were stored."""
    TARGET_KEY = 1
    ID = 2


class Schedule(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The definition of a schedule: what to deliver, where, and when.

    `source_partition` and `source_offset` identify the command record that defined it. `ttl` is in ms after due.
    `home_key` is the key of its commands, which decides its partition, or says where to find that key.
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
        """The key that decides its partition; None if unknown."""
        match self.home_key:
            case bytes() as key:
                return key
            case HomeKey.TARGET_KEY:
                return self.target.key
            case HomeKey.ID:
                return self.id.encode()
        return None


def home_key_of(key: bytes | None, id: str, target: Target) -> bytes | int:
    """Return the `home_key` to store for the key of a schedule's commands. Without a key, the id is the key."""
    if key is None or key == id.encode():
        return HomeKey.ID
    return HomeKey.TARGET_KEY if key == target.key else key


def state_of(paused: bool, is_awaited: bool, due: int) -> State:
    """Return the state of a schedule. `is_awaited` means that one of its firings is not completed."""
    if paused:
        return "paused"
    return "awaiting" if is_awaited and due == NEVER else "pending"


class Awaited(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A delivered firing that is not completed. `until` is when it is delivered again."""

    due: int
    sequence: int
    attempt: int
    until: int
    fired_at: int


NONE_PLANNED = 1
"""Value of `Progress.delivered` that is before all instants at which a firing can be planned."""


class Progress(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The progress of a schedule: its next firing and other pending work. Instants are UTC epoch ms.

    `due` is NEVER if nothing more is planned. `arrival` orders schedules that are due at the same instant: it is that
    of the command that set the due time (see `arrival`), negative if that command is in the log of another application.
    `wake` is when the schedule must be handled next, if that is not its due time.
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
    """How often the target has refused the next delivery."""
    retry_at: int | None = None
    """When the refused delivery is retried."""
    paused: bool = False
    triggered: tuple[int, ...] = ()
    """Due times of extra firings by `trigger` commands, which are the times of the commands."""
    queued: int | None = None
    """Due time of a firing that waits for the completion of the previous one."""
    awaited: tuple[Awaited, ...] = ()
    bulk_offset: int = 0
    """Arrival of the last bulk command applied to this schedule, or -1 if it was imported since."""
    delivered: int = 0
    """Due time of the latest delivered planned firing, or of a triggered one-shot. 0: none is known to have been
    delivered. NONE_PLANNED: only extra firings were.
    """

    @property
    def wakes_at(self) -> int:
        """When the schedule must be handled next."""
        return self.due if self.wake is None else self.wake

    @property
    def state(self) -> State:
        """The state of the schedule until it wakes."""
        return state_of(self.paused, bool(self.awaited), self.due)

    @property
    def next_due(self) -> int | None:
        """When the next firing is due; None if unknown because the schedule is paused or waits for a completion."""
        planned = NEVER if self.paused else self.due
        due = min((planned, *self.triggered)) if self.triggered else planned
        return None if due == NEVER else due


class Entry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A pending schedule as the table stores it."""

    schedule: Schedule
    progress: Progress
