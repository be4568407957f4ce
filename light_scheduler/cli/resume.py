"""`light-scheduler resume`: let one schedule, or many, go on."""

from __future__ import annotations

from .control import control

command = control(
    "resume",
    "Let the paused schedule ID, or all that are selected, go on; its misfire policy says what becomes of what it "
    "missed.",
)
