"""Clients: schedule from asyncio code, control schedules, follow what happens, read what was delivered.

Needs neither Faust nor the store: producers and consumers depend on this package and a Kafka client only.
"""

from light_scheduler.model import After, Backoff, Cron, FixedDelay, FixedRate, Once
from light_scheduler.wire import derived_id, parse_firing

from .options import (
    FROM_CONTENT,
    SAME_AS_KEY,
    CommandOptions,
    ManyOptions,
    RescheduleManyOptions,
    ScheduleOptions,
    ScheduleRequest,
    TimeRule,
)
from .receipt import Receipt
from .scheduler_client import SchedulerClient

__all__ = [
    "FROM_CONTENT",
    "SAME_AS_KEY",
    "After",
    "Backoff",
    "CommandOptions",
    "Cron",
    "FixedDelay",
    "FixedRate",
    "ManyOptions",
    "Once",
    "Receipt",
    "RescheduleManyOptions",
    "ScheduleOptions",
    "ScheduleRequest",
    "SchedulerClient",
    "TimeRule",
    "derived_id",
    "parse_firing",
]
