"""The vocabulary: typed values without behaviour beyond their own rules."""

from .command import REJECT_PAST, CancelCommand, Command, OnConflict, ReplyTo, ScheduleCommand
from .firing import Firing, firing_id
from .outcome import DeadLetter, DeadLetterCause, EventType, HistoryEvent, Outcome, Result
from .schedule import DEFAULT_PRIORITY, DEFAULT_TENANT, Entry, Headers, Progress, Schedule, Target
from .topics import TopicNames
from .trigger import LATEST_INSTANT, NOW, After, Once, Timing, Trigger

__all__ = [
    "DEFAULT_PRIORITY",
    "DEFAULT_TENANT",
    "LATEST_INSTANT",
    "NOW",
    "REJECT_PAST",
    "After",
    "CancelCommand",
    "Command",
    "DeadLetter",
    "DeadLetterCause",
    "Entry",
    "EventType",
    "Firing",
    "Headers",
    "HistoryEvent",
    "OnConflict",
    "Once",
    "Outcome",
    "Progress",
    "ReplyTo",
    "Result",
    "Schedule",
    "ScheduleCommand",
    "Target",
    "Timing",
    "TopicNames",
    "Trigger",
    "firing_id",
]
