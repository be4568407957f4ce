"""Lending tokens of rates between the partitions of a commands topic (see `engine.rate_lending`).

    1. A lane that has to hold back, since it has no token of a rate left, asks other lanes.
    2. A lane that is asked takes what it lends from its bucket, in the transaction that answers. Of the asks of another
       lane for a rate that it reads at once, it answers the last: who asks knows one that is open. It answers none in a
       backlog that it found: nobody waits for that any more. As commands do, asks count by when they were recorded, so
       those that are read late are not held against the commands behind them.
    3. The one that asked adds it to its own bucket in the transaction that reads the answer.

Nobody waits for an answer: without one, a lane goes on with the tokens that it earns. Whether a lane answers does not
depend on clocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from light_scheduler.engine.rate_lending import LAST_PAUSE_MS, THOUSANDTHS, Demand, OwnPartition
from light_scheduler.engine.token_bucket import BORROWED_MS
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateKind, RateName
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.lending import require_ours
from light_scheduler.wire.rate_lending import rate_headers

from .transaction import Transaction

MOST_ASKS = 64
"""In a cycle, of all rates together. Those that have not asked for longest come first."""


class RateLending:
    """Tokens asked for and lent, for the length of one cycle, in which some others are `left_alone`.

    `ask_at` (UTC epoch ms) is when there is somebody to ask next; None: nothing is needed.
    """

    def __init__(self, transaction: Transaction, *, left_alone: frozenset[int] = frozenset()) -> None:
        context = transaction.context
        self._transaction = transaction
        self._context = context
        self._now = transaction.now
        self._left_alone = left_alone
        self._demand = context.demand
        self._demand.cycle += 1
        self._cycle = self._demand.cycle
        self._needed: dict[RateName, tuple[Demand, float]] = {}
        self._used: Counter[RateName] = Counter()
        self._asks: dict[tuple[RateName, int], tuple[RateAsk, int]] = {}
        self.ask_at: int | None = None

    def hold(self, name: RateName, rate: float) -> None:
        """1. Note that something has to wait, or is rejected, for lack of tokens of a rate of so many a second."""
        self._need(name, rate).hold(self._now)

    def hold_firings(self, held: Mapping[str, float]) -> None:
        """1. Note of which tenants, or of ALL, firings have to wait, and what their caps are."""
        for tenant, rate in held.items():
            self.hold(RateName(RateKind.FIRINGS, tenant), rate)

    def took(self, name: RateName, rate: float, left: int, *, can_wait: bool) -> None:
        """Count a command, after which so many tokens are `left`; what cannot wait has others asked ahead."""
        self._used[name] += 1
        if not can_wait and self._demand.of(name, self._now).is_low(left, self._now):
            self._need(name, rate)

    def ask(self) -> None:
        """1. Ask for what is needed."""
        context, place = self._context, self._place
        if not (self._needed and context.dialect.forwards and place.partitions > 1 and context.placement.secret):
            return
        if not place.others:  # one of them may be back by then
            self.ask_at = self._now + LAST_PAUSE_MS
            return
        left = MOST_ASKS
        for name, (demand, rate) in sorted(self._needed.items(), key=lambda needed: needed[1][0].asked_at):
            if left <= 0:
                self.ask_at = self._now + 1
                return
            asks = demand.ask(name, rate, place, self._now)
            left -= len(asks)
            for to, ask in asks.items():
                self._send(ask, to)
            at = max(self._now + 1, min(demand.ask_at(place), self._now + LAST_PAUSE_MS))
            self.ask_at = at if self.ask_at is None else min(at, self.ask_at)

    def note(self, record: CommandRecord, ask: RateAsk) -> None:
        """2. Note what another partition asks for. Raises InvalidCommand."""
        self._require_ours(record)
        if ask.partition not in self._left_alone:
            self._asks[ask.name, ask.partition] = ask, record.timestamp

    def answer(self) -> None:
        """2. Lend what is not needed here soon, once the commands of the cycle have had their tokens."""
        for ask, recorded_at in self._asks.values():
            kept = self._demand.of(ask.name, self._now).kept(self._now)
            lent = self._lend(ask.name, ask.wanted / THOUSANDTHS, kept, recorded_at)
            grant = RateGrant(ask.name, self._context.partition, ask.number, int(lent * THOUSANDTHS))
            self._send(grant, ask.partition)
        self._asks.clear()

    def take(self, record: CommandRecord, grant: RateGrant) -> None:
        """3. Take what another partition lends. Raises InvalidCommand."""
        self._require_ours(record)
        tokens = self._demand.of(grant.name, self._now).answered(grant, self._now)
        if not tokens:
            return
        until = self._now + BORROWED_MS
        if grant.name.kind is RateKind.FIRINGS:
            self._context.throttle.borrow(grant.name.tenant, tokens, until)
        else:
            self._context.rates.borrow(grant.name.tenant, tokens, until)

    def commit(self) -> None:
        """Count the commands of this cycle, once they are committed."""
        for name, count in self._used.items():
            self._demand.of(name, self._now).use(count, self._now)

    @property
    def _place(self) -> OwnPartition:
        return OwnPartition(self._context.partition, self._context.placement.partitions, self._left_alone)

    def _need(self, name: RateName, rate: float) -> Demand:
        demand = self._demand.of(name, self._now)
        demand.need(self._now, self._cycle)
        self._needed[name] = demand, rate
        return demand

    def _lend(self, name: RateName, most: float, kept: float, recorded_at: int) -> float:
        if name.kind is RateKind.FIRINGS:
            return self._context.throttle.lend(name.tenant, most, kept, self._now)
        tenant = self._transaction.tenants.get(name.tenant)
        rate = None if tenant is None else tenant.rules.commands_per_second
        if rate is None:
            return 0.0
        return self._context.rates.lend(name.tenant, rate, most, kept, recorded_at, self._now)

    def _send(self, said: RateAsk | RateGrant, to: int) -> None:
        topic, secret = self._context.commands_topic, self._context.placement.secret
        self._transaction.batches.add((topic, to), None, None, rate_headers(said, topic, to, secret))

    def _require_ours(self, record: CommandRecord) -> None:
        require_ours(record, self._context.commands_topic, self._context.placement.secret)
