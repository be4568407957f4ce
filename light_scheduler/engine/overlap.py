"""The overlap policy: decides whether a firing is delivered while earlier ones wait for completion."""

from __future__ import annotations

from light_scheduler.model import Progress, Schedule

from .completion import acknowledgement_of

MOST_AWAITED = 1_000
"""Maximum number of triggered and awaited firings of a schedule. Its progress, which is stored each time, has them."""

QUEUED = "waits for the firing before it to be completed"


def may_not_overlap(schedule: Schedule, progress: Progress) -> str | None:
    """Return why the next planned firing is not delivered while others wait for completion; None if it is."""
    waits = acknowledgement_of(schedule)
    if waits is None or not progress.awaited:
        return None
    if waits.overlap == "queue" and progress.queued is None:
        return QUEUED
    if waits.overlap != "allow":
        return "the firing before it is not completed"
    if len(progress.awaited) >= MOST_AWAITED:
        return f"{MOST_AWAITED} firings before it are not completed"
    return None
