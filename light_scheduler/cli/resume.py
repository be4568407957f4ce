"""`light-scheduler resume`: let one schedule, or many, go on."""

from __future__ import annotations

from .control import control

command = control(
    "resume",
    "Resume the paused schedule ID, or all selected schedules. Firings missed meanwhile follow the misfire policy.",
)
