"""`light-scheduler resume`: resume one schedule, or several."""

from __future__ import annotations

from .control import control

command = control(
    "resume",
    "Resume the paused schedule ID, or all selected schedules. Missed firings follow the misfire policy.",
)
