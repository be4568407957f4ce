"""Which partition of its target a message goes to, by the rules of its tenant."""

from __future__ import annotations

import msgspec

from light_scheduler.model import BulkCommand, Command, ScheduleCommand
from light_scheduler.model.tenant_rules import Tenant, parse_distribution


def distributed(command: Command | BulkCommand, tenant: Tenant) -> Command:
    """Return a command with the partition that its tenant's rules choose, unless it chooses one itself.

    A series keeps its partition, and so its order. In turn means by a hash of the place of the command: offsets may be
    all even, since markers of transactions are offsets too.
    """
    if not isinstance(command, ScheduleCommand) or tenant.rules.distribution is None:
        return command
    target = command.target
    if target.partition is not None or target.partition_key is not None:
        return command
    rule = parse_distribution(tenant.rules.distribution)
    key: bytes | None = None
    if rule.is_round_robin:
        key = b"%d-%d" % (command.partition, command.offset)
    elif rule.header is not None:
        key = next((value for name, value in command.headers if name == rule.header), None)
    chosen = msgspec.structs.replace(target, partition=rule.partition, partition_key=key)
    return msgspec.structs.replace(command, target=chosen)
