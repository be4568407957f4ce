"""Clients: schedule from asyncio code, control schedules, follow what happens, read what was delivered.

Needs neither Faust nor the store: producers and consumers depend on this package and a Kafka client only.
"""

from typing import TYPE_CHECKING

from light_scheduler.lazy_names import lazy_names
from light_scheduler.model import After, Backoff, Cron, FixedDelay, FixedRate, Once
from light_scheduler.wire import derived_id, parse_firing

if TYPE_CHECKING:
    from .errors import CommandRefused, ResultTimeout
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
    "CommandRefused",
    "Cron",
    "FixedDelay",
    "FixedRate",
    "ManyOptions",
    "Once",
    "Receipt",
    "RescheduleManyOptions",
    "ResultTimeout",
    "ScheduleOptions",
    "ScheduleRequest",
    "SchedulerClient",
    "TimeRule",
    "derived_id",
    "parse_firing",
]

__getattr__ = lazy_names(
    __name__,
    {
        "errors": ("CommandRefused", "ResultTimeout"),
        "options": (
            "FROM_CONTENT",
            "SAME_AS_KEY",
            "CommandOptions",
            "ManyOptions",
            "RescheduleManyOptions",
            "ScheduleOptions",
            "ScheduleRequest",
            "TimeRule",
        ),
        "receipt": ("Receipt",),
        "scheduler_client": ("SchedulerClient",),
    },
)
