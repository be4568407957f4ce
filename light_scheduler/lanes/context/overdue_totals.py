"""Decides which totals of bulk commands have waited long enough for reports in a lane.

A report may never come: a worker of an earlier version wrote or refused the copy, or the copy was deleted before a
worker read it. Without a time limit, such a total would never be answered, and a growing topic would never settle.

Ending the wait is safe once no part can begin any more that later commands of the tenant must not overtake. A part
begins when its partition reads the copy, so the limit is longer than partitions lag. Time in which no worker could
report does not count: the lane itself must have watched the total for hours, in which other workers run or catch up.
Copies also wait behind delayed commands of their tenant, so the limit includes the time that its rate needs for those.
A sub-total ends before the total that it reports to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from light_scheduler.model import BulkTotal
from light_scheduler.model.arrival import offset_of
from light_scheduler.model.bulk import SubTotal
from light_scheduler.model.place import Place

OVERDUE_MS, LATER_MS = 24 * 3_600_000, 3_600_000
"""The age of the command (ms) at which a sub-total ends, and how much later the total ends."""

WATCHED_MS = 4 * 3_600_000
"""How long (ms) a lane must have watched a total before ending it."""

LOOK_MS, LONGEST_LOOK_MS = 60_000, 120_000
"""How often (ms) a lane looks, and the maximum that one look counts: clocks jump, and lanes stall."""


log = logging.getLogger(__name__)


class OverdueTotals:
    """Watches the totals of one lane, in memory: the next owner of the partition starts over.

    Instants are UTC epoch ms.
    """

    def __init__(self) -> None:
        self._looked_at = 0
        self._watched: dict[int, int] = {}

    def is_due(self, now: int) -> bool:
        """Return whether it is time to look."""
        return not 0 <= now - self._looked_at < LOOK_MS

    def overdue(
        self, totals: Mapping[int, BulkTotal], now: int, longest_delay: Callable[[str], float] = lambda _: 0.0
    ) -> list[int]:
        """Look at all totals of the lane, and return the numbers of those to end.

        `longest_delay` returns how long (ms) copies may wait behind delayed commands of a tenant.
        """
        passed = min(max(0, now - self._looked_at), LONGEST_LOOK_MS)
        self._looked_at = now
        self._watched = {number: self._watched[number] + passed if number in self._watched else 0 for number in totals}
        return [
            number
            for number, total in totals.items()
            if self._watched[number] >= WATCHED_MS
            and now - total.command.recorded_at >= _longest_wait(total) + longest_delay(total.command.tenant)
        ]


def log_unreported(place: Place, totals: Iterable[BulkTotal]) -> None:
    """Log the totals of a partition's lane that have ended without all reports."""
    for total in totals:
        log.warning("lane %s-%d: %s", *place, _without_reports(total))


def _without_reports(total: BulkTotal) -> str:
    """Return the log message for a total that ended, with advice."""
    command, partitions = total.command, ", ".join(map(str, total.awaited))
    return (
        f"the bulk command {command.name} of tenant {command.tenant}, at offset {offset_of(command.offset)}, ends "
        f"without partitions {partitions}: they have not reported for a day, so it may not have reached their "
        "schedules. "
        "Run one version on all workers, keep commands longer than workers are away (retention.ms), and send it again"
    )


def _longest_wait(total: BulkTotal) -> int:
    reports = isinstance(total, SubTotal) and total.parent_token
    return OVERDUE_MS if reports else OVERDUE_MS + LATER_MS
