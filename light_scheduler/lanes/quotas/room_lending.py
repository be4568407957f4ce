"""Lends room for pending schedules between the partitions of a commands topic (see `engine.room_lending`).

    1. A lane whose tenant has no room left asks other lanes, in the transaction that finds that out. The command waits
       at the head of its tenant's delayed commands (`delayed_commands`).
    2. A lane that is asked takes the given room from its balance, in the transaction that answers.
    3. The requester adds the room to its own balance in the transaction that reads the answer, and executes waiting
       commands. If no lane has room, or answers in time, the command is rejected.

Balances are part of the state, so a crash neither loses nor doubles room, and they never exceed the quota together.
"""

from __future__ import annotations

from light_scheduler.engine.room_lending import (
    ANSWER_MS,
    Others,
    Search,
    ahead,
    all_others,
    answered,
    found,
    given,
    is_newer,
    is_waiting,
    less,
    search,
    share_with,
    under,
)
from light_scheduler.errors import LaneError
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model.room_lending import Lending, QuotaVersion, RoomAsk, RoomGrant
from light_scheduler.model.tenant_rules import Tenant
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.room_lending import room_headers
from light_scheduler.wire.room_state import decode_room, encode_room, room_key


class RoomLending:
    """The room of tenants in a partition in one cycle. Partitions that are `left_alone` are not asked or answered."""

    def __init__(self, transaction: Transaction, *, left_alone: frozenset[int] = frozenset()) -> None:
        context = transaction.context
        self._transaction = transaction
        self._overlay = transaction.overlay
        self._now = transaction.now
        self._topic = context.commands_topic
        self._partition = context.partition
        self.left_alone = left_alone
        self._forwards = context.dialect.forwards
        self._known: dict[str, Lending] = {}

    def share(self, tenant: Tenant) -> int | None:
        """Return how many pending schedules a tenant may have here, or None if unlimited."""
        lending = self._of(tenant.name)
        return None if lending is None else share_with(lending, self._partition)

    def has_room(self, tenant: Tenant) -> bool:
        """Return whether a tenant may have one more pending schedule here."""
        return tenant.rules.max_pending is None or self._spare(tenant.name) > 0

    def waits(self, tenant: Tenant, waiting: int = 0) -> bool:
        """1. Ask for room that a tenant does not have here. Return whether its command must wait for it.

        `waiting` is the number of waiting commands of the tenant.
        """
        return self._search(tenant.name, waiting) is not None

    def goes_on_at(self, tenant: Tenant, waiting: int) -> int | None:
        """3. Return when (UTC epoch ms) to check again for room, or None if waiting commands need not wait."""
        lending = self._of(tenant.name)
        if lending is None or not lending.search_until:
            return None
        if self.has_room(tenant):
            self._keep(tenant.name, found(lending))
            return None
        return self._search(tenant.name, waiting)

    def ask_ahead(self, tenant: Tenant) -> None:
        """1. Ask for room early, if little is left."""
        if (lending := self._of(tenant.name)) is not None and self._lends:
            step = ahead(lending, self._others, self._spare(tenant.name), self._now)
            self._ask(tenant.name, lending, step, 0)

    def answer(self, record: CommandRecord, ask: RoomAsk, waiting: int) -> None:
        """2. Give room that the `waiting` commands here do not need. Raises LaneError."""
        if ask.version.partitions > self._transaction.context.partitioning.partitions:
            raise LaneError(f"another partition knows {ask.version.partitions} partitions, this one fewer")
        if ask.partition in self.left_alone:
            return
        lending, amount, may_have_more = self._of(ask.tenant), 0, True
        if lending is not None and lending.version == ask.version:
            spare = self._spare(ask.tenant)
            amount = given(ask, spare - waiting) if record.timestamp + ANSWER_MS > self._now else 0
            may_have_more = not amount and (spare > 0 or is_waiting(lending, self._now))
            if amount:
                lending = self._keep(ask.tenant, less(lending, amount))
        version = ask.version if lending is None else lending.version
        grant = RoomGrant(ask.tenant, self._partition, ask.number, version, amount, may_have_more)
        self._send(grant, ask.partition)

    def take(self, grant: RoomGrant) -> None:
        """3. Take the answer of another partition."""
        lending = self._of(grant.tenant)
        following = None if lending is None else answered(lending, grant, self._now)
        if following is not None:
            self._keep(grant.tenant, following)

    def follow_rules(self) -> None:
        """Forget the room of tenants without a limit, and ask for room for tenants above their limit.

        Both may happen when a rule has changed, or schedules were moved.
        """
        tenants = self._transaction.tenants
        counted = tenants.counted
        for name, lending in self._overlay.others.rooms().items():
            if name in counted or is_newer(lending, tenants.pending_since.get(name, 0)):
                continue
            if (tenant := tenants.get(name)) is None or tenant.is_readable:  # else the quota may be unchanged
                self._transaction.store_record(room_key(name), None)
        for name in counted if self._lends else ():
            limited, spare = self._of(name), self._spare(name)
            if limited is not None and spare < 0 and not limited.search_until:
                self._ask(name, limited, all_others(limited, self._others, self._now), -spare)

    @property
    def _lends(self) -> bool:
        partitioning = self._transaction.context.partitioning
        return self._forwards and len(self.left_alone) < partitioning.partitions - 1 and bool(partitioning.secret)

    @property
    def _others(self) -> Others:
        return Others(self._partition, self.left_alone)

    def _search(self, name: str, waiting: int) -> int | None:
        lending = self._of(name)
        if lending is None or not (self._lends and lending.version.most):
            return None
        step = search(lending, self._others, self._now)
        self._ask(name, lending, step, max(1, waiting) - min(0, self._spare(name)))
        return step.goes_on_at

    def _ask(self, name: str, before: Lending, step: Search, wanted: int) -> None:
        if step.lending != before:
            self._keep(name, step.lending)
        spare = self._spare(name)
        for partition in step.ask:
            each = -(-wanted // len(step.ask))
            ask = RoomAsk(name, self._partition, step.lending.number, step.lending.version, spare, each)
            self._send(ask, partition)

    def _send(self, said: RoomAsk | RoomGrant, to: int) -> None:
        secret = self._transaction.context.partitioning.secret
        self._transaction.batches.add((self._topic, to), None, None, room_headers(said, self._topic, to, secret))

    def _spare(self, name: str) -> int:
        lending = self._of(name)
        return 0 if lending is None else share_with(lending, self._partition) - self._overlay.pending_of(name)

    def _of(self, name: str) -> Lending | None:
        """Return the lent and borrowed room of a tenant, or None if it has no limit."""
        if (lending := self._known.get(name)) is not None:
            return lending
        tenants = self._transaction.tenants
        most = None if (tenant := tenants.get(name)) is None else tenant.rules.max_pending
        if most is None:
            return None
        partitions = self._transaction.context.partitioning.partitions
        version = QuotaVersion(tenants.pending_since.get(name, 0), most, partitions)
        record = self._overlay.others.get(room_key(name))
        lending = self._known[name] = under(None if record is None else decode_room(record), version)
        return lending

    def _keep(self, name: str, lending: Lending) -> Lending:
        self._known[name] = lending
        self._transaction.store_record(room_key(name), encode_room(lending))
        return lending
