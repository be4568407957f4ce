"""Cron expressions in four dialects, with time zones and daylight saving.

Each dialect has a small parser to a common form (`rule.CronRule`), and there is one search for all of them. So each
dialect matches its original, unlike croniter, which refuses half of them, and the next time is found quickly.
"""

from .errors import CronDialect, CronError
from .expression import CompiledCron, compile_cron

__all__ = ["CompiledCron", "CronDialect", "CronError", "compile_cron"]
