"""`light-scheduler pause`: let one schedule, or many, not fire."""

from __future__ import annotations

from .control import control

command = control("pause", "Let the schedule ID, or all that are selected, not fire until resumed.")
