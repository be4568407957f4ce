"""Clients: schedule messages from Python, control schedules, follow their events, and read deliveries.

This package needs a Kafka client, but neither Faust nor the store.
"""

from typing import TYPE_CHECKING

from light_scheduler.lazy_names import lazy_names
from light_scheduler.model import After, Backoff, Cron, FixedDelay, FixedRate, Once
from light_scheduler.wire import derived_id

if TYPE_CHECKING:
    from .blocking_client import BlockingSchedulerClient
    from .consumer import FiringConsumer
    from .errors import CommandRefused, NotDelivered, ResultTimeout
    from .firings import Firing, RetriesExhausted, attempt_of, original_due, parse_firing
    from .handling import HandlingRules
    from .later import CommandRecords, Record, record_for
    from .options import (
        FROM_CONTENT,
        SAME_AS_KEY,
        CommandOptions,
        ManyOptions,
        RescheduleManyOptions,
        ScheduleOptions,
        ScheduleRequest,
        TimeRule,
        When,
    )
    from .periodic import JobChange, SyncPlan
    from .questions import ListOptions
    from .receipt import Receipt, Unanswered
    from .scheduler_client import SchedulerClient
    from .serializers import AvroSerializer, JsonSerializer, MsgspecSerializer, Serializer
    from .views import (
        DeadLetterDetail,
        DeadLetterSummary,
        PendingSchedule,
        PendingScheduleDetail,
        Redriven,
        Why,
        WhyEvent,
    )

__all__ = [
    "FROM_CONTENT",
    "SAME_AS_KEY",
    "After",
    "AvroSerializer",
    "Backoff",
    "BlockingSchedulerClient",
    "CommandOptions",
    "CommandRecords",
    "CommandRefused",
    "Cron",
    "DeadLetterDetail",
    "DeadLetterSummary",
    "Firing",
    "FiringConsumer",
    "FixedDelay",
    "FixedRate",
    "HandlingRules",
    "JobChange",
    "JsonSerializer",
    "ListOptions",
    "ManyOptions",
    "MsgspecSerializer",
    "NotDelivered",
    "Once",
    "PendingSchedule",
    "PendingScheduleDetail",
    "Receipt",
    "Record",
    "Redriven",
    "RescheduleManyOptions",
    "ResultTimeout",
    "RetriesExhausted",
    "ScheduleOptions",
    "ScheduleRequest",
    "SchedulerClient",
    "Serializer",
    "SyncPlan",
    "TimeRule",
    "Unanswered",
    "When",
    "Why",
    "WhyEvent",
    "attempt_of",
    "derived_id",
    "original_due",
    "parse_firing",
    "record_for",
]

__getattr__ = lazy_names(
    __name__,
    {
        "blocking_client": ("BlockingSchedulerClient",),
        "consumer": ("FiringConsumer",),
        "errors": ("CommandRefused", "NotDelivered", "ResultTimeout"),
        "firings": ("Firing", "RetriesExhausted", "attempt_of", "original_due", "parse_firing"),
        "handling": ("HandlingRules",),
        "later": ("CommandRecords", "Record", "record_for"),
        "options": (
            "FROM_CONTENT",
            "SAME_AS_KEY",
            "CommandOptions",
            "ManyOptions",
            "RescheduleManyOptions",
            "ScheduleOptions",
            "ScheduleRequest",
            "TimeRule",
            "When",
        ),
        "periodic": ("JobChange", "SyncPlan"),
        "receipt": ("Receipt", "Unanswered"),
        "questions": ("ListOptions",),
        "scheduler_client": ("SchedulerClient",),
        "serializers": ("AvroSerializer", "JsonSerializer", "MsgspecSerializer", "Serializer"),
        "views": (
            "DeadLetterDetail",
            "DeadLetterSummary",
            "PendingSchedule",
            "PendingScheduleDetail",
            "Redriven",
            "Why",
            "WhyEvent",
        ),
    },
)
