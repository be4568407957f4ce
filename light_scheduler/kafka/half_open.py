"""Partitions that refuse record after record, and which of them is tried next with a single record.

Each refusal costs a transaction. So a partition that has refused several records, and taken none between, is left alone
for a while, and then gets one firing at a time, until it takes one. Those whose records it has refused give way to
others: to other tenants, then to other schedules of the same tenant. The place is left alone for longer each time, but
not if a tenant waits for it that it has refused nothing. What one lane of a worker finds out, all of them know.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from light_scheduler.model.place import Place

from .target_outages import FORGET_S, Outages

MANY_REFUSED = 3
"""Records that a partition refused, and took none between; then it is on trial."""

MOST_ORIGINS = 1_000
"""Tenants, and schedules, of a partition that are known to have been refused; of more, the first are forgotten."""

Rank = tuple[int, int]
"""When a tenant was refused last, and when a schedule was: the lower, the sooner it may try."""


Origin = TypeVar("Origin")


@dataclass
class _Row:
    """Refusals one after the other: how many, when (monotonic, s) the last, and the number of each one's last."""

    refusals: int = 0
    at: float = 0.0
    times_left_alone: int = 0
    tenants: dict[str, int] = field(default_factory=dict)
    schedules: dict[tuple[str, str | None], int] = field(default_factory=dict)


class Trials:
    """For the lanes of a worker; `outages` says what is left alone."""

    def __init__(self, outages: Outages) -> None:
        self._outages = outages
        self._rows: dict[Place, _Row] = {}

    @property
    def places(self) -> set[Place]:
        """The places that get one firing at a time."""
        if not self._rows:
            return set()
        long_ago = self._outages.time() - FORGET_S
        return {place for place, row in self._rows.items() if row.refusals >= MANY_REFUSED and row.at > long_ago}

    def refused(self, place: Place, origins: Iterable[tuple[str, str | None]]) -> int | None:
        """Learn that a place has refused a record of a tenant's schedule, or one that all of these share.

        Returns how often it was left alone before, if it is to be left alone.
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
        """Learn that places took records: they do not refuse all, and who waits for that need not wait any longer."""
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
        """Learn that a tenant waits for a place on trial: one that was not refused there does not wait for long."""
        if tenant not in self._rows[place].tenants:
            self._outages.hasten(place)

    def rank(self, place: Place, tenant: str, schedule: str) -> Rank:
        """Return the rank of a schedule that has something for a place on trial."""
        row = self._rows[place]
        return row.tenants.get(tenant, 0), row.schedules.get((tenant, schedule), 0)


def _move_last(numbers: dict[Origin, int], origin: Origin, number: int) -> None:
    numbers.pop(origin, None)
    numbers[origin] = number
    if len(numbers) > MOST_ORIGINS:
        del numbers[next(iter(numbers))]
