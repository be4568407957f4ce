"""A worker that goes by a clock which its test drives: `faust -A support.clocked worker`."""

from __future__ import annotations

import os
from pathlib import Path

from light_scheduler.application import build
from light_scheduler.settings import load_settings

from .clocks import DrivenClock

CLOCK_VARIABLE = "WORKER_CLOCK"
"""The clock's file."""

app = build(load_settings(), DrivenClock(Path(os.environ[CLOCK_VARIABLE])))
