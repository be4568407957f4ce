"""When plain commands and firings may take a shorter path than the general one."""

from __future__ import annotations

from light_scheduler.lanes.transaction_writes import Transaction
from light_scheduler.model import DEFAULT_TENANT

HISTORY_ROOM = 65_536
"""Bytes of a history event at most: an id of 10,000 bytes, which no setting goes beyond, is in it up to three times,
being in its key and, escaped, in its value. A topic that takes less is for the general way, which shortens events."""


def may_be_short(transaction: Transaction, tenant: str = DEFAULT_TENANT) -> bool:
    """Return whether nothing special holds for a tenant in a transaction."""
    context = transaction.context
    has_room = context.targets[context.names.history].max_message_bytes >= HISTORY_ROOM
    return context.plain_paths and has_room and not transaction.tenants.get(tenant)
