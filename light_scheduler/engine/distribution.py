"""Chooses the target partition of a message by the rules of its tenant."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from light_scheduler.model import BulkCommand, Command, ScheduleCommand
from light_scheduler.model.tenant_rules import Tenant, parse_distribution


def distributed(command: Command | BulkCommand, tenant: Tenant, in_turn: Callable[[ScheduleCommand], bytes]) -> Command:
    """Return a command with the partition chosen by its tenant's rules, unless it has one itself.

    A series keeps its partition, and so its order. For round-robin, `in_turn` returns the next partition key of the
    tenant and topic.
    """
    if not isinstance(command, ScheduleCommand) or tenant.rules.distribution is None:
        return command
    target = command.target
    if target.partition is not None or target.partition_key is not None:
        return command
    rule = parse_distribution(tenant.rules.distribution)
    key: bytes | None = None
    if rule.is_round_robin:
        key = in_turn(command)
    elif rule.header is not None:
        key = next((value for name, value in command.headers if name == rule.header), None)
    chosen = msgspec.structs.replace(target, partition=rule.partition, partition_key=key)
    return msgspec.structs.replace(command, target=chosen)
