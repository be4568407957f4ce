"""Reasons of applied commands that only repeat the command. Any other reason of one is a warning.

Answers and history events have them: a trigger and an extension are `updated` events, told apart by their reasons.
"""

from __future__ import annotations

RESCHEDULED = "rescheduled"
TRIGGERED = "triggered: fires at once"
FAILED = "failure"
"""Of a completion that reports a failure."""

_EXTENDED = "extended: "
_PLAIN = (RESCHEDULED, TRIGGERED, FAILED)


def extended(attempt: int) -> str:
    """Return the reason of an extension."""
    return f"{_EXTENDED}attempt {attempt} is still being processed"


def warning_in(reason: str) -> str | None:
    """Return what the reason of an applied command warns of; None: nothing."""
    if reason in _PLAIN or reason.startswith(_EXTENDED):
        return None
    return reason.removeprefix(f"{RESCHEDULED}: ")
