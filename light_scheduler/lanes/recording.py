"""Stores and records the decision on a schedule: the same for its own command and for a bulk command."""

from __future__ import annotations

from light_scheduler.engine import Decision
from light_scheduler.model import Entry, EventType

from .transaction_writes import Transaction


def record_decision(transaction: Transaction, name: bytes, current: Entry | None, decision: Decision) -> None:
    """Store what was decided on a schedule, and record it. Raises InvalidCommand if it is too large to be kept."""
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
        reason = None if decision.reason == decision.finished else decision.reason  # one line says it
        transaction.history.record(decision.event, name, decision.subject, reason)
        if decision.finished is not None:
            transaction.history.record(EventType.FINISHED, name, decision.subject, decision.finished)
