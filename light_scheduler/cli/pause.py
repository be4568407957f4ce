"""`light-scheduler pause`: pause one schedule, or several."""

from __future__ import annotations

from .control import control

command = control("pause", "Pause the schedule ID, or all selected schedules: they do not fire until you resume them.")
