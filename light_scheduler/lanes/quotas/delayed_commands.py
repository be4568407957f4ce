"""Delays commands over the rate of their tenant, if its rules say so, and commands that wait for room.

    1. A command over the rate, or one whose tenant may get room from other partitions, is stored in the lane's state,
       in the transaction that reads it, after the waiting commands of its tenant. While any waits, all commands of the
       tenant are stored there, so none overtakes another.
    2. A cycle first executes waiting commands, as far as rates and room allow, in order and as if they had just been
       read. A command leaves the queue in the same transaction.
    3. While a lane reads a backlog, rates count by when commands were recorded. So when it reads a command that was
       recorded after there was room again, it executes the waiting ones just before that. Once the backlog is read, the
       lane catches up: before anything fires, a waiting command is executed if its turn has come since its tenant's
       last command.

Other tenants do not wait, and only the ends of a queue are in memory. Reports of consumers are never delayed: they say
what happened to a firing, and change only the schedule that waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.input.readable import CanRead, all_can_be_read
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import BulkCommand, Command, CompleteCommand, ExtendCommand
from light_scheduler.model.tenant_rules import OverRate, Tenant
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.delayed_state import (
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
"""Limits for a tenant in a partition: waiting commands, and their bytes. Further commands are rejected."""

FOR_COPIES = 2
"""The factor of these limits for commands that concern other partitions: copies of bulk commands, which those execute
too, and commands that those ask about.
"""


def longest_delay(tenant: Tenant | None, share: float) -> float:
    """Return how long (ms) a copy of a bulk command may wait in a lane with this share of its tenant's rate.

    Commands that already wait are executed at the rate, even if the rules have changed to reject.
    """
    if tenant is None:
        return 0.0
    if tenant.rules.over_rate is OverRate.DELAY and tenant.rules.max_pending is not None:
        return inf  # until there is room
    rate = tenant.rules.commands_per_second
    return 0.0 if rate is None else FOR_COPIES * MOST_DELAYED * 1_000 / (rate * share)


class Delaying:
    """The delayed commands of a partition, for the length of one cycle.

    A command that cannot be read waits on: the worker that delayed it knew the schemas that it needs.
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
        """The earliest time (UTC epoch ms) at which one of the checked tenants can go on, if any has to wait."""
        self.taken = self.taken_bytes = 0
        """The number of commands taken out of their queues, and their bytes there."""

    @property
    def tenants(self) -> list[str]:
        """The tenants with waiting commands."""
        return list(self._queues)

    @property
    def waiting(self) -> int:
        """The number of waiting commands."""
        return sum(queue.waiting for queue in self._queues.values())

    @property
    def ends(self) -> dict[str, int]:
        """The number that follows the last command of each queue, by tenant."""
        return {name: queue.end for name, queue in self._queues.items()}

    def waits_before(self, ends: Mapping[str, int]) -> bool:
        """Return whether a command from before these queue ends still waits. An emptied queue restarts at 0."""
        return any(
            (queue := self._queues.get(name)) is not None and queue.first < end <= queue.end
            for name, end in ends.items()
        )

    def waiting_of(self, name: str) -> int:
        """Return how many commands of a tenant wait."""
        queue = self._queues.get(name)
        return 0 if queue is None else queue.waiting

    def takes(self, record: CommandRecord, command: Command | BulkCommand, origin: Origin | None) -> bool:
        """1. Store a command as it was read, if it has to wait. Return whether it was stored. Raises InvalidCommand."""
        if isinstance(command, CompleteCommand | ExtendCommand):
            return False
        tenant = self._transaction.tenants.get(command.tenant)
        asks = origin is not None and origin.asks  # signed by a worker: another lane waits for it
        is_bulk = isinstance(command, BulkCommand) and command.selection is not None
        is_copy = origin is not None and bool(origin.token) and is_bulk  # unsigned: anyone may claim that
        if command.tenant in self._queues:
            if tenant is not None and origin is None and self._rejects(tenant):
                raise self._quotas.over_rate(f"commands of tenant {tenant.name} wait: send it again later")
        elif tenant is None or asks or is_copy or not self._quotas.delays(command, tenant):
            return False
        self._add(record, command.tenant, FOR_COPIES if asks or is_copy else 1)
        return True

    def takes_asked(self, record: CommandRecord, command: Command) -> bool:
        """1. Store a command that another lane has asked about, if it has to wait. Return whether it was stored.

        Usually that lane executes and counts the command. It is counted here if its schedule cannot move there. Raises
        InvalidCommand.
        """
        tenant = self._transaction.tenants.get(command.tenant)
        if tenant is None or not self._quotas.delays(command, tenant):
            return False
        self._add(record, command.tenant, FOR_COPIES)
        return True

    def wait_for_room(self, record: CommandRecord | None, name: str) -> None:
        """1. Store a command as it was read, as it has to wait for room. With None, the first in the queue waits on.

        Raises InvalidCommand.
        """
        if record is None:
            self._held.add(name)
        else:
            self._add(record, name)

    def first(self, name: str, *, catches_up: bool = False) -> CommandRecord | None:
        """2. Return the first command of a tenant's queue, or None if there is none or it has to wait on.

        3. If the lane `catches_up`, it need not wait if its turn came before.
        """
        if name not in self._queues or self._waits_on(name, catches_up=catches_up):
            return None
        return self._first(name)

    def first_before(self, command: Command | BulkCommand) -> CommandRecord | None:
        """3. Return the first waiting command of a command's tenant, if there was room when `command` was recorded.

        Return None if there is none or it has to wait on.
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
        """2. Remove the first command of a tenant's queue, unless it has to wait on. Return whether it was removed."""
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

    def _first(self, name: str) -> CommandRecord | None:
        kept = decode_delayed(self._overlay.others.get(delayed_key(name, self._queues[name].first)) or b"")
        command = kept.read_in(self._transaction.context.partition)
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
        """Return whether new commands are rejected while older ones wait, as the rules have changed."""
        return self._quotas.may_reject(tenant) and self._quotas.goes_on_at(tenant) is not None

    def _add(self, record: CommandRecord, name: str, times: int = 1) -> None:
        """Append a command to a tenant's queue, if there is room. The limits are `times` as large as usual."""
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
