"""Room for pending schedules that partitions lend to each other, so that a tenant's `max_pending` can be used up."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class QuotaVersion(NamedTuple):
    """A value of `max_pending`, since when (UTC epoch ms) it holds, and how many partitions share it.

    What was lent under one version means nothing under another.
    """

    since: int
    most: int
    partitions: int


class RoomAsk(NamedTuple):
    """A partition asks another one for room. `number` tells its asks apart.

    It has room for `spare` schedules, less than none if it holds more than its share. It needs room for `wanted` at
    once; 0: it asks ahead.
    """

    tenant: str
    partition: int
    number: int
    version: QuotaVersion
    spare: int
    wanted: int


class RoomGrant(NamedTuple):
    """The answer of a partition: it gives room for `amount` schedules away, 0 or more.

    It `may_have_more` soon if it gives none: it knows another version, waits for room itself, or keeps some for
    commands that may not need it.
    """

    tenant: str
    partition: int
    number: int
    version: QuotaVersion
    amount: int
    may_have_more: bool


class Asked(NamedTuple):
    """A partition that has not answered yet: which ask it was, when it was sent, and whether nothing was wanted yet."""

    partition: int
    number: int
    at: int
    is_ahead: bool = False


class Lending(msgspec.Struct, frozen=True, array_like=True):
    """Room of a tenant that a partition has lent and borrowed, and its open asks. New fields are only appended.

    `balance` is the room received less the room given away, under a `version` of the quota. `number` is that of the
    latest ask. A search lasts until `search_until` (0: none is under way). Partitions in `without` have answered that
    they have nothing, those in `promising` that they may have room soon; `answered_at` is the time of the last such
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
    """When it may ask ahead again."""
