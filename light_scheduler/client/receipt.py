"""Receipts of commands that are in the log but not answered yet."""

from __future__ import annotations

import msgspec


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """A command that the broker has acknowledged: it will be carried out. `partition` and `offset` name its record."""

    tenant: str
    id: str
    partition: int
    offset: int


class Unanswered(msgspec.Struct, frozen=True, gc=False):
    """Marks a result that did not come in time: the command is in the log and will be carried out.

    `outcome` is None, which distinguishes it from a result. If the offset is -1, the broker has not acknowledged the
    command either: it may or may not be in the log.
    """

    tenant: str
    id: str
    partition: int
    offset: int
    outcome: None = None
