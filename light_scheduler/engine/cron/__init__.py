"""Cron expressions of four dialects, in time zones, over daylight saving.

Each dialect has a small parser into one form (`rule.CronRule`), and there is one search for all.
That makes each dialect what its original is, where croniter refuses half of it, and a next time cheap.
"""

from .errors import CronDialect, CronError
from .expression import CompiledCron, compile_cron

__all__ = ["CompiledCron", "CronDialect", "CronError", "compile_cron"]
