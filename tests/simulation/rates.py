"""Rates of tenants over all partitions, as commits tell of them: whatever is lent, no window has more than its bound.

In a window of `W` seconds all commands topics together carry out at most

    rate x W + saved + borrowed + renewed

`saved` is a second's worth, or one for each partition if that is more, and one more for each partition that is added
meanwhile: those have saved nothing up, but a bucket holds one at least. `borrowed` is half a second's worth, or what
was on its way from one partition to another when the window began, if that is more. `renewed` is a second's worth of a
partition for each time that it gets another lane, which knows nothing of the one before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

from aiokafka import TopicPartition

from light_scheduler.model import Shares
from light_scheduler.model.rate_lending import ALL, RateAsk, RateGrant, RateKind, RateName
from light_scheduler.wire.rate_lending import RATE_ASKED, RATE_LENT, rate_in

from .log import Place, Record, Transaction
from .violation import Violation

if TYPE_CHECKING:
    from .history import History
    from .letters import Ledger

BORROWED_S = 0.5
"""What may be borrowed at once, in seconds of a rate; and how long borrowed tokens are kept for what waits."""

EXACT = 1e-6
"""What sums of fractions may be off by."""


class _Lane(NamedTuple):
    """Who commits, when its first commit was decided, and when a tenant's first command after it counts."""

    owner: object
    now: int
    firsts: dict[str, int]


