"""Messages with which partitions lend each other room for pending schedules, to use `max_pending` fully."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class QuotaVersion(NamedTuple):
    """A value of `max_pending`, the time since when it applies (UTC epoch ms), and the number of partitions sharing it.

    Loans under one version do not count under another.
    """

    since: int
    most: int
    partitions: int


class RoomAsk(NamedTuple):
    """A partition asks another one for room. `number` identifies the ask.

    It has room for `spare` schedules, negative if it has more than its share. It needs room for `wanted` schedules now;
    0 if it asks ahead.
    """

    tenant: str
    partition: int
    number: int
    version: QuotaVersion
    spare: int
    wanted: int


class RoomGrant(NamedTuple):
    """The answer of a partition: it gives away room for `amount` schedules, 0 or more.

    If it gives none, it `may_have_more` soon: it knows another version, waits for room itself, or reserves room for
    commands that may not need it.
    """

    tenant: str
    partition: int
    number: int
    version: QuotaVersion
    amount: int
    may_have_more: bool


class Asked(NamedTuple):
    """An unanswered ask: the partition, the number, the time (UTC epoch ms), and whether it asked ahead."""

    partition: int
    number: int
    at: int
    is_ahead: bool = False


class Lending(msgspec.Struct, frozen=True, array_like=True):
    """A tenant's room lent and borrowed by a partition, and its open asks. Only append fields.

    `balance` is the room received minus the room given away, under a `version` of the quota. `number` is the number of
    the latest ask. A search lasts until `search_until` (0: no search is running). Partitions in `without` have answered
    that they have none, those in `promising` that they may have room soon; `answered_at` is the time of the last such
    answer. `has_repeated` is set once those in `promising` were asked again.
    """

    version: QuotaVersion
    balance: int = 0
    number: int = 0
    asked: tuple[Asked, ...] = ()
    search_until: int = 0
    without: tuple[int, ...] = ()
    promising: tuple[int, ...] = ()
    has_repeated: bool = False
    answered_at: int = 0
    closed_until: int = 0
    ahead_at: int = 0
    """When the partition may ask ahead again."""
