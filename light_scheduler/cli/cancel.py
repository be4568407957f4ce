"""`light-scheduler cancel`: cancel one schedule, or several."""

from __future__ import annotations

from .control import control

command = control("cancel", "Cancel the schedule ID, or all selected schedules.")
