"""`light-scheduler trigger`: let one schedule, or many, fire now."""

from __future__ import annotations

from .control import control

command = control(
    "trigger",
    "Let the schedule ID, or all that are selected, fire at once, even if it is paused: in place of a one-shot's time, "
    "besides a series' times.",
)
