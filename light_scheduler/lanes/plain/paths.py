"""Decides when plain commands and firings may take the fast path."""

from __future__ import annotations

from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import DEFAULT_TENANT

HISTORY_ROOM = 65_536
"""Maximum size (bytes) of a plain history event.

It contains an id of at most 10,000 bytes, the limit of any setting, up to three times: in its key and, escaped, in its
value. A topic with a lower limit needs the general path, which shortens events.
"""


def may_be_short(transaction: Transaction, tenant: str = DEFAULT_TENANT) -> bool:
    """Return whether plain commands and firings of a tenant may take the fast path in a transaction."""
    context = transaction.context
    has_room = context.targets[context.names.history].max_message_bytes >= HISTORY_ROOM
    return context.plain_paths and has_room and not transaction.tenants.get(tenant)
