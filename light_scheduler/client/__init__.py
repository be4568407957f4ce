"""Clients: schedule and cancel from asyncio code, follow what happens, read what was delivered.

Needs neither Faust nor the store: producers and consumers depend on this package and a Kafka client only.
"""

from light_scheduler.wire import parse_firing

from .commands import SAME_AS_KEY, ScheduleOptions, ScheduleRequest
from .receipt import Receipt
from .scheduler_client import SchedulerClient

__all__ = ["SAME_AS_KEY", "Receipt", "ScheduleOptions", "ScheduleRequest", "SchedulerClient", "parse_firing"]
