"""Triggers: the time rule of a schedule.

Every trigger is a tagged value, so that a stored union of them can grow without changing what is stored already.
"""

from __future__ import annotations

import msgspec

LATEST_INSTANT = 253_402_300_799_999
"""The last ms of the year 9999: no instant lies after it."""


class Once(msgspec.Struct, frozen=True, array_like=True, tag="once", gc=False):
    """Fires one time, at an instant (UTC epoch ms)."""

    at: int


class After(msgspec.Struct, frozen=True, array_like=True, tag="after", gc=False):
    """Fires one time, a number of ms after the command was recorded. 0 is "now".

    Commands carry it; a schedule holds the `Once` it resolves to.
    """

    delay: int


NOW = After(0)

Trigger = Once
"""What a schedule may hold."""

Timing = Once | After
"""What a command may ask for."""
