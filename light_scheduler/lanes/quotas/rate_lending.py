"""Lends tokens of rates between the partitions of all commands topics (see `engine.rate_lending`).

    1. A lane that must hold work back, as it has no token of a rate left, asks other lanes.
    2. A lane that is asked takes the lent tokens from its bucket, in the transaction that answers. If it reads several
       asks of another lane for a rate at once, it answers the last, as the requester tracks only one open ask. It does
       not answer asks in a backlog, which are out of date, unless the next command waits for its schema, nor asks that
       it reads before it has caught up: delayed commands need these tokens. Like commands, asks count by when they were
       recorded, so late ones take no tokens from the commands after them. An ask by `rate_post` counts as if it were in
       the log before the unread commands of its tenant (see `unread`).
    3. The requester adds the tokens to its own bucket in the transaction that reads the answer.

No lane waits for an answer: without one, it goes on with the tokens that it earns. Whether a lane answers does not
depend on clocks.

Lanes of one topic send these messages through its log, if workers may write there. Others use `rate_post`, which is not
part of transactions: a received message counts once it is taken, and tokens are gone once they are sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from light_scheduler.engine.rate_lending import LAST_PAUSE_MS, THOUSANDTHS, Demand, OwnPart
from light_scheduler.engine.token_bucket import BORROWED_MS
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model.place import Place
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateKind, RateName
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.rate_lending import rate_headers

MOST_ASKS = 64
"""Maximum number of asks in a cycle, for all rates together. Rates whose last ask is oldest come first."""


class RateLending:
    """Tokens asked for and lent in one cycle. Partitions that are `left_alone` are not asked or answered.

    `ask_at` (UTC epoch ms) is when to ask next, or None if no tokens are needed.
    """

    def __init__(self, transaction: Transaction, *, left_alone: frozenset[int] = frozenset()) -> None:
        context = transaction.context
        self._transaction = transaction
        self._context = context
        self._now = transaction.now
        self._left_alone = left_alone
        self._demand = context.memory.demand
        self._demand.cycle += 1
        self._cycle = self._demand.cycle
        self._needed: dict[RateName, tuple[Demand, float]] = {}
        self._used: Counter[RateName] = Counter()
        self._asks: dict[tuple[RateName, Place], tuple[RateAsk, int | None]] = {}
        self.ask_at: int | None = None

    def hold(self, name: RateName, rate: float) -> None:
        """1. Note that work waits, or is rejected, for lack of tokens of a rate of `rate` per second."""
        self._need(name, rate).hold(self._now)

    def hold_firings(self, held: Mapping[str, float]) -> None:
        """1. Note the tenants, or ALL, whose firings have to wait, with their caps."""
        for tenant, rate in held.items():
            self.hold(RateName(RateKind.FIRINGS, tenant), rate)

    def took(self, name: RateName, rate: float, left: int, *, can_wait: bool) -> None:
        """Count a command after which `left` tokens remain. If commands cannot wait, ask others before none is left."""
        self._used[name] += 1
        if not can_wait and self._demand.of(name, self._now).is_low(left, self._now):
            self._need(name, rate)

    def ask(self) -> None:
        """1. Ask for the needed tokens."""
        if not self._needed:
            return
        part = self._part
        if not part.others:
            if self._left_alone:  # one of them may be back by then
                self.ask_at = self._now + LAST_PAUSE_MS
            return
        left = MOST_ASKS
        for name, (demand, rate) in sorted(self._needed.items(), key=lambda needed: needed[1][0].asked_at):
            if left <= 0:
                self.ask_at = self._now + 1
                return
            asks = demand.ask(name, rate, part, self._now)
            left -= len(asks)
            for to, ask in asks.items():
                self._send(ask, to)
            at = max(self._now + 1, min(demand.ask_at(part, self._now), self._now + LAST_PAUSE_MS))
            self.ask_at = at if self.ask_at is None else min(at, self.ask_at)

    def note(self, record: CommandRecord, ask: RateAsk) -> None:
        """2. Note another partition's ask."""
        if ask.partition not in self._left_alone:
            self._asks[ask.name, (self._context.commands_topic, ask.partition)] = ask, record.timestamp

    def answer(self, unread_since: Callable[[str], int | None] = lambda _: None) -> None:
        """2. Lend the tokens that are not needed here soon, after the commands of the cycle have taken theirs.

        `unread_since` returns when the first unread command of a tenant was recorded (UTC epoch ms), or None.
        """
        for (_, sender), (ask, recorded_at) in self._asks.items():
            kept = self._demand.of(ask.name, self._now).kept(self._now)
            if (at := recorded_at) is None and (at := unread_since(ask.name.tenant)) is None:
                at = self._now
            lent = self._lend(ask.name, ask.wanted / THOUSANDTHS, kept, at)
            grant = RateGrant(ask.name, self._context.partition, ask.number, int(lent * THOUSANDTHS))
            self._send(grant, sender)
        self._asks.clear()

    def take(self, grant: RateGrant) -> None:
        """3. Take the tokens that another partition lends."""
        self._borrow((self._context.commands_topic, grant.partition), grant, self._context.memory.command_rates.borrow)

    def receive(self) -> None:
        """2. and 3. Take messages of lanes that share no log with this one. Call it before commands are taken."""
        for message in self._context.rate_post.received():
            said, sender = message.said, message.sender
            if isinstance(said, RateAsk):
                self._asks[said.name, sender] = said, None
            else:
                self._borrow(sender, said, self._context.memory.command_rates.receive)

    def commit(self) -> None:
        """Count the commands of this cycle once they are committed."""
        for name, count in self._used.items():
            self._demand.of(name, self._now).use(count, self._now)

    @property
    def _part(self) -> OwnPart:
        """The parts of rates that this lane has, and those of all others that it may ask."""
        context, post = self._context, self._context.rate_post
        others = post.others()
        basis = context.partitioning.partitions, context.writes_rates, self._left_alone, post.topics, others
        return self._demand.part(basis, lambda: self._new_part(others))

    def _new_part(self, reached: Mapping[Place, float]) -> OwnPart:
        context = self._context
        share = 1 / max(1, context.partitioning.partitions) / context.rate_post.topics
        others = dict.fromkeys(self._neighbours(), share)
        others |= {place: each for place, each in reached.items() if not self._shares_log_with(place)}
        return OwnPart((context.commands_topic, context.partition), share, others)

    def _neighbours(self) -> Iterator[Place]:
        """Yield the other partitions of the topic, beginning with those after this one."""
        context = self._context
        partitions = context.partitioning.partitions if context.writes_rates else 1
        for step in range(1, partitions):
            if (partition := (context.partition + step) % partitions) not in self._left_alone:
                yield context.commands_topic, partition

    def _shares_log_with(self, other: Place) -> bool:
        return other[0] == self._context.commands_topic and self._context.writes_rates

    def _borrow(self, sender: Place, grant: RateGrant, for_commands: Callable[[str, float, int], None]) -> None:
        tokens = self._demand.of(grant.name, self._now).answered(sender, grant, self._now)
        borrow = self._context.firing_rates.borrow if grant.name.kind is RateKind.FIRINGS else for_commands
        if tokens:
            borrow(grant.name.tenant, tokens, self._now + BORROWED_MS)

    def _need(self, name: RateName, rate: float) -> Demand:
        demand = self._demand.of(name, self._now)
        demand.need(self._now, self._cycle)
        self._needed[name] = demand, rate
        return demand

    def _lend(self, name: RateName, most: float, kept: float, recorded_at: int) -> float:
        if name.kind is RateKind.FIRINGS:
            return self._context.firing_rates.lend(name.tenant, most, kept, self._now)
        tenant = self._transaction.tenants.get(name.tenant)
        rate = None if tenant is None else tenant.rules.commands_per_second
        if rate is None:
            return 0.0
        return self._context.memory.command_rates.lend(name.tenant, rate, most, kept, recorded_at, self._now)

    def _send(self, said: RateAsk | RateGrant, to: Place) -> None:
        if self._shares_log_with(to):
            headers = rate_headers(said, *to, self._context.partitioning.secret)
            self._transaction.batches.add(to, None, None, headers)
        else:
            self._context.rate_post.send(to, said)
