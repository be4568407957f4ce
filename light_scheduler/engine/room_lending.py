"""Lends room for pending schedules between the partitions of a topic: escrow of a bounded counter. Pure.

Each partition may use its equal share of a tenant's `max_pending`, plus its balance. Room is subtracted from the giver
before the receiver adds it, so all shares together never exceed the quota, even with messages in transit (O'Neil, "The
escrow transactional method", 1986; Balegas et al., "Extending eventually consistent cloud databases for enforcing
numeric invariants", 2015).

A partition without room searches: it asks some of the others, then as many again as it has asked so far, and finally
asks those again that may have got room meanwhile. A search ends when room arrives, when no partition has any, or after
`SEARCH_MS`. After a search without success, the next one starts after `CLOSED_MS`. Instants are UTC epoch ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from light_scheduler.model.room_lending import Asked, Lending, QuotaVersion, RoomAsk, RoomGrant

from .tenants import share_of

SEARCH_MS = 15_000
"""Maximum duration of a search, for which commands wait if answers are missing.

It is longer than it takes until other workers own the partitions of a killed worker.
"""

ROUND_MS = 1_000
"""How long a search waits for missing answers before it asks more partitions."""

AGAIN_MS = 300
"""Pause before partitions that may have got room are asked again."""

CLOSED_MS = 1_000
"""Pause after a search without success, and between two asks ahead."""

REPEAT_MS = 60_000
MOST_UNANSWERED = 5
FORGET_MS = 3_600_000
"""A partition that has not answered is not asked again for `REPEAT_MS`. After `MOST_UNANSWERED` asks, it is not asked
until the first of them is older than `FORGET_MS`.
"""

ANSWER_MS = 3_000_000
"""Maximum age of an ask for which room is given. The asking partition may have forgotten older ones."""

FIRST_ASKED = 3
ASKED_AHEAD = 2
"""Number of partitions to ask in the first round of a search, and ahead of need."""

replace = msgspec.structs.replace


class Others(NamedTuple):
    """The partitions that `partition` may ask: all except itself and those that are `left_alone`."""

    partition: int
    left_alone: frozenset[int] = frozenset()

    def of(self, lending: Lending) -> list[int]:
        """Return the partitions in order. Successive searches begin with different ones."""
        of, shift = lending.version.partitions, lending.number
        others = [(self.partition + each) % of for each in range(1, of)]
        turned = [others[(shift + place) % len(others)] for place in range(len(others))]
        return [each for each in turned if each not in self.left_alone]


class Search(NamedTuple):
    """The state of a search: partitions to ask now, and when to continue it; None if no partition has room."""

    lending: Lending
    ask: tuple[int, ...]
    goes_on_at: int | None


def under(lending: Lending | None, version: QuotaVersion) -> Lending:
    """Return the lending under a version of the quota. Under a new version, it starts without loans.

    An older version comes from a worker that has not read the latest rules yet, so the known quota stays.
    """
    if lending is None:
        return Lending(version)
    if is_newer(lending, version.since):
        version = lending.version._replace(partitions=version.partitions)
    if lending.version == version:
        return lending
    return Lending(version, number=lending.number)


def is_newer(lending: Lending, since: int) -> bool:
    """Return whether the version of the quota is later than an instant."""
    return lending.version.since > since


def share_with(lending: Lending, partition: int) -> int:
    """Return the number of schedules that a partition may have."""
    return share_of(lending.version.most, partition, lending.version.partitions) + lending.balance


def search(lending: Lending, others: Others, now: int) -> Search:
    """Begin or continue a search for room. Partitions to ask are recorded as asked."""
    if now < lending.closed_until:
        return Search(lending, (), None)
    if not lending.search_until:
        late = {each.partition for each in lending.asked if not each.is_ahead} & _silent(lending, now)
        late -= _awaited(lending, now).keys()
        without = tuple(sorted(late))
        lending = replace(lending, search_until=now + SEARCH_MS, without=without, promising=(), has_repeated=False)
    if now >= lending.search_until:
        return Search(closed(lending, now), (), None)
    out = {partition: at for partition, at in _awaited(lending, now).items() if partition not in lending.without}
    if young := [at + ROUND_MS for at in out.values() if at + ROUND_MS > now]:
        return Search(lending, (), min(*young, lending.search_until))
    begun = lending.search_until - SEARCH_MS
    asked = {each.partition for each in lending.asked if each.at >= begun and not each.is_ahead}
    known = {*lending.without, *lending.promising, *out, *asked}
    if left := [each for each in others.of(lending) if each not in known]:
        return _asking(lending, left[: max(FIRST_ASKED, len(known))], now)
    promising = tuple(each for each in lending.promising if each not in others.left_alone)
    if promising and not lending.has_repeated:
        if now < lending.answered_at + AGAIN_MS:
            return Search(lending, (), min(lending.answered_at + AGAIN_MS, lending.search_until))
        return _asking(replace(lending, promising=(), has_repeated=True), promising, now)
    if out:
        return Search(lending, (), min(max(out.values()) + SEARCH_MS, lending.search_until))
    return Search(closed(lending, now), (), None)


def closed(lending: Lending, now: int) -> Lending:
    """End a search without success."""
    return replace(found(lending), closed_until=now + CLOSED_MS, ahead_at=now + CLOSED_MS)


def found(lending: Lending) -> Lending:
    """End a search because there is room."""
    return replace(lending, search_until=0, without=(), promising=(), has_repeated=False, closed_until=0)


def ahead(lending: Lending, others: Others, spare: int, now: int) -> Search:
    """Ask ahead of need, if there is little room left. `goes_on_at` has no meaning."""
    low = max(1, lending.version.most // lending.version.partitions // 8)
    if spare >= low or lending.search_until or now < lending.ahead_at:
        return Search(lending, (), None)
    silent = _silent(lending, now)
    to = [each for each in others.of(lending) if each not in silent][:ASKED_AHEAD]
    return _asking(replace(lending, ahead_at=now + CLOSED_MS), to, now, is_ahead=True)


def all_others(lending: Lending, others: Others, now: int) -> Search:
    """Ask all others that were not asked yet, because more schedules are pending than allowed."""
    silent = _silent(lending, now)
    return _asking(lending, [each for each in others.of(lending) if each not in silent], now)


def given(ask: RoomAsk, spare: int) -> int:
    """Return how much room a partition with room for `spare` schedules gives away.

    That is the wanted room, plus half of the rest if there is plenty. If nothing is wanted now, both partitions have
    the same room afterwards, so that asking ahead comes to an end.
    """
    if spare <= 0:
        return 0
    if not ask.wanted:
        return max(0, (spare - ask.spare) // 2)
    wanted = min(spare, ask.wanted)
    return wanted + max(0, spare - wanted - ask.version.partitions) // 2


def less(lending: Lending, amount: int) -> Lending:
    """Return the lending after room was given away."""
    return replace(lending, balance=lending.balance - amount)


def answered(lending: Lending, grant: RoomGrant, now: int) -> Lending | None:
    """Process an answer. Returns None if there is no such open ask."""
    asked = next((each for each in lending.asked if each[:2] == (grant.partition, grant.number)), None)
    if asked is None:
        return None
    lending = replace(lending, asked=tuple(each for each in lending.asked if each != asked))
    if grant.version == lending.version and grant.amount:
        return replace(found(lending), balance=lending.balance + grant.amount)
    if not lending.search_until or asked.is_ahead:  # it may still have room for a partition in need
        return lending
    lending = replace(lending, answered_at=now, without=tuple(p for p in lending.without if p != grant.partition))
    if grant.may_have_more:
        return replace(lending, promising=(*lending.promising, grant.partition))
    return replace(lending, without=(*lending.without, grant.partition))


def is_waiting(lending: Lending, now: int) -> bool:
    """Return whether a partition may get room soon."""
    return bool(lending.search_until) or any(each.at + SEARCH_MS > now for each in lending.asked)


def _awaited(lending: Lending, now: int) -> dict[int, int]:
    """Return partition -> time of its first unanswered ask, for partitions that may answer soon. Ignores asks ahead.

    So a partition that is down delays commands for SEARCH_MS only once, however often it is asked.
    """
    first: dict[int, int] = {}
    for each in lending.asked:
        if not each.is_ahead:
            first.setdefault(each.partition, each.at)
    return {partition: at for partition, at in first.items() if at + SEARCH_MS > now}


def _silent(lending: Lending, now: int) -> set[int]:
    """Return partitions that were asked recently or often without an answer. Their worker may be down or too old.

    Late answers count too, so asking a partition repeatedly could bring the room of all asks at once.
    """
    asks = Counter(each.partition for each in lending.asked if each.at + FORGET_MS > now)
    return {each.partition for each in lending.asked if each.at + REPEAT_MS > now} | {
        partition for partition, number in asks.items() if number >= MOST_UNANSWERED
    }


def _asking(lending: Lending, partitions: tuple[int, ...] | list[int], now: int, *, is_ahead: bool = False) -> Search:
    number = max(lending.number + 1, now)  # never used before, even if the stored lending was lost
    asked = tuple(Asked(each, number, now, is_ahead) for each in partitions)
    lending = replace(lending, number=number, asked=(*_remembered(lending, now), *asked))
    return Search(lending, tuple(partitions), min(now + ROUND_MS, lending.search_until or now + ROUND_MS))


def _remembered(lending: Lending, now: int) -> Iterator[Asked]:
    """Yield recent asks, and the latest asks of each partition of any age, since their answers may not be read yet."""
    newer = Counter(each.partition for each in lending.asked)
    for each in lending.asked:
        newer[each.partition] -= 1
        if each.at + FORGET_MS > now or newer[each.partition] < MOST_UNANSWERED - 1:
            yield each
