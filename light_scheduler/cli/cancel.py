"""`light-scheduler cancel`: cancel one schedule, or many."""

from __future__ import annotations

from .control import control

command = control("cancel", "Cancel the schedule ID, or all selected schedules.")
