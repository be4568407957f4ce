"""Periods that an audit refuses: it would judge nothing, and find no faults."""

from __future__ import annotations

from light_scheduler.errors import JobError
from light_scheduler.wire import format_instant

from .bounds import Bounds


def require_period(bounds: Bounds, *, is_archive: bool) -> None:
    """Raise JobError if there is nothing to judge in a period."""
    start, end = format_instant(bounds.start), format_instant(max(0, bounds.end))
    if bounds.start > bounds.end:
        to_do = (
            "The archive ends there: run the job archive first. If nothing has happened since, give --to"
            if is_archive
            else "Give an earlier --from, or a later --to"
        )
        raise JobError(f"the audit would begin at {start} and end at {end}, and judge nothing. {to_do}")


def require_past(bounds: Bounds, now: int) -> None:
    """Raise JobError if a period that others are to follow is not over `now` (UTC epoch ms)."""
    if bounds.end > now:
        raise JobError(
            f"the audit would end at {format_instant(bounds.end)}, which is in the future, and the next one begin "
            "there: leave out --to, or give an instant that has passed"
        )


def require_readable(bounds: Bounds, since: int, opened_at: int) -> None:
    """Raise JobError if a transaction that was opened at an instant leaves nothing to judge since another one.

    Instants are UTC epoch ms.
    """
    if bounds.end < since:
        raise JobError(
            f"a transaction has been open since {format_instant(opened_at)} in the history, the dead letters or a "
            f"target topic, and hides what was written after it. There is nothing to judge since "
            f"{format_instant(since)}: run the audit again when it has ended"
        )
