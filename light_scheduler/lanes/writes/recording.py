"""Stores and records the decision on a schedule, for a single command or a bulk command."""

from __future__ import annotations

from light_scheduler.engine import Decision
from light_scheduler.model import Entry, EventType

from .transaction import Transaction


def record_decision(transaction: Transaction, name: bytes, current: Entry | None, decision: Decision) -> None:
    """Store and record the decision on a schedule. Raises InvalidCommand if the schedule is too large to store."""
    if decision.event is None:
        return
    if current is None or decision.entry is None or decision.entry.schedule is not current.schedule:
        transaction.store(name, decision.entry)
    else:
        transaction.advance(name, decision.entry)
    if current is not None and (skipped := decision.skipped) is not None:
        subject = Entry(current.schedule, skipped.progress)
        transaction.history.record(EventType.SKIPPED, name, subject, skipped.reason, skipped.count)
    if decision.subject is not None:
        reason = None if decision.reason == decision.finished else decision.reason  # FINISHED has the same reason
        transaction.history.record(decision.event, name, decision.subject, reason)
        if decision.finished is not None:
            transaction.history.record(EventType.FINISHED, name, decision.subject, decision.finished)
