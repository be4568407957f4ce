"""Lending room for pending schedules between the partitions of a topic: escrow of a bounded counter. Pure.

Each partition may have its equal share of a tenant's `max_pending`, plus its balance. Room is given away before it is
taken over, so all shares together are never more than the quota, whatever is under way (O'Neil, "The escrow
transactional method", 1986; Balegas et al., "Extending eventually consistent cloud databases for enforcing numeric
invariants", 2015).

A partition without room searches: it asks some of the others, then as many again as before, and in the end once more
those that may have got room meanwhile. A search ends when room comes, when nobody has any, or after `SEARCH_MS`. After
one that found nothing, none begins for `CLOSED_MS`. Instants are UTC epoch ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from light_scheduler.model.room_lending import Asked, Lending, QuotaVersion, RoomAsk, RoomGrant

from .tenants import share_of

SEARCH_MS = 15_000
"""How long a search lasts at most: commands wait so long for answers that do not come.

That is longer than it takes until others have the partitions of a worker that was killed.
"""

ROUND_MS = 1_000
"""How long the others are not asked because of answers that are missing."""

AGAIN_MS = 300
"""After so long those are asked again that may have got room."""

CLOSED_MS = 1_000
"""How long nothing is asked after a search that found nothing; and between two asks ahead."""

REPEAT_MS = 60_000
MOST_UNANSWERED = 5
FORGET_MS = 3_600_000
"""How long one that has not answered is left alone; and after how many asks it is until the first is so long ago."""

ANSWER_MS = 3_000_000
"""How long room is given for an ask: who asked may know nothing of an older one any more."""

FIRST_ASKED = 3
ASKED_AHEAD = 2
"""How many are asked at once: in the first round of a search, and ahead of need."""

replace = msgspec.structs.replace


class Others(NamedTuple):
    """The partitions that one may ask: all but itself and those that are `left_alone`."""

    partition: int
    left_alone: frozenset[int] = frozenset()

    def of(self, lending: Lending) -> list[int]:
        """Return them; successive searches begin with different ones."""
        of, shift = lending.version.partitions, lending.number
        others = [(self.partition + each) % of for each in range(1, of)]
        turned = [others[(shift + place) % len(others)] for place in range(len(others))]
        return [each for each in turned if each not in self.left_alone]


class Search(NamedTuple):
    """Where a search stands: whom to ask now. `goes_on_at` is when to look again; None: nobody has room."""

    lending: Lending
    ask: tuple[int, ...]
    goes_on_at: int | None


def under(lending: Lending | None, version: QuotaVersion) -> Lending:
    """Return what is left of lending under a version of the quota: nothing, if it is new.

    A version from before is that of a worker that has not read the rules so far yet: the quota stays what it was.
    """
    if lending is None:
        return Lending(version)
    if is_newer(lending, version.since):
        version = lending.version._replace(partitions=version.partitions)
    if lending.version == version:
        return lending
    return Lending(version, number=lending.number)


def is_newer(lending: Lending, since: int) -> bool:
    """Return whether lending is under a version of the quota that is later than an instant."""
    return lending.version.since > since


def share_with(lending: Lending, partition: int) -> int:
    """Return how many schedules a partition may have."""
    return share_of(lending.version.most, partition, lending.version.partitions) + lending.balance


def search(lending: Lending, others: Others, now: int) -> Search:
    """Begin to search for room, or go on, and mark those that are to be asked as asked."""
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
    """End a search that found nothing."""
    return replace(found(lending), closed_until=now + CLOSED_MS, ahead_at=now + CLOSED_MS)


def found(lending: Lending) -> Lending:
    """End a search, since there is room."""
    return replace(lending, search_until=0, without=(), promising=(), has_repeated=False, closed_until=0)


def ahead(lending: Lending, others: Others, spare: int, now: int) -> Search:
    """Ask ahead of need, if there is room for few more only; `goes_on_at` has no meaning."""
    low = max(1, lending.version.most // lending.version.partitions // 8)
    if spare >= low or lending.search_until or now < lending.ahead_at:
        return Search(lending, (), None)
    silent = _silent(lending, now)
    to = [each for each in others.of(lending) if each not in silent][:ASKED_AHEAD]
    return _asking(replace(lending, ahead_at=now + CLOSED_MS), to, now, is_ahead=True)


def all_others(lending: Lending, others: Others, now: int) -> Search:
    """Ask everybody who has not been asked: more is pending than may be."""
    silent = _silent(lending, now)
    return _asking(lending, [each for each in others.of(lending) if each not in silent], now)


def given(ask: RoomAsk, spare: int) -> int:
    """Return how much room a partition gives that has room for `spare` more schedules.

    That is what is wanted, and half of what is left if that is plenty. If nothing is wanted at once, the two come to
    have the same, so asking ahead comes to an end.
    """
    if spare <= 0:
        return 0
    if not ask.wanted:
        return max(0, (spare - ask.spare) // 2)
    wanted = min(spare, ask.wanted)
    return wanted + max(0, spare - wanted - ask.version.partitions) // 2


def less(lending: Lending, amount: int) -> Lending:
    """Return what is left when room was given away."""
    return replace(lending, balance=lending.balance - amount)


def answered(lending: Lending, grant: RoomGrant, now: int) -> Lending | None:
    """Take in an answer; None if nothing like it was asked, or it was answered already."""
    asked = next((each for each in lending.asked if each[:2] == (grant.partition, grant.number)), None)
    if asked is None:
        return None
    lending = replace(lending, asked=tuple(each for each in lending.asked if each != asked))
    if grant.version == lending.version and grant.amount:
        return replace(found(lending), balance=lending.balance + grant.amount)
    if not lending.search_until or asked.is_ahead:  # it may have something for one that needs it
        return lending
    lending = replace(lending, answered_at=now, without=tuple(p for p in lending.without if p != grant.partition))
    if grant.may_have_more:
        return replace(lending, promising=(*lending.promising, grant.partition))
    return replace(lending, without=(*lending.without, grant.partition))


def is_waiting(lending: Lending, now: int) -> bool:
    """Return whether room may come to a partition soon."""
    return bool(lending.search_until) or any(each.at + SEARCH_MS > now for each in lending.asked)


def _awaited(lending: Lending, now: int) -> dict[int, int]:
    """Return who may answer soon what is wanted, and when they were asked first of what they have not answered.

    So one that is down holds commands up for SEARCH_MS once, however often it is asked. One asked ahead is asked again.
    """
    first: dict[int, int] = {}
    for each in lending.asked:
        if not each.is_ahead:
            first.setdefault(each.partition, each.at)
    return {partition: at for partition, at in first.items() if at + SEARCH_MS > now}


def _silent(lending: Lending, now: int) -> set[int]:
    """Return who was asked lately, or often, and has not answered: its worker may be down, or may not have understood.

    Every answer counts, even if it is late, so nobody is asked again and again whose room would come all at once.
    """
    asks = Counter(each.partition for each in lending.asked if each.at + FORGET_MS > now)
    return {each.partition for each in lending.asked if each.at + REPEAT_MS > now} | {
        partition for partition, number in asks.items() if number >= MOST_UNANSWERED
    }


def _asking(lending: Lending, partitions: tuple[int, ...] | list[int], now: int, *, is_ahead: bool = False) -> Search:
    number = max(lending.number + 1, now)  # one that was never used, even if what was kept of it is gone
    asked = tuple(Asked(each, number, now, is_ahead) for each in partitions)
    lending = replace(lending, number=number, asked=(*_remembered(lending, now), *asked))
    return Search(lending, tuple(partitions), min(now + ROUND_MS, lending.search_until or now + ROUND_MS))


def _remembered(lending: Lending, now: int) -> Iterator[Asked]:
    """Yield what was asked lately, and the latest asks of each partition however old: an answer may wait to be read."""
    newer = Counter(each.partition for each in lending.asked)
    for each in lending.asked:
        newer[each.partition] -= 1
        if each.at + FORGET_MS > now or newer[each.partition] < MOST_UNANSWERED - 1:
            yield each
