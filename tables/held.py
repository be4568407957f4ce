"""Schedules that the due scan passes over because their target is unavailable.

They stay in place in the time index. Only the range of keys is kept for each target, so that the scan returns there
when the target is available again.
"""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.model.place import Place


class Stretch(NamedTuple):
    """The range of time-index keys in which schedules of a tenant were passed over for a place, and their number."""

    first: bytes
    last: bytes
    schedules: int


class Held:
    """Ranges of schedules that were passed over, by place and tenant."""

    def __init__(self) -> None:
        self._places: dict[Place, dict[str, Stretch]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    @property
    def places(self) -> list[Place]:
        """Places with passed-over schedules."""
        return list(self._places)

    def count(self, place: Place) -> int:
        """Return the number of schedules passed over for a place, including those cancelled since."""
        return sum(stretch.schedules for stretch in self._places.get(place, {}).values())

    def pass_over(self, place: Place, tenant: str, key: bytes) -> None:
        """Record a passed-over schedule by its time-index key. A key within the known range is not counted again."""
        stretches = self._places.setdefault(place, {})
        known = stretches.get(tenant)
        if known is None:
            stretches[tenant] = Stretch(key, key, 1)
        elif key > known.last:
            stretches[tenant] = Stretch(known.first, key, known.schedules + 1)
        elif key < known.first:
            stretches[tenant] = Stretch(key, known.last, known.schedules + 1)

    def release(self, place: Place) -> dict[str, Stretch]:
        """Forget a place and return the ranges of its schedules."""
        return self._places.pop(place, {})

    def first(self, tenant: str) -> bytes | None:
        """Return the lowest passed-over key of a tenant; None if there is none."""
        firsts = [stretches[tenant].first for stretches in self._places.values() if tenant in stretches]
        return min(firsts, default=None)
