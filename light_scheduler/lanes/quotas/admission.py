"""Admission control: whether a command is executed now, waits, or is rejected, by the rules of its tenant."""

from __future__ import annotations

from typing import NamedTuple, Self

from light_scheduler.lanes.failures.restrictions import Restrictions
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import Command
from light_scheduler.model.rate_lending import RateAsk
from light_scheduler.model.room_lending import RoomAsk, RoomGrant
from light_scheduler.model.tenant_rules import Tenant
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.lane_marks import Loan, Origin
from light_scheduler.wire.signatures import require_signed_for

from .commands import CommandQuotas
from .delayed_commands import Delaying
from .rate_lending import RateLending
from .room_lending import RoomLending


class Admission(NamedTuple):
    """The admission control of one cycle: `quotas` rejects commands, and `delaying` delays them.

    `room_lending` finds room for schedules, and `rate_lending` finds tokens for work that is held back.
    """

    transaction: Transaction
    quotas: CommandQuotas
    room_lending: RoomLending
    delaying: Delaying
    rate_lending: RateLending

    @classmethod
    def to(cls, transaction: Transaction, restrictions: Restrictions) -> Self:
        """Return the admission control of a transaction."""
        room = RoomLending(transaction, left_alone=restrictions.left_alone)
        rates = RateLending(transaction, left_alone=restrictions.left_alone)
        quotas = CommandQuotas(transaction, room, rates)
        return cls(transaction, quotas, room, Delaying(transaction, quotas, room, restrictions.can_read), rates)

    def lend(self, record: CommandRecord, mark: Loan) -> None:
        """Process another partition's question or answer about room or rates.

        Raises InvalidCommand unless a worker has signed it for this partition, and LaneError if this lane is behind.
        """
        context = self.transaction.context
        require_signed_for(record, context.commands_topic, context.partitioning.secret)
        if isinstance(mark, RoomAsk):
            self.room_lending.answer(record, mark, self.delaying.waiting_of(mark.tenant))
        elif isinstance(mark, RoomGrant):
            self.room_lending.take(mark)
        elif isinstance(mark, RateAsk):
            self.rate_lending.note(record, mark)
        else:
            self.rate_lending.take(mark)

    def waits_for_room(self, tenant: Tenant, command: Command, origin: Origin | None) -> bool:
        """Return whether a command for a new schedule waits until other partitions say whether they have room."""
        if self.room_lending.has_room(tenant) or (origin is not None and (origin.partitions or origin.asks)):
            return False  # others wait for the outcome of a command that moves with schedules
        if self.quotas.is_over(tenant, command.recorded_at):
            return False
        return self.room_lending.waits(tenant, self.delaying.waiting_of(tenant.name))
