"""Admission control: whether a command is carried out now, waits, or is rejected, by the rules of its tenant."""

from __future__ import annotations

from typing import NamedTuple, Self

from light_scheduler.model import Command
from light_scheduler.model.lending import RoomAsk, RoomGrant
from light_scheduler.model.rate_lending import RateAsk
from light_scheduler.model.tenant_rules import Tenant
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.lane_marks import Loan, Origin

from .delayed_commands import Delaying
from .lending import RoomLending
from .quotas import Quotas
from .rate_lending import RateLending
from .restrictions import Restrictions
from .transaction import Transaction


class Admission(NamedTuple):
    """Of one cycle: `quotas` reject commands, `delaying` has them wait, `lending` finds room for schedules.

    `rates` finds tokens for what is held back.
    """

    quotas: Quotas
    lending: RoomLending
    delaying: Delaying
    rates: RateLending

    @classmethod
    def to(cls, transaction: Transaction, restrictions: Restrictions) -> Self:
        """Return what lets commands into a transaction."""
        lending = RoomLending(transaction, left_alone=restrictions.left_alone)
        rates = RateLending(transaction, left_alone=restrictions.left_alone)
        quotas = Quotas(transaction, lending, rates)
        return cls(quotas, lending, Delaying(transaction, quotas, lending, restrictions.can_read), rates)

    def lend(self, record: CommandRecord, mark: Loan) -> None:
        """Take what another partition asks or answers about room or rates. Raises InvalidCommand, LaneError."""
        if isinstance(mark, RoomAsk):
            self.lending.answer(record, mark, self.delaying.waiting_of(mark.tenant))
        elif isinstance(mark, RoomGrant):
            self.lending.take(record, mark)
        elif isinstance(mark, RateAsk):
            self.rates.note(record, mark)
        else:
            self.rates.take(record, mark)

    def waits_for_room(self, tenant: Tenant, command: Command, origin: Origin | None) -> bool:
        """Tell whether a command for a new schedule waits until others have answered whether they have room."""
        if self.lending.has_room(tenant) or (origin is not None and (origin.partitions or origin.asks)):
            return False  # others wait for the outcome of a command that moves along with schedules
        if self.quotas.is_over(tenant, command.recorded_at):
            return False
        return self.lending.waits(tenant, self.delaying.waiting_of(tenant.name))
