"""Names the schedule that a log line is about."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from light_scheduler.kafka.refusals import UserRecord
from light_scheduler.log_fields import log_fields
from light_scheduler.model import Entry

from .tracing import trace_id_of


def about(origins: Sequence[UserRecord]) -> AbstractContextManager[None]:
    """Return a context in which log lines name a schedule, and the trace of its command, if it is the only origin."""
    entry = origins[0] if len(origins) == 1 else None
    if not isinstance(entry, Entry):
        return nullcontext()
    return log_fields(tenant=entry.schedule.tenant, schedule=entry.schedule.id, trace_id=trace_id_of(entry))