@dataclass
class Pace:
    """When commands of one partition count for the rate of their tenant (UTC epoch ms)."""

    counted: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Tenant -> instants."""
    _lanes: list[_Lane] = field(default_factory=list)
    _reached: dict[str, int] = field(default_factory=dict)
    """Tenant -> the instant that commands count from at least: their time does not go back in a partition."""
    _known: dict[str, int | None] = field(default_factory=dict)
    """Tenants that the lane has looked at -> the instant at which its last command of theirs counts."""

    def begin(self, owner: object, now: int) -> None:
        """A commit of a lane follows. Another lane knows nothing of what the one before has only looked at."""
        if not self._lanes or owner is not self._lanes[-1].owner:
            self._lanes.append(_Lane(owner, now, {}))
            self._reached = {tenant: times[-1] for tenant, times in self.counted.items() if times}
            self._known = {}

    def renewed(self, tenant: str, lent: Mapping[object, int]) -> list[int]:
        """Return from when on each further lane had its own: commands of a backlog count before its first commit.

        A lane may have `lent` some before that.
        """
        begun = [(lane.now, lane.owner, lane.firsts.get(tenant, lane.now)) for lane in self._lanes]
        begun += [(at, owner, at) for owner, at in lent.items() if owner not in {lane.owner for lane in self._lanes}]
        begun.sort(key=lambda each: each[0])
        return [min(now, first, lent.get(owner, now)) for now, owner, first in begun[1:]]

    def look(self, tenant: str, recorded_at: int, now: int) -> int:
        """It is looked whether a tenant may have one more command of some instant; return when that would count.

        That is when it was recorded, unless that goes back or is ahead of the clock.
        """
        self._reached[tenant] = at = max(min(self._reached.get(tenant, 0), now), min(recorded_at, now))
        self._known.setdefault(tenant, None)
        return at

    def meet(self, tenant: str, recorded_at: int, now: int) -> None:
        """A command joins the queue of a tenant. A lane that does not know the tenant may have looked at it then."""
        if tenant not in self._known:
            self.look(tenant, recorded_at, now)

    def turn(self, tenant: str, rate: float) -> int | None:
        """Return when the next command of a tenant has its turn in a partition that earns so many tokens a second.

        That is when it has earned one since the lane's last command, but not before the lane has looked at the tenant.
        None if it never has.
        """
        if tenant not in self._known:
            return None
        last = self._known[tenant]
        return self._reached[tenant] if last is None else max(self._reached[tenant], ceil(last + 1_000 / rate))

    def note(self, tenant: str, recorded_at: int, now: int) -> None:
        """A command is carried out, and counts."""
        at = self.look(tenant, recorded_at, now)
        self.counted[tenant].append(at)
        self._known[tenant] = at
        self._lanes[-1].firsts.setdefault(tenant, at)


def answered_asks(read: Sequence[Record], written: Sequence[Record]) -> Iterator[tuple[str, int]]:
    """Yield whose tokens of commands were asked for, and when, in records that were read; answers were written."""
    answers = {(to.partition, said.name, said.number) for to, said in _said(written) if isinstance(said, RateGrant)}
    for record, said in _said(read):
        is_of_commands = isinstance(said, RateAsk) and said.name.kind is RateKind.COMMANDS
        if is_of_commands and (said.partition, said.name, said.number) in answers:
            yield said.name.tenant, record.timestamp


class _Loan(NamedTuple):
    """Tokens that are on their way from an instant to another (ms); they are in no bucket meanwhile."""

    begins: float
    ends: float
    tokens: float


class _Commit(NamedTuple):
    """A commit of a partition, and when its cycle decided (UTC epoch ms, by the brokers' clock)."""

    transaction: Transaction
    place: Place
    now: int


def check_rates(
    history: History,
    commits: Sequence[Transaction],
    paces: Mapping[Place, Pace],
    ledger: Ledger,
    *,
    changelogs: Mapping[str, str],
    targets: frozenset[str],
) -> None:
    """Raise Violation if a rate of a history was passed in any window.

    `changelogs` have the commands topic of each changelog.
    """
    rates = dict(_rates_of(history))
    if not rates:
        return
    decided = list(_decided(commits, changelogs))
    renewed = sorted(_renewed(decided, ledger))
    loans = _loans(decided, frozenset(changelogs.values()))
    for taken in ledger.taken:
        ends = taken.taken_at + 1_000 * BORROWED_S
        loans[taken.name].append(_Loan(taken.lent_at, ends, taken.amount / 1_000))
    fired = _fired(decided, targets)
    spread_s = (max(history.clocks) - min(history.clocks)) / 1_000 if history.clocks else 0.0
    for name, rate in rates.items():
        partitions = history.partitions * len(history.topics)
        grown = partitions if history.growth is None else history.growth.partitions
        bound = _Bound(rate, partitions, grown, renewed, loans[name])
        if name.kind is RateKind.FIRINGS:
            bound.check(name, sorted(fired[name.tenant]))
        else:
            bound = bound._replace(
                unsure_s=spread_s,
                renewed=sorted(
                    at for place, pace in paces.items() for at in pace.renewed(name.tenant, ledger.first[place])
                ),
            )
            bound.check(name, sorted(at for pace in paces.values() for at in pace.counted[name.tenant]))


class _Bound(NamedTuple):
    """What all topics together may carry out of so many partitions, which have `grown` to so many or not.

    `renewed` are the instants at which one got another lane. Commands may count by clocks that are `unsure_s` apart.
    """

    rate: float
    partitions: int
    grown: int
    renewed: list[int]
    loans: list[_Loan]
    unsure_s: float = 0.0

    def check(self, name: RateName, times: list[int]) -> None:
        """Raise Violation if any window between two instants of what was carried out has more."""
        rate, part = self.rate, max(1.0, self.rate / self.partitions)
        saved = max(rate, self.partitions) + (self.grown - self.partitions) + rate * self.unsure_s
        borrowed = self._borrowed(times)
        lowest, begins = inf, 0
        for number, at in enumerate(times):
            earned = rate * at / 1_000
            before = number - earned - part * bisect_left(self.renewed, at) + borrowed[number]
            if before < lowest:
                lowest, begins = before, at
            above = number + 1 - earned - part * bisect_right(self.renewed, at) - lowest - saved
            if above > EXACT:
                raise Violation(f"{name}: {above:g} more than {rate:g} a second allow from {begins} to {at}")

    def _borrowed(self, times: list[int]) -> list[float]:
        """Return what may be borrowed in a window that begins at each of these instants."""
        changes = [(loan.begins, loan.tokens) for loan in self.loans]
        changes += [(loan.ends, -loan.tokens) for loan in self.loans]
        changes.sort()
        instants, under_way = [at for at, _ in changes], [0.0, *accumulate(tokens for _, tokens in changes)]
        least = self.rate * BORROWED_S
        return [max(least, under_way[bisect_right(instants, at)]) for at in times]


def _rates_of(history: History) -> Iterator[tuple[RateName, float]]:
    """Yield the rates that hold from the beginning to the end."""
    shares: Shares = history.shares
    if shares.rate is not None:
        yield RateName(RateKind.FIRINGS, ALL), shares.rate
    for tenant in ("default", "acme", "zeta"):
        if (rate := shares.rate_of(tenant)) is not None:
            yield RateName(RateKind.FIRINGS, tenant), rate
        rules = [change for change in history.changes if change.tenant == tenant]
        if len(rules) == 1 and rules[0].at <= 0 and rules[0].commands_per_second is not None:
            yield RateName(RateKind.COMMANDS, tenant), rules[0].commands_per_second


def _decided(commits: Iterable[Transaction], changelogs: Mapping[str, str]) -> Iterator[_Commit]:
    for commit in commits:
        place = next(((changelogs[topic], number) for topic, number in commit.places if topic in changelogs), None)
        if place is not None and commit.records:
            yield _Commit(commit, place, max(record.timestamp for record in commit.records) - commit.clock_ahead)


def _renewed(commits: Iterable[_Commit], ledger: Ledger) -> Iterator[int]:
    """Yield when partitions got another lane, as its first commit tells, or what it has lent by letter before that."""
    lanes: defaultdict[Place, dict[object, int]] = defaultdict(dict)
    for place, first in ledger.first.items():
        lanes[place] |= first
    for commit in commits:
        owner, known = commit.transaction.owner, lanes[commit.place]
        known[owner] = min(commit.now, known.get(owner, commit.now))
    for begun in lanes.values():
        yield from sorted(begun.values())[1:]


def _loans(commits: Iterable[_Commit], topics: Collection[str]) -> defaultdict[RateName, list[_Loan]]:
    """Return what was lent of each rate, until whoever asked has read it and may not use it for what waits any more."""
    loans: defaultdict[RateName, list[_Loan]] = defaultdict(list)
    unread: defaultdict[Place, list[tuple[int, int, RateGrant]]] = defaultdict(list)
    for commit in commits:
        position = commit.transaction.group_offsets.get(TopicPartition(*commit.place), -1)
        waiting = unread[commit.place]
        for lent_at, offset, grant in waiting:
            if offset < position:
                ends = commit.now + 1_000 * BORROWED_S
                loans[grant.name].append(_Loan(lent_at, ends, grant.amount / 1_000))
        unread[commit.place] = [each for each in waiting if each[1] >= position]
        for record, said in _said(each for each in commit.transaction.records if each.topic in topics):
            if isinstance(said, RateGrant):
                unread[record.topic, record.partition].append((commit.now, record.offset, said))
    for left in unread.values():
        for lent_at, _, grant in left:
            loans[grant.name].append(_Loan(lent_at, inf, grant.amount / 1_000))
    return loans


def _said(records: Iterable[Record]) -> Iterator[tuple[Record, RateAsk | RateGrant]]:
    """Yield the records by which partitions ask each other for tokens, or answer."""
    for record in records:
        for header, value in record.headers:
            if header in (RATE_ASKED, RATE_LENT):
                yield record, rate_in(header, value)


def _fired(commits: Iterable[_Commit], targets: frozenset[str]) -> defaultdict[str, list[int]]:
    """Return when firings were decided, by tenant, and of ALL."""
    fired: defaultdict[str, list[int]] = defaultdict(list)
    for commit in commits:
        for record in commit.transaction.records:
            if record.topic in targets:
                tenant = next(value.decode() for header, value in record.headers if header == "schedule-tenant")
                fired[tenant].append(commit.now)
                fired[ALL].append(commit.now)
    return fired
