"""Rates of tenants over all partitions, as commits tell of them: whatever is lent, no window has more than its bound.

In a window of `W` seconds a topic carries out at most

    rate x W + saved + borrowed + renewed

`saved` is a second's worth, or one for each partition if that is more, and one more for each partition that is added
meanwhile: those have saved nothing up, but a bucket holds one at least. `borrowed` is half a second's worth, or what
was on its way from one partition to another when the window began, if that is more. `renewed` is a second's worth of a
partition for each time that it gets another lane, which knows nothing of the one before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from aiokafka import TopicPartition

from light_scheduler.model import Shares
from light_scheduler.model.rate_lending import ALL, RateGrant, RateKind, RateName
from light_scheduler.wire.rate_lending import RATE_LENT, rate_in

from .kafka import Transaction
from .violation import Violation

if TYPE_CHECKING:
    from .history import History

BORROWED_S = 0.5
"""What may be borrowed at once, in seconds of a rate; and how long borrowed tokens are kept for what waits."""

EXACT = 1e-6
"""What sums of fractions may be off by."""


@dataclass
class Pace:
    """When commands of one partition count for the rate of their tenant (UTC epoch ms)."""

    counted: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Tenant -> instants."""
    renewals: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    """For each further lane: when its first commit was decided, and when a tenant's first command after it counts."""
    _owner: object = None

    def begin(self, owner: object, now: int) -> None:
        """A commit of a lane follows."""
        if self._owner is not None and owner is not self._owner:
            self.renewals.append((now, {}))
        self._owner = owner

    def renewed(self, tenant: str) -> list[int]:
        """Return from when on each further lane had its own: commands of a backlog count before its first commit."""
        return [min(now, firsts.get(tenant, now)) for now, firsts in self.renewals]

    def note(self, tenant: str, recorded_at: int, now: int) -> None:
        """A command is carried out: it counts when it was recorded, unless that goes back or is ahead of the clock."""
        times = self.counted[tenant]
        before = min(times[-1], now) if times else 0
        times.append(max(before, min(recorded_at, now)))
        if self.renewals:
            self.renewals[-1][1].setdefault(tenant, times[-1])


class _Loan(NamedTuple):
    """Tokens that are on their way from an instant to another (ms); they are in no bucket meanwhile."""

    begins: float
    ends: float
    tokens: float


class _Commit(NamedTuple):
    """A commit of a partition, and when its cycle decided (UTC epoch ms, by the brokers' clock)."""

    transaction: Transaction
    partition: int
    now: int


def check_rates(
    history: History,
    commits: Sequence[Transaction],
    paces: Sequence[Pace],
    *,
    commands: str,
    changelog: str,
    targets: frozenset[str],
) -> None:
    """Raise Violation if a rate of a history was passed in any window."""
    rates = dict(_rates_of(history))
    if not rates:
        return
    decided = list(_decided(commits, changelog))
    renewed = sorted(_renewed(decided))
    loans = _loans(decided, commands)
    fired = _fired(decided, targets)
    spread_s = (max(history.clocks) - min(history.clocks)) / 1_000 if history.clocks else 0.0
    for name, rate in rates.items():
        grown = history.partitions if history.growth is None else history.growth.partitions
        bound = _Bound(rate, history.partitions, grown, renewed, loans[name])
        if name.kind is RateKind.FIRINGS:
            bound.check(name, sorted(fired[name.tenant]))
        else:
            bound = bound._replace(
                unsure_s=spread_s, renewed=sorted(at for pace in paces for at in pace.renewed(name.tenant))
            )
            bound.check(name, sorted(at for pace in paces for at in pace.counted[name.tenant]))


class _Bound(NamedTuple):
    """What a topic may carry out of so many partitions, which has `grown` to so many or not. `renewed` are the instants
    at which one got another lane.

    Commands may count by clocks that are `unsure_s` apart.
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


def _decided(commits: Iterable[Transaction], changelog: str) -> Iterator[_Commit]:
    for commit in commits:
        partition = next((number for topic, number in commit.places if topic == changelog), None)
        if partition is not None and commit.records:
            yield _Commit(commit, partition, max(record.timestamp for record in commit.records) - commit.clock_ahead)


def _renewed(commits: Iterable[_Commit]) -> Iterator[int]:
    """Yield when partitions got another lane, as its first commit tells: before that it lends nothing either."""
    owners: dict[int, object] = {}
    for commit in commits:
        owner = commit.transaction.owner
        if owners.setdefault(commit.partition, owner) is not owner:
            owners[commit.partition] = owner
            yield commit.now


def _loans(commits: Iterable[_Commit], commands: str) -> defaultdict[RateName, list[_Loan]]:
    """Return what was lent of each rate, until whoever asked has read it and may not use it for what waits any more."""
    loans: defaultdict[RateName, list[_Loan]] = defaultdict(list)
    unread: defaultdict[int, list[tuple[int, int, RateGrant]]] = defaultdict(list)
    for commit in commits:
        position = commit.transaction.group_offsets.get(TopicPartition(commands, commit.partition), -1)
        waiting = unread[commit.partition]
        for lent_at, offset, grant in waiting:
            if offset < position:
                ends = commit.now + 1_000 * BORROWED_S
                loans[grant.name].append(_Loan(lent_at, ends, grant.amount / 1_000))
        unread[commit.partition] = [each for each in waiting if each[1] >= position]
        for record in commit.transaction.records:
            for header, value in record.headers if record.topic == commands else ():
                if header == RATE_LENT and isinstance(said := rate_in(header, value), RateGrant):
                    unread[record.partition].append((commit.now, record.offset, said))
    for left in unread.values():
        for lent_at, _, grant in left:
            loans[grant.name].append(_Loan(lent_at, inf, grant.amount / 1_000))
    return loans


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
