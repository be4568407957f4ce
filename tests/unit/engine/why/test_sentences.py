"""Each event of a history is a sentence."""

from __future__ import annotations

import pytest
from msgspec import UNSET
from support.why import ACCEPTED, DUE, HOUR, MIDNIGHT, MINUTE, ONE, UNKNOWN, event, pending

from light_scheduler.engine.why import sentences
from light_scheduler.model import SCHEDULE_EVENTS, Bounds, FixedRate

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
    "replaced while a firing of it was not completed": (
        [ACCEPTED, event("updated", DUE, version=2, due=DUE + HOUR, reason="replaced: gives up what was delivered")],
        f"Updated to version 2, for topic out: due {MIDNIGHT} -> {ONE}: gives up what was delivered.",
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
    "rescheduled after an extension, whose due time is that of the firing that waits": (
        [
            event("updated", DUE + MINUTE, reason="extended: attempt 1 is still being processed"),
            event("updated", DUE + MINUTE, version=2, due=DUE + HOUR, reason="rescheduled"),
        ],
        f"Rescheduled, as version 2: due {ONE}.",
    ),
    "rescheduled after a trigger": (
        [
            event("updated", DUE - MINUTE, reason="triggered: fires at once"),
            event("updated", DUE - MINUTE, version=2, due=DUE + HOUR, reason="rescheduled"),
        ],
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
    "late, but not for a trigger, which defines no schedule": (
        [ACCEPTED, event("updated", DUE + HOUR, reason="triggered: fires at once"), event("fired", DUE + HOUR)],
        f"Firing 1, attempt 1, was delivered to out, 1h late: {UNKNOWN}.",
    ),
    "late, but not for an extension": (
        [
            ACCEPTED,
            event("updated", DUE + HOUR, reason="extended: attempt 1 is still being processed"),
            event("fired", DUE + HOUR, sequence=2),
        ],
        f"Firing 2, attempt 1, was delivered to out, 1h late: {UNKNOWN}.",
    ),
    "late, since its reschedule was read late": (
        [
            ACCEPTED,
            event("updated", DUE + HOUR, version=2, reason="rescheduled"),
            event("updated", DUE + HOUR, version=2, reason="triggered: fires at once"),
            event("fired", DUE + HOUR + 5, version=2),
        ],
        "Firing 1, attempt 1, was delivered to out, 1h late: its command was carried out 1h after that time: it was "
        "sent late, or waited to be read.",
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
    "late, and not like those of the definition before": (
        [
            event("skipped", DUE + HOUR, due=DUE - HOUR, count=2, reason="replaced"),
            event("fired", DUE + HOUR, version=2),
        ],
        f"Firing 1, attempt 1, was delivered to out, 1h late: {UNKNOWN}.",
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
        [event("skipped", DUE, count=3, reason="missed, and not delivered because of misfire policy skip")],
        f"3 firings were skipped, from {MIDNIGHT} on: missed, and not delivered because of misfire policy skip.",
    ),
    "skipped, since its series was replaced": (
        [event("skipped", DUE, count=2, reason=f"not delivered before a command of {ONE} replaced the schedule")],
        f"2 firings were skipped, from {MIDNIGHT} on: not delivered before a command of {ONE} replaced the schedule.",
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
