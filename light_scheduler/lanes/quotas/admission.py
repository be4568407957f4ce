"""Admission control: whether a command is carried out now, waits, or is rejected, by the rules of its tenant."""

from __future__ import annotations

from typing import NamedTuple, Self

from light_scheduler.lanes.failures.restrictions import Restrictions
from light_scheduler.lanes.transaction_writes import Transaction
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
    """Of one cycle: `quotas` reject commands, `delaying` has them wait.

    `room_lending` finds room for schedules, `rate_lending` tokens for what is held back.
    """

    transaction: Transaction
    quotas: CommandQuotas
    room_lending: RoomLending
    delaying: Delaying
    rate_lending: RateLending

    @classmethod
    def to(cls, transaction: Transaction, restrictions: Restrictions) -> Self:
        """Return what lets commands into a transaction."""
        room = RoomLending(transaction, left_alone=restrictions.left_alone)
        rates = RateLending(transaction, left_alone=restrictions.left_alone)
        quotas = CommandQuotas(transaction, room, rates)
        return cls(transaction, quotas, room, Delaying(transaction, quotas, room, restrictions.can_read), rates)

    def lend(self, record: CommandRecord, mark: Loan) -> None:
        """Take what another partition asks or answers about room or rates.

        Raises InvalidCommand unless a worker has signed it for this partition, LaneError if this lane is behind.
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
        """Return whether a command for a new schedule waits until others have answered whether they have room."""
        if self.room_lending.has_room(tenant) or (origin is not None and (origin.partitions or origin.asks)):
            return False  # others wait for the outcome of a command that moves along with schedules
        if self.quotas.is_over(tenant, command.recorded_at):
            return False
        return self.room_lending.waits(tenant, self.delaying.waiting_of(tenant.name))
