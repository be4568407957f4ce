"""What the due scan passes over: schedules whose target cannot be written to.

They stay where they are in the time index. All that is kept of them is where each target's begin, so that the scan goes
back there when the target can be written to again.
"""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.model.place import Place


class Stretch(NamedTuple):
    """Of one tenant and place: the time-index keys between which schedules were passed over, and how many."""

    first: bytes
    last: bytes
    schedules: int


class Held:
    """What was passed over, by place and tenant."""

    def __init__(self) -> None:
        self._places: dict[Place, dict[str, Stretch]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    @property
    def places(self) -> list[Place]:
        """Those of which something was passed over."""
        return list(self._places)

    def count(self, place: Place) -> int:
        """Return how many schedules were passed over; those that were cancelled since are among them."""
        return sum(stretch.schedules for stretch in self._places.get(place, {}).values())

    def pass_over(self, place: Place, tenant: str, key: bytes) -> None:
        """Note a schedule by its time-index key; one that was noted before is not counted again."""
        stretches = self._places.setdefault(place, {})
        known = stretches.get(tenant)
        if known is None:
            stretches[tenant] = Stretch(key, key, 1)
        elif key > known.last:
            stretches[tenant] = Stretch(known.first, key, known.schedules + 1)
        elif key < known.first:
            stretches[tenant] = Stretch(key, known.last, known.schedules + 1)

    def release(self, place: Place) -> dict[str, Stretch]:
        """Forget a place; return where its schedules are."""
        return self._places.pop(place, {})

    def first(self, tenant: str) -> bytes | None:
        """Return the lowest key of a tenant that was passed over."""
        firsts = [stretches[tenant].first for stretches in self._places.values() if tenant in stretches]
        return min(firsts, default=None)
