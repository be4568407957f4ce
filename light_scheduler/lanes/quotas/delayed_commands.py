"""Delaying commands over a rate of their tenant, if its rules say so, and those that wait for room.

    1. A command over the rate, or one whose tenant may get room from other partitions, is kept in the lane's state,
       behind those of its tenant that wait there already, in the transaction that reads it. So is every command of the
       tenant while any waits: none overtakes another.
    2. A cycle first carries out what waits, as far as rates and room allow, in order and as if it were read just then;
       the command leaves the queue in the same transaction.
    3. While a lane reads a backlog, rates count by when commands were recorded. So what waits goes on when a command is
       read that was recorded when there was room again, and just before it. Once the backlog is read, the lane catches
       up: before anything is fired, what waits goes on if its turn has come since its tenant's last command.

Other tenants do not wait, and nothing of a queue is in memory but its ends. Reports of consumers are never delayed:
they say what has happened to a firing, and change no schedule but the one that waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.readable import CanRead, all_can_be_read
from light_scheduler.lanes.transaction_writes import Transaction
from light_scheduler.model import BulkCommand, Command, CompleteCommand, ExtendCommand
from light_scheduler.model.tenant_rules import OverRate, Tenant
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.delayed_state import (
    DelayedCommand,
    DelayedQueue,
    decode_delayed,
    delayed_key,
    encode_delayed,
    encode_queue,
    queue_key,
)
from light_scheduler.wire.lane_marks import Origin

from .commands import CommandQuotas
from .room_lending import RoomLending

MOST_DELAYED = 100_000
MOST_DELAYED_BYTES = 256 << 20
"""Of a tenant in a partition: commands that wait, and what they take. Those above are rejected."""

FOR_COPIES = 2
"""How many times as much may wait before copies of bulk commands are rejected too: other partitions carry those out."""


def longest_delay(tenant: Tenant | None, share: float) -> float:
    """Return for how long (ms) a copy of a bulk command may wait in a lane with a share of the rate of its tenant.

    What waits already goes on at the rate also where the rules have come to reject.
    """
    if tenant is None:
        return 0.0
    if tenant.rules.over_rate is OverRate.DELAY and tenant.rules.max_pending is not None:
        return inf  # until there is room
    rate = tenant.rules.commands_per_second
    return 0.0 if rate is None else FOR_COPIES * MOST_DELAYED * 1_000 / (rate * share)


class Delaying:
    """The delayed commands of a partition, for the length of one cycle.

    One that cannot be read waits on: the worker that has delayed it knew the schemas that it needs.
    """

    def __init__(
        self,
        transaction: Transaction,
        quotas: CommandQuotas,
        lending: RoomLending,
        can_read: CanRead = all_can_be_read,
    ) -> None:
        self._transaction = transaction
        self._overlay = transaction.overlay
        self._quotas = quotas
        self._lending = lending
        self._can_read = can_read
        self._held: set[str] = set()
        self._queues = self._overlay.others.delayed()
        self.goes_on_at: int | None = None
        """When (UTC epoch ms) the first of the tenants goes on that were asked for and have to wait."""
        self.taken = self.taken_bytes = 0
        """How many were taken out of their queues, and what they took there."""

    @property
    def tenants(self) -> list[str]:
        """The tenants of which commands wait."""
        return list(self._queues)

    @property
    def waiting(self) -> int:
        """How many commands wait."""
        return sum(queue.waiting for queue in self._queues.values())

    @property
    def ends(self) -> dict[str, int]:
        """The number behind the last command of each queue."""
        return {name: queue.end for name, queue in self._queues.items()}

    def waits_before(self, ends: Mapping[str, int]) -> bool:
        """Return whether a command waits that did so when queues ended there; one that began anew counts from 0."""
        return any(
            (queue := self._queues.get(name)) is not None and queue.first < end <= queue.end
            for name, end in ends.items()
        )

    def waiting_of(self, name: str) -> int:
        """Return how many commands of a tenant wait."""
        queue = self._queues.get(name)
        return 0 if queue is None else queue.waiting

    def takes(self, record: CommandRecord, command: Command | BulkCommand, origin: Origin | None) -> bool:
        """1. Keep a command as it was read, if it has to wait; return whether it was. Raises InvalidCommand."""
        if isinstance(command, CompleteCommand | ExtendCommand):
            return False
        tenant = self._transaction.tenants.get(command.tenant)
        asks = origin is not None and origin.asks  # as a worker has signed: another lane waits for it
        is_bulk = isinstance(command, BulkCommand) and command.selection is not None
        is_copy = origin is not None and bool(origin.token) and is_bulk  # as anyone may claim
        if command.tenant in self._queues:
            if tenant is not None and origin is None and self._rejects(tenant):
                raise self._quotas.over_rate(f"commands of tenant {tenant.name} wait: send it again later")
        elif tenant is None or asks or is_copy or not self._quotas.delays(command, tenant):
            return False
        self._add(record, command.tenant, inf if asks else FOR_COPIES if is_copy else 1)
        return True

    def takes_asked(self, record: CommandRecord, command: Command) -> bool:
        """1. Keep a command that another lane has asked about, if it has to wait; return whether it was.

        That lane carries it out, and counts it, as a rule. It is counted here if its schedule cannot be moved to there.
        """
        tenant = self._transaction.tenants.get(command.tenant)
        if tenant is None or not self._quotas.delays(command, tenant):
            return False
        self._add(record, command.tenant, inf)
        return True

    def wait_for_room(self, record: CommandRecord | None, name: str) -> None:
        """1. Keep a command as it was read, since it has to wait for room; None: the first of the queue waits on.

        Raises InvalidCommand.
        """
        if record is None:
            self._held.add(name)
        else:
            self._add(record, name)

    def first(self, name: str, *, catches_up: bool = False) -> DelayedCommand | None:
        """2. Return the first command of a tenant's queue; None: none waits, or it has to wait on.

        3. If the lane `catches_up`, it goes on if its turn came before.
        """
        if name not in self._queues or self._waits_on(name, catches_up=catches_up):
            return None
        return self._first(name)

    def first_before(self, command: Command | BulkCommand) -> DelayedCommand | None:
        """3. Return the first command of the queue of a command's tenant, if there was room when that was recorded.

        None: none waits, or it has to wait on.
        """
        name = command.tenant
        if name not in self._queues:
            return None
        tenant = self._transaction.tenants.get(name)
        if tenant is None:
            return self._first(name)
        has_rate = tenant.rules.commands_per_second is not None
        if has_rate and (self._quotas.may_reject(tenant) or self._quotas.delays(command, tenant)):
            return None
        return None if self._waits_for_room(tenant) else self._first(name)

    def drop_first(self, name: str) -> bool:
        """2. Take the first command of a tenant out of its queue, unless it has to wait on; return whether it was."""
        if name in self._held:
            self._held.discard(name)
            self._waits_on(name)
            return False
        queue = self._queues[name]
        key = delayed_key(name, queue.first)
        size = len(self._overlay.others.get(key) or b"")
        self._transaction.store_record(key, None)
        self.taken += 1
        self.taken_bytes += size
        self._keep(name, DelayedQueue(queue.first + 1, queue.end, queue.size - size))
        return True

    def _first(self, name: str) -> DelayedCommand | None:
        command = decode_delayed(self._overlay.others.get(delayed_key(name, self._queues[name].first)) or b"")
        return command if self._can_read(command) else None

    def _waits_on(self, name: str, *, catches_up: bool = False) -> bool:
        tenant = self._transaction.tenants.get(name)
        at = self._quotas.goes_on_at(tenant, catches_up=catches_up)
        if at is None:
            return tenant is not None and self._waits_for_room(tenant)
        self._look_again(at)
        return True

    def _waits_for_room(self, tenant: Tenant) -> bool:
        at = self._lending.goes_on_at(tenant, self.waiting_of(tenant.name))
        if at is not None:
            self._look_again(at)
        return at is not None

    def _look_again(self, at: int) -> None:
        self.goes_on_at = at if self.goes_on_at is None else min(at, self.goes_on_at)

    def _rejects(self, tenant: Tenant) -> bool:
        """Return whether the rules have changed: what came before waits, and what comes is rejected."""
        return self._quotas.may_reject(tenant) and self._quotas.goes_on_at(tenant) is not None

    def _add(self, record: CommandRecord, name: str, times: float = 1) -> None:
        """Keep a command behind all others of a tenant, if there is room when the bounds are so many times as large."""
        queue, kept = self._queues.get(name, DelayedQueue()), encode_delayed(record)
        if queue.waiting >= times * MOST_DELAYED or queue.size + len(kept) > times * MOST_DELAYED_BYTES:
            raise self._quotas.over_rate(
                f"{queue.waiting} commands of tenant {name} wait in this partition already: send it again later"
            )
        try:
            self._transaction.store_record(delayed_key(name, queue.end), kept)
        except RecordTooLargeError as error:
            raise InvalidCommand("payload", f"is too large to be delayed with its headers: {error}") from error
        self._transaction.delayed += 1
        self._keep(name, DelayedQueue(queue.first, queue.end + 1, queue.size + len(kept)))

    def _keep(self, name: str, queue: DelayedQueue) -> None:
        if queue.waiting:
            self._queues[name] = queue
            self._transaction.store_record(queue_key(name), encode_queue(queue))
        else:
            del self._queues[name]
            self._transaction.store_record(queue_key(name), None)
