"""Enforces the quotas of tenants on the commands of a cycle: `commands_per_second` and `max_pending`.

Each partition that keys belong to has an equal part of a quota. It lends the part that it does not need to others:
tokens of rates (`rate_lending`), and room for pending schedules (`room_lending`). Firing rates are in
`engine.firing_rates`.
"""

from __future__ import annotations

from light_scheduler.errors import InvalidCommand
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import Command, CompleteCommand, ExtendCommand
from light_scheduler.model.rate_lending import RateKind, RateName
from light_scheduler.model.tenant_rules import QUOTA, OverRate, Tenant

from .rate_lending import RateLending
from .room_lending import RoomLending


class CommandQuotas:
    """The command quotas of one cycle, which counts rejections in its transaction."""

    def __init__(self, transaction: Transaction, lending: RoomLending, rate_lending: RateLending) -> None:
        self._transaction = transaction
        self._lending = lending
        self._rate_lending = rate_lending
        self._rates = transaction.context.memory.command_rates

    def take(self, command: Command, tenant: Tenant) -> None:
        """Count a command. Raises InvalidCommand if its tenant has sent too many. Reports on firings do not count."""
        rate = tenant.rules.commands_per_second
        if rate is None or isinstance(command, CompleteCommand | ExtendCommand):
            return
        name, now = RateName(RateKind.COMMANDS, tenant.name), self._transaction.now
        if not self._rates.take(tenant.name, rate, command.recorded_at, now):
            self._rate_lending.hold(name, rate)
            raise self.over_rate(
                f"tenant {tenant.name} sends more than {rate:g} commands a second: send it again later"
            )
        can_wait = tenant.rules.over_rate is OverRate.DELAY
        self._rate_lending.took(name, rate, self._rates.left(tenant.name), can_wait=can_wait)

    def over_rate(self, reason: str) -> InvalidCommand:
        """Count a command over its tenant's rate, and return the error to reject it with."""
        self._transaction.over_quota += 1
        return InvalidCommand(f"{QUOTA}commands_per_second", reason)

    def delays(self, command: Command, tenant: Tenant) -> bool:
        """Return whether to delay a command: its tenant has sent too many, and its rule is to delay them."""
        return not self.may_reject(tenant) and self.is_over(tenant, command.recorded_at)

    def may_reject(self, tenant: Tenant) -> bool:
        """Return whether commands above the rate of a tenant are rejected.

        In an added partition they wait, whatever the rule is, as it may not have its part of the rate yet.
        """
        return tenant.rules.over_rate is not OverRate.DELAY and not self._rates.is_new

    def goes_on_at(self, tenant: Tenant | None, *, catches_up: bool = False) -> int | None:
        """Return when (UTC epoch ms) delayed commands of a tenant can be executed, or None for now.

        If the lane `catches_up`, that is now if the next one's turn has come since the tenant's last command.
        """
        if tenant is None or (catches_up and self._catches_up(tenant)):
            return None
        return self._rates.ready_at(tenant.name) if self.is_over(tenant, self._transaction.now) else None

    def is_over(self, tenant: Tenant, recorded_at: int) -> bool:
        """Return whether a tenant has no token for a command that was recorded at an instant (UTC epoch ms)."""
        rate = tenant.rules.commands_per_second
        if rate is None:
            return False
        if self._rates.allows(tenant.name, rate, recorded_at, self._transaction.now):
            return False
        self._rate_lending.hold(RateName(RateKind.COMMANDS, tenant.name), rate)
        return True

    def check_room(self, tenant: Tenant) -> None:
        """Raise InvalidCommand if a tenant has reached its limit of pending schedules."""
        if self._lending.has_room(tenant):
            return
        self._transaction.over_quota += 1
        most, share = tenant.rules.max_pending, self._lending.share(tenant)
        raise InvalidCommand(
            f"{QUOTA}max_pending",
            f"tenant {tenant.name} may have {most} pending schedules, {share} of them in this partition, and has "
            "reached that: cancel some, or wait until some have fired",
        )

    def _catches_up(self, tenant: Tenant) -> bool:
        rate = tenant.rules.commands_per_second
        return rate is not None and self._rates.catch_up(tenant.name, rate, self._transaction.now)
