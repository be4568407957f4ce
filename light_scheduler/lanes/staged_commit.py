"""Decides whether a staged transaction may be committed at its due time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from light_scheduler.clock import Clock

from .alarm import Alarm
from .context.lane_context import CycleContext
from .input.intake import Intake

MAX_LOOKED_AT = 200
"""If more commands than this wait, they come before the staged firings, whatever they are about."""


class StagedCommit:
    """The staged commits of one lane, whose alarm rings when a command arrives."""

    def __init__(
        self, context: CycleContext, clock: Clock, intake: Intake, alarm: Alarm, is_closing: Callable[[], bool]
    ) -> None:
        self._context = context
        self._clock = clock
        self._intake = intake
        self._alarm = alarm
        self._is_closing = is_closing

    async def may_commit(self, instant: int, staged: frozenset[bytes]) -> bool:
        """Wait for an instant. Return False as soon as other work must come first."""
        while not self._is_closing() and not self._must_come_first(staged):
            now = self._clock.now()
            if now >= instant:
                return True
            if not self._context.staging.is_near(instant, now):
                return False
            self._alarm.reset()
            await self._alarm.sleep_until(instant)
        return False

    def _must_come_first(self, staged: frozenset[bytes]) -> bool:
        """Return whether a waiting command may change one of these schedules."""
        waiting = list(islice(self._intake.waiting(), MAX_LOOKED_AT + 1))
        return len(waiting) > MAX_LOOKED_AT or any(self._context.concerns(record, staged) for record in waiting)
