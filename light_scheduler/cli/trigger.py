"""`light-scheduler trigger`: let one schedule, or many, fire now."""

from __future__ import annotations

from .control import control

command = control(
    "trigger",
    "Fire the schedule ID, or all selected schedules, now, even if paused. A one-shot fires instead of at its time, a "
    "series in addition to its times.",
)
