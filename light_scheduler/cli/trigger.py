"""`light-scheduler trigger`: let one schedule fire now."""

from __future__ import annotations

from .control import control

command = control(
    "trigger",
    "Let the schedule ID fire at once, even if it is paused: in place of a one-shot's time, besides a series' times.",
)
