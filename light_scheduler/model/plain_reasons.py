"""Reasons of applied commands that only repeat the command. Any other reason of an applied command is a warning.

Results and history events have reasons. Triggers and extensions are both `updated` events, and differ by the reason.
"""

from __future__ import annotations

RESCHEDULED = "rescheduled"
TRIGGERED = "triggered: fires at once"
FAILED = "failure"
"""Reason of a completion that reports a failure."""

_EXTENDED = "extended: "
_PLAIN = (RESCHEDULED, TRIGGERED, FAILED)


def extended(attempt: int) -> str:
    """Return the reason of an extension."""
    return f"{_EXTENDED}attempt {attempt} is still being processed"


def warning_in(reason: str) -> str | None:
    """Return the warning in the reason of an applied command; None if there is none."""
    if reason in _PLAIN or reason.startswith(_EXTENDED):
        return None
    return reason.removeprefix(f"{RESCHEDULED}: ")
