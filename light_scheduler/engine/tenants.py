"""Applies the rules of a tenant to commands, firings and shares. Pure."""

from __future__ import annotations

import msgspec

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import BulkCommand, Command, ScheduleCommand, Shares
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantState


def with_default_target(command: ScheduleCommand, tenant: Tenant | None) -> ScheduleCommand | None:
    """Return a command without a target with its tenant's default target; None if there is none."""
    topic = None if tenant is None else tenant.rules.default_target
    if topic is None:
        return None
    return msgspec.structs.replace(command, target=msgspec.structs.replace(command.target, topic=topic))


def check_tenant(command: Command | BulkCommand, tenant: Tenant) -> None:
    """Raise InvalidCommand, with the field, if the rules of its tenant do not allow a command."""
    if tenant.state is TenantState.DELETED:
        raise InvalidCommand("schedule-tenant", f"tenant {tenant.name} was deleted")
    if not isinstance(command, ScheduleCommand):
        return
    if (reason := refusal_of(tenant, command.target.topic)) is not None:
        raise InvalidCommand("schedule-target-topic", reason)
    most, payload = tenant.rules.max_payload_bytes, command.payload
    if most is not None and payload is not None and len(payload) > most:
        raise InvalidCommand(
            "payload", f"has {len(payload)} bytes; the rules of tenant {tenant.name} allow at most {most}"
        )


def refusal_of(tenant: Tenant, topic: str) -> str | None:
    """Return why messages of a tenant may not go to a topic; None if they may."""
    if tenant.may_aim_at(topic):
        return None
    return f"the rules of tenant {tenant.name} do not allow the target {topic}"


def shares_under(shares: Shares, book: TenantBook) -> Shares:
    """Return shares with the weights and rates in tenants' rules, which override those in the settings."""
    weights, rates = dict(shares.weights), dict(shares.rates)
    for tenant in book.tenants.values():
        if tenant.rules.weight is not None:
            weights[tenant.name] = tenant.rules.weight
        if tenant.rules.firings_per_second is not None:
            rates[tenant.name] = tenant.rules.firings_per_second
    return Shares(weights, shares.rate, rates)


def share_of(quota: int, number: int, of: int) -> int:
    """Return the part of a quota for partition `number` of `of`. The sum of all parts is exactly the quota."""
    whole, rest = divmod(quota, of)
    return whole + (number < rest)
