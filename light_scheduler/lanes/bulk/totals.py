"""The totals of bulk commands that wait for reports in a partition, and one cycle's changes to them.

A total has a number: the arrival of its command, or `SUB_TOTAL` more for a sub-total.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import msgspec

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import BulkTotal
from light_scheduler.model.bulk import SUB_TOTAL, lacking
from light_scheduler.tables import Overlay
from light_scheduler.wire.lane_marks import BULK_COUNT, Count
from light_scheduler.wire.state import bulk_total_key, encode_bulk_total

replace = msgspec.structs.replace
_Kind = tuple[str, bool]
"""(tenant, whether these are sub-totals)."""


class BulkTotals:
    """The totals of a partition, for the length of one cycle."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._changed: dict[int, BulkTotal | None] = {}
        self._counts: Counter[_Kind] | None = None  # how many wait here, computed on first use

    def __bool__(self) -> bool:
        """Return whether a total waits for reports here.

        Its command may have been copied before this lane learned that the topic has grown.
        """
        return self._waiting.total() > 0

    def any_of(self, tenant: str) -> bool:
        """Return whether a total of a tenant's command waits here."""
        return self._waiting[tenant, False] > 0 or self._waiting[tenant, True] > 0

    def count_of(self, tenant: str) -> int:
        """Return how many totals of a tenant's commands wait here, not counting sub-totals."""
        return self._waiting[tenant, False]

    @cached_property
    def before(self) -> Mapping[int, BulkTotal]:
        """The totals before this cycle, by number."""
        return self._overlay.others.bulk_totals()

    def get(self, number: int) -> BulkTotal | None:
        """Return a total with the changes so far, or None if there is none."""
        return self._changed[number] if number in self._changed else self.before.get(number)

    def put(self, number: int, total: BulkTotal) -> None:
        """Store a new or changed total."""
        if self._counts is not None and self.get(number) is None:
            self._counts[_kind_of(number, total)] += 1
        self._changed[number] = total

    def drop(self, number: int, total: BulkTotal) -> None:
        """Remove a total."""
        if self._counts is not None:
            self._counts[_kind_of(number, total)] -= 1
        self._changed[number] = None

    def add(self, count: Count) -> tuple[int, BulkTotal]:
        """Add a report to the total that waits for it. Return the number of the total and the updated total.

        Raises InvalidCommand if no total waits for the report.
        """
        number, total = self._waiting_for(count)
        awaited = tuple(partition for partition in total.awaited if partition != count.partition)
        total = replace(total, awaited=awaited, changed=total.changed + count.changed)
        if count.missing:
            total = lacking(total, count.missing)
        self.put(number, total)
        return number, total

    def records(self) -> dict[bytes, bytes | None]:
        """Return the state records of the changed totals by key. None removes a record."""
        return {
            bulk_total_key(number): None if total is None else encode_bulk_total(total)
            for number, total in self._changed.items()
        }

    @property
    def _waiting(self) -> Counter[_Kind]:
        if self._counts is None:
            totals = {**self.before, **self._changed} if self._changed else self.before
            self._counts = Counter(_kind_of(number, total) for number, total in totals.items() if total is not None)
        return self._counts

    def _waiting_for(self, count: Count) -> tuple[int, BulkTotal]:
        for number in (count.offset, SUB_TOTAL + count.offset):  # an older worker refuses a part by its offset alone
            total = self._changed[number] if number in self._changed else self._overlay.others.bulk_total(number)
            if total is not None and count.partition in total.awaited and count.token == total.token:
                return number, total
        reason = "is not expected: no bulk command waits for this report. Only workers may set this header"
        raise InvalidCommand(BULK_COUNT, reason)


def _kind_of(number: int, total: BulkTotal) -> _Kind:
    return total.command.tenant, number >= SUB_TOTAL
