"""`light-scheduler trigger`: fire one schedule now, or several."""

from __future__ import annotations

from .control import control

command = control(
    "trigger",
    "Fire the schedule ID now, or all selected schedules, even if they are paused. A one-shot then does not fire at "
    "its own time. A series still does.",
)
