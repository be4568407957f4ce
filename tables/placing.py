"""Computes the table keys of schedules from their state records, decoding only the necessary fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from light_scheduler.model import State
from light_scheduler.wire.state import decode_standing

from . import layout
from .cell_changes import CellChanges, Group


class _Alike(NamedTuple):
    """The parts that schedules with the same tenant, topic, state and priority have in common."""

    number: bytes  # of the group
    minute: slice  # position in time-index keys
    index_key: Callable[[int, int, bytes], bytes]  # (time in ms, arrival, id) -> time-index key


class Placing:
    """Computes time-index keys and cells. New groups get a number in `counted`, but schedules are not counted."""

    def __init__(self, counted: CellChanges) -> None:
        self._counted = counted
        self._known: dict[tuple[bytes, str, State, int], _Alike] = {}

    def place(self, identity: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Return the time-index key and the cell of a schedule. Raises FormatTooNew or FormatError."""
        wakes_at, priority, arrival, topic, state = decode_standing(value)
        tenant, _, id = identity.partition(b"\0")
        kind = tenant, topic, state, priority
        alike = self._known.get(kind)
        if alike is None:
            alike = self._known[kind] = self._alike(tenant.decode(), topic, state, priority)
        number, minute, index_key_of = alike
        index_key = index_key_of(wakes_at, arrival, id)
        return index_key, number + index_key[minute]

    def _alike(self, tenant: str, topic: str, state: State, priority: int) -> _Alike:
        number = self._counted.number(Group(tenant, topic, state))
        return _Alike(number, layout.minute_of(tenant), layout.index_keys(tenant, priority))
