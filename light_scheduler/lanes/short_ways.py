"""When plain commands and firings may go a shorter way than all others."""

from __future__ import annotations

from light_scheduler.model import DEFAULT_TENANT

from .transaction import Transaction

HISTORY_ROOM = 4_096
"""Bytes of a history event beside its id. A topic that takes less is for the general way, which shortens events."""


def may_be_short(transaction: Transaction) -> bool:
    """Tell whether nothing special holds for the default tenant in a transaction."""
    context = transaction.context
    room = context.targets[context.names.history].max_message_bytes
    has_room = room >= HISTORY_ROOM + 2 * context.limits.max_id_bytes  # escaped, an id may be twice as long
    return context.short_ways and has_room and not transaction.tenants.get(DEFAULT_TENANT)
