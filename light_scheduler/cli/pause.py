"""`light-scheduler pause`: let one schedule not fire."""

from __future__ import annotations

from .control import control

command = control("pause", "Let the schedule ID not fire until it is resumed.")
