"""`light-scheduler pause`: let one schedule, or many, not fire."""

from __future__ import annotations

from .control import control

command = control("pause", "Pause the schedule ID, or all selected schedules: they do not fire until you resume them.")
