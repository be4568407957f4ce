"""Explains why a pending schedule waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from light_scheduler.durations import distance
from light_scheduler.engine.completion import acknowledgement_of
from light_scheduler.engine.expiry import why_expired
from light_scheduler.engine.firing import take_turn
from light_scheduler.engine.firing_rules import FiringRules
from light_scheduler.model import NEVER, Awaited, Entry, EventType, HistoryEvent, Schedule
from light_scheduler.model.tenant_rules import TenantState
from light_scheduler.wire import format_instant

from .facts import Facts, Outage, Standing
from .lateness import LATE_MS


def hindrance(standing: Standing, facts: Facts, due: int) -> str | None:
    """Return what delays a firing, or would, as the end of a sentence; None if nothing does."""
    entry, now = standing.entry, facts.now
    is_late = now - due > LATE_MS
    reasons = list(_reasons(standing, facts, is_due=due <= now))
    ttl = entry.schedule.ttl
    if ttl is not None and now > due + ttl and due == entry.progress.due:
        reasons.append(f"{time_to_live(entry.schedule, due, now)}, so it will not be delivered")
    skew = standing.clock_skew
    if skew is not None and abs(skew) > LATE_MS and (is_late or due > now):
        side = "ahead of" if skew > 0 else "behind"
        reasons.append(f"the clock of its worker is {distance(abs(skew))} {side} the broker's: check NTP")
    return ": " + "; ".join(reasons) + "." if reasons else None


def _reasons(standing: Standing, facts: Facts, *, is_due: bool) -> Iterator[str]:
    tenant = facts.tenant
    if tenant is not None and tenant.is_stopped:
        state = "deleted" if tenant.state is TenantState.DELETED else "paused"
        until = "its schedules are removed" if state == "deleted" else "it does not fire until the tenant is resumed"
        yield f"the tenant {tenant.name} is {state}, so {until}"
    if standing.outage is not None:
        yield _unavailable(standing.outage, standing.entry, is_due=is_due)
    if facts.rate is not None and is_due:
        yield f"it may wait for the rate cap of {facts.rate:g} firings a second"


def _unavailable(outage: Outage, entry: Entry, *, is_due: bool) -> str:
    since = f"unavailable since {format_instant(outage.since)} ({outage.reason})"
    if not outage.partitions or entry.schedule.target.partition in outage.partitions:
        waits = "and it waits for that" if is_due else "and it waits if that lasts"
        return f"its target topic {outage.topic} is {since}, {waits}"
    numbers = ", ".join(map(str, outage.partitions))
    return f"of its target topic {outage.topic} partition {numbers} is {since}, and it waits if it goes there"


def unfinished(entry: Entry, now: int) -> str:
    """Describe which firing of a schedule waits for completion, and until when."""
    awaited = min(entry.progress.awaited, key=lambda each: each.until, default=None)
    if awaited is None:
        return "No firing of it is planned."
    queued = entry.progress.queued
    also = "" if queued is None else f" The firing that was due at {format_instant(queued)} waits for that."
    number = f"Firing {awaited.sequence}, attempt {awaited.attempt}"
    delivered = f"{number}, was delivered at {format_instant(awaited.fired_at)}, and waits for its completion"
    if awaited.until == NEVER:
        return f"{delivered}.{also}"
    left = f" (in {distance(awaited.until - now)})" if awaited.until > now else ""
    resumed = " and the schedule is resumed" if entry.progress.paused else ""
    then = f"If it is not completed by then{resumed}, it {_after_time_out(entry, awaited, now)}."
    return f"{delivered} until {format_instant(awaited.until)}{left}. {then}{also}"


def _after_time_out(entry: Entry, awaited: Awaited, now: int) -> str:
    schedule = entry.schedule
    waits = acknowledgement_of(schedule)
    if waits is None or awaited.attempt >= waits.max_attempts:
        return "becomes a dead letter"
    looked_at = max(awaited.until, entry.progress.retry_at or 0, now)
    if why_expired(schedule, awaited.due, looked_at) is not None:
        return f"expires: {time_to_live(schedule, awaited.due, now)}"
    return f"is delivered again, as attempt {awaited.attempt + 1}"


def tried_again(events: Sequence[HistoryEvent], entry: Entry, retry_at: int, now: int) -> str:
    """Explain why a refused firing waits, and when it is retried or expires."""
    refused = next((each for each in reversed(events) if each.event is EventType.RETRIED), None)
    why = "" if refused is None else f": {refused.reason}"
    when = f"at {format_instant(retry_at)} (in {distance(retry_at - now)})" if retry_at > now else "now"
    turn = take_turn(entry, max(retry_at, now), FiringRules())
    if turn.event is EventType.EXPIRED:
        ends = time_to_live(entry.schedule, turn.subject.progress.due, now)
        return f"Its target refused it{why}. It expires {when}, and is not tried again: {ends}."
    return f"Its target refused it{why}. It is tried again {when}."


def time_to_live(schedule: Schedule, due: int, now: int) -> str:
    """Describe when the time to live of a firing ends or has ended."""
    end = due + (schedule.ttl or 0)
    return f"its time to live {'ended' if end <= now else 'ends'} at {format_instant(end)}"
