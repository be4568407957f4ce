"""Half-open circuit breakers for partitions that refuse record after record: they get single records on trial.

Each refusal costs a transaction. So a partition that has refused several records in a row is left alone for a while.
Then it gets one firing at a time, until it accepts one. Tenants whose records it has refused give way to other tenants,
and schedules to other schedules of the same tenant. Each pause is longer than the last, unless a tenant waits that was
not refused yet. All lanes of a worker share this knowledge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from light_scheduler.model.place import Place

from .target_outages import FORGET_S, Outages

MANY_REFUSED = 3
"""Number of refusals in a row after which a partition is on trial."""

MOST_ORIGINS = 1_000
"""Maximum number of refused tenants, and of refused schedules, to remember for a partition. The oldest are dropped."""

Rank = tuple[int, int]
"""Numbers of the last refusals of a tenant and of a schedule. The lowest rank may try first."""


Origin = TypeVar("Origin")


@dataclass
class _Row:
    """Refusals in a row: their count, the time (monotonic, s) of the last, and each origin's last number."""

    refusals: int = 0
    at: float = 0.0
    times_left_alone: int = 0
    tenants: dict[str, int] = field(default_factory=dict)
    schedules: dict[tuple[str, str | None], int] = field(default_factory=dict)


class Trials:
    """The trials of a worker's lanes. `outages` has the places that are left alone."""

    def __init__(self, outages: Outages) -> None:
        self._outages = outages
        self._rows: dict[Place, _Row] = {}

    @property
    def places(self) -> set[Place]:
        """The places on trial, which get one firing at a time."""
        if not self._rows:
            return set()
        long_ago = self._outages.time() - FORGET_S
        return {place for place, row in self._rows.items() if row.refusals >= MANY_REFUSED and row.at > long_ago}

    def refused(self, place: Place, origins: Iterable[tuple[str, str | None]]) -> int | None:
        """Record that a place has refused a record of a tenant's schedule, or one shared by several.

        If the place should now be left alone, returns how often it was before; otherwise None.
        """
        now = self._outages.time()
        self._rows = {other: row for other, row in self._rows.items() if now - row.at < FORGET_S}
        row = self._rows.setdefault(place, _Row())
        row.refusals, row.at = row.refusals + 1, now
        for tenant, schedule in origins:
            _move_last(row.tenants, tenant, row.refusals)
            _move_last(row.schedules, (tenant, schedule), row.refusals)
        if row.refusals < MANY_REFUSED or place in self._outages:
            return None
        row.times_left_alone += 1
        return row.times_left_alone - 1

    def took(self, places: Iterable[Place]) -> None:
        """Record that places accepted records. Their trials end, and waiting firings are released."""
        if not self._rows:
            return
        places = set(places)
        over = self.places & places
        for place in places:
            self._rows.pop(place, None)
        if over:
            self._outages.close(
                place for place, outage in self._outages if place in over and not outage.has_known_fault
            )
            self._outages.notify()

    def waits(self, place: Place, tenant: str) -> None:
        """Record that a tenant waits for a place on trial. If it was not refused there yet, the wait is shortened."""
        if tenant not in self._rows[place].tenants:
            self._outages.hasten(place)

    def rank(self, place: Place, tenant: str, schedule: str) -> Rank:
        """Return the rank of a schedule with a firing for a place on trial."""
        row = self._rows[place]
        return row.tenants.get(tenant, 0), row.schedules.get((tenant, schedule), 0)


def _move_last(numbers: dict[Origin, int], origin: Origin, number: int) -> None:
    numbers.pop(origin, None)
    numbers[origin] = number
    if len(numbers) > MOST_ORIGINS:
        del numbers[next(iter(numbers))]
