"""Why a schedule fired, fires or does not: tables of what is known, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from light_scheduler.engine.progress import standing as standing_entry
from light_scheduler.engine.why import Facts, Outage, Standing, Stopped, outlook, sentences
from light_scheduler.model import (
    NEVER,
    SCHEDULE_EVENTS,
    Acknowledgement,
    Awaited,
    Bounds,
    Entry,
    EventType,
    FixedRate,
    HistoryEvent,
    Once,
    Progress,
    Schedule,
    Target,
)
from light_scheduler.model.tenant_rules import Tenant, TenantState

DUE = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
MIDNIGHT, ONE = "2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z"
UNKNOWN = (
    "the history does not say why (workers that were down or restarting, an unavailable target topic, a rate cap and a "
    "backlog leave no event)"
)


def event(kind: str, at: int, **fields: Any) -> HistoryEvent:
    told: dict[str, Any] = {
        "version": 1, "due": DUE, "sequence": 1, "attempt": 1, "target_topic": "out", "reason": None, "partition": 3,
    } | fields  # fmt: skip
    return HistoryEvent(EventType(kind), "acme", "a", at=at, **told)


def pending(progress: dict[str, Any] | None = None, **definition: Any) -> Entry:
    """Return a pending schedule that is due at `DUE`."""
    told: dict[str, Any] = {"trigger": Once(DUE), "target": Target("out"), "version": 1} | definition
    schedule = Schedule(
        "acme", "a", payload=None, headers=[], source_partition=3, source_offset=7, accepted_at=DUE - HOUR, **told
    )
    entry = standing_entry(schedule, Progress(**{"due": DUE, "arrival": 7, **(progress or {})}))
    assert entry is not None
    return entry


def facts(now: int, entry: Entry | None = None, **known: Any) -> Facts:
    place = {name: known.pop(name, None) for name in ("outage", "clock_skew")}
    standing = None if entry is None else Standing(entry=entry, topic="commands", partition=3, **place)
    return Facts(now=now, searched_from=DUE - 24 * HOUR, standing=standing, **known)


ACCEPTED = event("scheduled", DUE - HOUR)

SENTENCES = {
    "accepted": ([ACCEPTED], f"Accepted as version 1, for topic out: due {MIDNIGHT}."),
    "accepted by": (
        [event("scheduled", DUE, by="shop", address="192.0.2.7")],
        f"Accepted by shop from 192.0.2.7 as version 1, for topic out: due {MIDNIGHT}.",
    ),
    "without a time": (
        [event("scheduled", DUE, due=None)],
        "Accepted as version 1, for topic out: no firing is planned.",
    ),
    "replaced": (
        [ACCEPTED, event("updated", DUE, version=2, due=DUE + HOUR)],
        f"Updated to version 2, for topic out: due {MIDNIGHT} -> {ONE}.",
    ),
    "replaced, due as before": (
        [ACCEPTED, event("updated", DUE, version=2, by="shop", address="")],
        f"Updated by shop to version 2, for topic out: still due {MIDNIGHT}.",
    ),
    "replaced after a firing, whose due time is not the next one's": (
        [event("fired", DUE), event("updated", DUE, version=2, due=DUE + HOUR)],
        f"Updated to version 2, for topic out: due {ONE}.",
    ),
    "rescheduled": (
        [ACCEPTED, event("updated", DUE, version=2, due=DUE + HOUR, reason="rescheduled")],
        f"Rescheduled, as version 2: due {MIDNIGHT} -> {ONE}.",
    ),
    "triggered": (
        [event("updated", DUE, reason="triggered: fires at once", by="shop", address="192.0.2.7")],
        "Triggered: fires at once (asked for by shop from 192.0.2.7).",
    ),
    "paused": ([event("paused", DUE)], "Paused."),
    "resumed": ([event("resumed", DUE, by="shop", address="")], f"Resumed by shop: due {MIDNIGHT}."),
    "on time": (
        [ACCEPTED, event("fired", DUE + 3)],
        "Firing 1, attempt 1, was delivered to out, on time (3 ms after due).",
    ),
    "again": (
        [event("fired", DUE), event("fired", DUE + HOUR, attempt=2, reason="attempt 1 was not completed")],
        "Firing 1, attempt 2, was delivered to out: attempt 1 was not completed.",
    ),
    "late, nobody knows why": (
        [ACCEPTED, event("fired", DUE + HOUR)],
        f"Firing 1, attempt 1, was delivered to out, 1h late: {UNKNOWN}.",
    ),
    "late, since it was sent late": (
        [event("scheduled", DUE + HOUR), event("fired", DUE + HOUR + 5)],
        "Firing 1, attempt 1, was delivered to out, 1h late: its command was carried out 1h after that time: it was "
        "sent late, or waited to be read.",
    ),
    "late, but not for the command of another version": (
        [event("updated", DUE + HOUR, version=2), ACCEPTED, event("fired", DUE + HOUR)],
        f"Firing 1, attempt 1, was delivered to out, 1h late: {UNKNOWN}.",
    ),
    "late, since it was paused": (
        [ACCEPTED, event("paused", DUE - 1), event("resumed", DUE + HOUR), event("fired", DUE + HOUR)],
        f"Firing 1, attempt 1, was delivered to out, 1h late: it was paused until {ONE}.",
    ),
    "late, but paused before that": (
        [ACCEPTED, event("resumed", DUE - 1), event("fired", DUE + HOUR)],
        f"Firing 1, attempt 1, was delivered to out, 1h late: {UNKNOWN}.",
    ),
    "late, since it was refused": (
        [ACCEPTED, event("retried", DUE, reason="no such topic"), event("fired", DUE + MINUTE)],
        "Firing 1, attempt 1, was delivered to out, 1m late: its target had refused it (no such topic).",
    ),
    "late, but another firing was refused": (
        [event("retried", DUE, sequence=4, reason="no such topic"), event("fired", DUE + MINUTE, sequence=5)],
        f"Firing 5, attempt 1, was delivered to out, 1m late: {UNKNOWN}.",
    ),
    "late, since it was queued": (
        [event("completed", DUE + HOUR, due=DUE - 1), event("fired", DUE + HOUR + 1, sequence=2)],
        f"Firing 2, attempt 1, was delivered to out, 1h late: the firing before it was only completed at {ONE}.",
    ),
    "late, like those before it": (
        [
            event("skipped", DUE + HOUR, due=DUE - HOUR, count=2, reason="missed"),
            event("fired", DUE + HOUR, sequence=2),
        ],
        "Firing 2, attempt 1, was delivered to out, 1h late: the firings since 2025-12-31T23:00:00.000Z were not "
        f"delivered in time either, and {UNKNOWN}.",
    ),
    "completed": ([event("completed", DUE)], "Firing 1, attempt 1, was reported as completed."),
    "failed": (
        [event("completed", DUE, reason="failure", by="shop", address="")],
        "Firing 1, attempt 1, was reported as failed by shop.",
    ),
    "retried": (
        [event("retried", DUE, reason="no such topic")],
        "The target refused firing 1: no such topic. It is tried again in the next minute.",
    ),
    "skipped": (
        [event("skipped", DUE, count=3, reason="missed, and left out by the misfire policy skip")],
        f"3 firings were skipped, from {MIDNIGHT} on: missed, and left out by the misfire policy skip.",
    ),
    "one skipped": (
        [event("skipped", DUE, count=UNSET, reason="the firing before it is not completed")],
        f"1 firing was skipped, from {MIDNIGHT} on: the firing before it is not completed.",
    ),
    "expired": (
        [event("expired", DUE, reason="2000 ms after due; its time to live was 1000 ms")],
        f"Firing 1, due {MIDNIGHT}, was not delivered: 2000 ms after due; its time to live was 1000 ms.",
    ),
    "missed": (
        [event("missed", DUE, reason="due 9 ms ago, before the lookback of 0 minutes")],
        f"Firing 1, due {MIDNIGHT}, became a dead letter: due 9 ms ago, before the lookback of 0 minutes.",
    ),
    "dead-lettered": (
        [event("dead_lettered", DUE, reason="not completed after 2 attempts")],
        f"Firing 1, due {MIDNIGHT}, became a dead letter: not completed after 2 attempts.",
    ),
    "rejected": (
        [event("rejected", DUE, version=None, due=None, reason="schedule-at: 'soon' is not an instant", by="x")],
        "A command by x was rejected, and changed nothing: schedule-at: 'soon' is not an instant.",
    ),
    "cancelled": ([event("cancelled", DUE)], "Cancelled."),
    "cancelled by": (
        [event("cancelled", DUE, by="shop", address="192.0.2.7", reason="its tenant was deleted")],
        "Cancelled by shop from 192.0.2.7: its tenant was deleted.",
    ),
    "finished": ([event("finished", DUE)], "The series is finished: no firing is left after number 1."),
    "finished by a bound": (
        [event("finished", DUE, reason="no firing is left before its end")],
        "The series is finished: no firing is left before its end.",
    ),
    "moved": (
        [event("moved", DUE, version=None, reason="the command schedule was passed on to partition 5")],
        "Moved: the command schedule was passed on to partition 5.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SENTENCES)
def test_each_event_is_a_sentence(case: str) -> None:
    events, text = SENTENCES[case]
    said = sentences(events)
    assert said[-1].text == text
    assert [(each.at, each.event, each.version, each.due) for each in said] == [
        (each.at, each.event, each.version, each.due) for each in events
    ]


def test_every_kind_of_event_has_a_case() -> None:
    assert {events[-1].event for events, _ in SENTENCES.values()} == SCHEDULE_EVENTS


def test_a_firing_within_its_window_is_not_late() -> None:
    fired = event("fired", DUE + MINUTE)
    spread = pending({"due": DUE + HOUR}, trigger=FixedRate(HOUR, DUE), bounds=Bounds(window=10 * MINUTE))
    said = sentences([fired], spread)[0].text
    assert said == "Firing 1, attempt 1, was delivered to out, 1m after due, within its window of 10m."


SERIES: dict[str, Any] = {"trigger": FixedRate(HOUR, DUE)}
ACKNOWLEDGED: dict[str, Any] = {"acknowledgement": Acknowledgement(HOUR, 2)}
DELIVERED = {"due": NEVER, "awaited": (Awaited(DUE, 1, 1, DUE + HOUR, DUE + 5),)}
OUTAGE = Outage("out", [], DUE - HOUR, "no leader")
NEXT = f"It fires next at {MIDNIGHT} (in 1m)"
OVERDUE = f"It has been due since {MIDNIGHT} (1m ago)"
BEFORE, AFTER = DUE - MINUTE, DUE + MINUTE

PENDING: dict[str, tuple[Facts, str, int | None, str]] = {
    "next": (facts(BEFORE, pending()), "pending", DUE, f"{NEXT}."),
    "paused": (
        facts(BEFORE, pending({"paused": True})),
        "paused",
        None,
        f"It is paused, and does not fire until it is resumed. It would fire at {MIDNIGHT}.",
    ),
    "of a paused tenant": (
        facts(BEFORE, pending(), tenant=Tenant(name="acme", state=TenantState.PAUSED)),
        "pending",
        DUE,
        f"{NEXT}: the tenant acme is paused, so it does not fire until the tenant is resumed.",
    ),
    "due, of a deleted tenant": (
        facts(AFTER, pending(), tenant=Tenant(name="acme", state=TenantState.DELETED)),
        "pending",
        DUE,
        f"{OVERDUE}: the tenant acme is deleted, so its schedules are removed.",
    ),
    "of an active tenant": (facts(BEFORE, pending(), tenant=Tenant(name="acme")), "pending", DUE, f"{NEXT}."),
    "its target is unavailable": (
        facts(AFTER, pending(), outage=OUTAGE),
        "pending",
        DUE,
        f"{OVERDUE}: its target topic out is unavailable since 2025-12-31T23:00:00.000Z (no leader), and it waits for "
        "that.",
    ),
    "its target is unavailable before it is due": (
        facts(BEFORE, pending(), outage=OUTAGE),
        "pending",
        DUE,
        f"{NEXT}: its target topic out is unavailable since 2025-12-31T23:00:00.000Z (no leader), and it waits if that "
        "lasts.",
    ),
    "a part of its target is unavailable": (
        facts(AFTER, pending(), outage=Outage("out", [1, 2], DUE, "no leader")),
        "pending",
        DUE,
        f"{OVERDUE}: of its target topic out partition 1, 2 is unavailable since {MIDNIGHT} (no leader), and it waits "
        "if it goes there.",
    ),
    "it goes to the part that is unavailable": (
        facts(AFTER, pending(target=Target("out", partition=2)), outage=Outage("out", [1, 2], DUE, "no leader")),
        "pending",
        DUE,
        f"{OVERDUE}: its target topic out is unavailable since {MIDNIGHT} (no leader), and it waits for that.",
    ),
    "capped": (
        facts(AFTER, pending(), rate=0.5),
        "pending",
        DUE,
        f"{OVERDUE}: it may wait for the rate cap of 0.5 firings a second.",
    ),
    "capped, and not due yet": (facts(BEFORE, pending(), rate=0.5), "pending", DUE, f"{NEXT}."),
    "the clock is wrong": (
        facts(AFTER, pending(), clock_skew=-5_000),
        "pending",
        DUE,
        f"{OVERDUE}: the clock of its worker is 5s behind the broker's: check NTP.",
    ),
    "the clock is as good as right": (facts(BEFORE, pending(), clock_skew=500), "pending", DUE, f"{NEXT}."),
    "past its time to live": (
        facts(AFTER, pending(ttl=SECOND), outage=OUTAGE),
        "pending",
        DUE,
        f"{OVERDUE}: its target topic out is unavailable since 2025-12-31T23:00:00.000Z (no leader), and it waits for "
        "that; its time to live ended at 2026-01-01T00:00:01.000Z, so it will not be delivered.",
    ),
    "nothing is in the way": (
        facts(AFTER, pending()),
        "pending",
        DUE,
        f"{OVERDUE}, and nothing is known to delay it except what was due before it.",
    ),
    "refused": (
        facts(AFTER, pending({"retry_at": DUE + 2 * MINUTE, "refusals": 1})),
        "pending",
        DUE,
        "Its target refused it. It is tried again at 2026-01-01T00:02:00.000Z (in 1m).",
    ),
    "waits for its completion": (
        facts(AFTER, pending(DELIVERED, **ACKNOWLEDGED)),
        "awaiting",
        None,
        "Firing 1, attempt 1, was delivered at 2026-01-01T00:00:00.005Z, and waits for its completion until "
        f"{ONE} (in 59m). If it is not completed by then, it is delivered again, as attempt 2.",
    ),
    "waits for its completion the last time": (
        facts(AFTER, pending(DELIVERED, acknowledgement=Acknowledgement(HOUR, 1))),
        "awaiting",
        None,
        "Firing 1, attempt 1, was delivered at 2026-01-01T00:00:00.005Z, and waits for its completion until "
        f"{ONE} (in 59m). If it is not completed by then, it becomes a dead letter.",
    ),
    "a series waits for a completion, and one firing for that": (
        facts(
            DUE - MINUTE,
            pending(
                {"awaited": (Awaited(DUE - 2 * HOUR, 1, 1, DUE + HOUR, DUE - 2 * HOUR),), "queued": DUE - HOUR},
                **SERIES,
                acknowledgement=Acknowledgement(3 * HOUR, 2, "queue"),
            ),
        ),
        "pending",
        DUE,
        f"{NEXT}. Firing 1, attempt 1, was delivered at 2025-12-31T22:00:00.000Z, and waits for its completion until "
        f"{ONE} (in 1h 1m). If it is not completed by then, it is delivered again, as attempt 2. The firing that was "
        "due at 2025-12-31T23:00:00.000Z waits for that.",
    ),
}


@pytest.mark.parametrize("case", PENDING)
def test_what_is_pending_fires_next_or_waits_for_something(case: str) -> None:
    known, *expected = PENDING[case]
    assert [*outlook([ACCEPTED], known)] == expected


def test_a_window_says_when_within_it() -> None:
    spread = pending(bounds=Bounds(window=HOUR))
    said = outlook([ACCEPTED], facts(DUE, spread)).summary
    assert said.startswith(
        f"It has been due since {MIDNIGHT} (0ms ago), and is delivered within its window, at 2026-01-01"
    )


def test_who_paused_it_and_why_its_target_refused_it_is_in_the_history() -> None:
    paused = event("paused", DUE - HOUR, by="shop", address="192.0.2.7")
    said = outlook([ACCEPTED, paused], facts(BEFORE, pending({"paused": True}))).summary
    assert said.startswith("It is paused since 2025-12-31T23:00:00.000Z by shop from 192.0.2.7, and does not fire")
    refused = event("retried", DUE, reason="no such topic")
    said = outlook([ACCEPTED, refused], facts(AFTER, pending({"retry_at": AFTER, "refusals": 1}))).summary
    assert said == "Its target refused it: no such topic. It is tried again now."


def test_a_schedule_that_is_older_than_the_history_says_when_it_was_accepted() -> None:
    said = outlook([event("paused", DUE)], facts(BEFORE, pending())).summary
    assert said == f"{NEXT}. Version 1 was accepted at 2025-12-31T23:00:00.000Z."


ENDS: dict[str, tuple[list[HistoryEvent], str, str]] = {
    "never heard of": (
        [],
        "unknown",
        "Nothing is known of it: it is not pending, and the history since 2025-12-31T00:00:00.000Z has no event of it.",
    ),
    "delivered": ([event("fired", DUE)], "delivered", f"It was delivered at {MIDNIGHT}, and does not fire again."),
    "completed": (
        [event("completed", DUE)],
        "completed",
        f"It was delivered, and reported at {MIDNIGHT}. It does not fire again.",
    ),
    "finished": (
        [event("fired", DUE), event("finished", DUE)],
        "finished",
        f"The series was finished at {MIDNIGHT}: it does not fire again.",
    ),
    "finished by a bound": (
        [event("finished", DUE, reason="no firing is left before its end")],
        "finished",
        f"The series was finished at {MIDNIGHT} (no firing is left before its end): it does not fire again.",
    ),
    "cancelled": (
        [ACCEPTED, event("cancelled", DUE - MINUTE, by="shop", address="")],
        "cancelled",
        f"It was cancelled at 2025-12-31T23:59:00.000Z by shop, and does not fire. It was due at {MIDNIGHT}.",
    ),
    "cancelled, and a later command rejected": (
        [event("cancelled", DUE), event("rejected", DUE + HOUR, version=None, reason="wrong")],
        "cancelled",
        f"It was cancelled at {MIDNIGHT}, and does not fire. It was due at {MIDNIGHT}.",
    ),
    "skipped": (
        [event("skipped", DUE, reason="missed")],
        "skipped",
        f"Its last firing was skipped at {MIDNIGHT}: missed. It does not fire again.",
    ),
    "expired": (
        [event("expired", DUE + HOUR, reason="too late")],
        "expired",
        f"It expired at {ONE}: too late. It does not fire. It was due at {MIDNIGHT}.",
    ),
    "missed": (
        [event("missed", DUE + HOUR, reason="too late")],
        "missed",
        f"It became a dead letter at {ONE}: too late. It does not fire again. It was due at {MIDNIGHT}.",
    ),
    "dead-lettered": (
        [event("dead_lettered", DUE + HOUR, reason="refused")],
        "dead_lettered",
        f"It became a dead letter at {ONE}: refused. It does not fire again. It was due at {MIDNIGHT}.",
    ),
    "rejected": (
        [event("rejected", DUE, version=None, reason="schedule-at: wrong")],
        "rejected",
        f"It is not pending: its command was rejected at {MIDNIGHT}: schedule-at: wrong.",
    ),
    "moving": (
        [event("moved", DUE - HOUR, reason="handed over to partition 5")],
        "moving",
        f"It is on its way to another partition since 2025-12-31T23:00:00.000Z: handed over to partition 5. It was due "
        f"at {MIDNIGHT}.",
    ),
    "passed on": (
        [event("moved", DUE, version=None, reason="the command was passed on")],
        "gone",
        f"It is not pending, and the history does not say what happened to it after {MIDNIGHT} (moved).",
    ),
    "gone": (
        [ACCEPTED],
        "gone",
        "It is not pending, and the history does not say what happened to it after 2025-12-31T23:00:00.000Z "
        "(scheduled).",
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_what_is_not_pending_has_ended_somehow(case: str) -> None:
    events, state, summary = ENDS[case]
    assert outlook(events, facts(DUE + HOUR)) == (state, None, summary)


STOPPED = [Stopped("commands", number, "restoring: half of it") for number in (1, 3)]


@pytest.mark.parametrize(
    ("events", "state", "named"),
    [
        ([], "unreachable", "commands[1] (restoring: half of it); commands[3] (restoring: half of it)"),
        ([ACCEPTED], "unreachable", "nobody answers for commands[3] (restoring: half of it). Ask again later."),
        ([event("fired", DUE)], "unreachable", "commands[3]"),  # a series may be pending there
        ([event("cancelled", DUE)], "cancelled", "cancelled"),
        ([event("finished", DUE)], "finished", "finished"),
    ],
)
def test_a_partition_that_does_not_answer_may_have_it(events: list[HistoryEvent], state: str, named: str) -> None:
    said = outlook(events, facts(DUE, stopped=STOPPED))
    assert said.state == state
    assert named in said.summary


def test_what_was_found_is_told_whatever_else_does_not_answer() -> None:
    assert outlook([ACCEPTED], facts(BEFORE, pending(), stopped=STOPPED)).state == "pending"


@pytest.mark.parametrize(
    ("last", "entry", "state"),
    [
        (event("fired", DUE), pending(), "delivered"),
        (event("fired", DUE), pending(**SERIES), "pending"),
        (event("fired", DUE), pending(DELIVERED, **ACKNOWLEDGED), "awaiting"),
        (event("expired", DUE), pending(), "expired"),
        (event("dead_lettered", DUE), pending(**SERIES), "pending"),
        (event("cancelled", DUE), pending(**SERIES), "cancelled"),
        (event("cancelled", DUE), pending(version=2), "pending"),
        (event("finished", DUE), pending(**SERIES), "finished"),
        (event("retried", DUE, reason="x"), pending(), "pending"),
    ],
)
def test_the_history_is_read_later_so_its_end_counts(last: HistoryEvent, entry: Entry, state: str) -> None:
    assert outlook([last], facts(DUE, entry)).state == state
