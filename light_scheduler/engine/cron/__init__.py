"""Cron expressions of four dialects, in time zones, over daylight saving.

`unix`, `cron4j`, `quartz` and `spring` each have a small parser into one form (`rule.Rule`), and one search for all.
That makes each dialect what its original is, where croniter refuses half of it, and a next time cheap.
"""

from .errors import CronDialect, CronError
from .expression import Cron, compile_cron

__all__ = ["Cron", "CronDialect", "CronError", "compile_cron"]
