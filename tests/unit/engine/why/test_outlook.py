"""What a pending schedule waits for, and when it fires next."""

from __future__ import annotations

from typing import Any

import pytest
from support.why import ACCEPTED, DUE, HOUR, MIDNIGHT, MINUTE, ONE, SECOND, event, facts, pending

from light_scheduler.engine.firing_rules import FiringRules
from light_scheduler.engine.progress import release_of
from light_scheduler.engine.refused_firings import OVERTAKEN
from light_scheduler.engine.why import Facts, Outage, outlook
from light_scheduler.model import NEVER, Acknowledgement, Awaited, Bounds, FixedRate, Target
from light_scheduler.model.tenant_rules import Tenant, TenantState
from light_scheduler.wire import format_instant

SERIES: dict[str, Any] = {"trigger": FixedRate(HOUR, DUE)}
ACKNOWLEDGED: dict[str, Any] = {"acknowledgement": Acknowledgement(HOUR, 2)}
DELIVERED = {"due": NEVER, "awaited": (Awaited(DUE, 1, 1, DUE + HOUR, DUE + 5),)}
OUTAGE = Outage("out", [], DUE - HOUR, "no leader")
NEXT = f"It fires next at {MIDNIGHT} (in 1m)"
OVERDUE = f"It has been due since {MIDNIGHT} (1m ago)"
THREE = "2026-01-01T03:00:00.000Z"
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
    "refused, and past its time to live when it would be tried again": (
        facts(DUE + SECOND, pending({"retry_at": DUE + MINUTE, "refusals": 1}, ttl=10 * SECOND)),
        "pending",
        DUE,
        "Its target refused it. It expires at 2026-01-01T00:01:00.000Z (in 59s), and is not tried again: its time to "
        "live ends at 2026-01-01T00:00:10.000Z.",
    ),
    "refused, and within its time to live when it is tried again": (
        facts(DUE + SECOND, pending({"retry_at": DUE + MINUTE, "refusals": 1}, ttl=MINUTE)),
        "pending",
        DUE,
        "Its target refused it. It is tried again at 2026-01-01T00:01:00.000Z (in 59s).",
    ),
    "refused before its next time, whose time to live is that of the firing that was asked for": (
        facts(
            DUE - MINUTE,
            pending(
                {"triggered": (DUE - MINUTE - 1,), "retry_at": DUE - 30 * SECOND, "refusals": 1}, **SERIES, ttl=SECOND
            ),
        ),
        "pending",
        DUE - MINUTE - 1,
        "Its target refused it. It expires at 2025-12-31T23:59:30.000Z (in 30s), and is not tried again: its time to "
        "live ends at 2025-12-31T23:59:00.999Z.",
    ),
    "asked for while it is paused, ahead of what was refused": (
        facts(
            AFTER,
            pending({"paused": True, "triggered": (DUE + 1,), "retry_at": OVERTAKEN}, **SERIES),
            tenant=Tenant(name="acme", state=TenantState.PAUSED),
            outage=OUTAGE,
        ),
        "paused",
        DUE + 1,
        "It has been due since 2026-01-01T00:00:00.001Z (59s 999ms ago): the tenant acme is paused, so it does not "
        "fire until the tenant is resumed; its target topic out is unavailable since 2025-12-31T23:00:00.000Z (no "
        "leader), and it waits for that.",
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
    "waits for its completion for longer than its time to live": (
        facts(DUE + SECOND, pending(DELIVERED, **ACKNOWLEDGED, ttl=MINUTE)),
        "awaiting",
        None,
        "Firing 1, attempt 1, was delivered at 2026-01-01T00:00:00.005Z, and waits for its completion until "
        f"{ONE} (in 59m 59s). If it is not completed by then, it expires: its time to live ends at "
        "2026-01-01T00:01:00.000Z.",
    ),
    "waits for its completion the last time, for longer than its time to live, which is over": (
        facts(AFTER, pending(DELIVERED, acknowledgement=Acknowledgement(HOUR, 1), ttl=SECOND)),
        "awaiting",
        None,
        "Firing 1, attempt 1, was delivered at 2026-01-01T00:00:00.005Z, and waits for its completion until "
        f"{ONE} (in 59m). If it is not completed by then, it becomes a dead letter.",
    ),
    "waits for its completion for no longer than its time to live": (
        facts(AFTER, pending(DELIVERED, **ACKNOWLEDGED, ttl=HOUR)),
        "awaiting",
        None,
        "Firing 1, attempt 1, was delivered at 2026-01-01T00:00:00.005Z, and waits for its completion until "
        f"{ONE} (in 59m). If it is not completed by then, it is delivered again, as attempt 2.",
    ),
    "refused as another attempt, and past its time to live when it would be tried again": (
        facts(
            DUE + HOUR,
            pending(DELIVERED | {"retry_at": DUE + HOUR + MINUTE, "refusals": 1}, **ACKNOWLEDGED, ttl=HOUR),
        ),
        "awaiting",
        None,
        "Firing 1, attempt 1, was delivered at 2026-01-01T00:00:00.005Z, and waits for its completion until "
        f"{ONE}. If it is not completed by then, it expires: its time to live ended at {ONE}.",
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


EVERY_HOUR: dict[str, Any] = {"trigger": FixedRate(HOUR, DUE)}
TEN_MINUTES, HALF_PAST_TWO = DUE + 10 * MINUTE, DUE + 2 * HOUR + HOUR // 2
LOOKBACK = FiringRules(lookback_minutes=5)
IN_AN_HOUR: dict[str, Any] = {"paused": True, "due": DUE + HOUR}
TIMED_OUT = {"awaited": (Awaited(DUE, 1, 1, DUE + MINUTE, DUE),)}
DELIVERED_ONCE = (
    f"Firing 1, attempt 1, was delivered at {MIDNIGHT}, and waits for its completion until 2026-01-01T00:01:00.000Z. "
    "If it is not completed by then and the schedule is resumed,"
)
PAUSED: dict[str, tuple[Facts, str]] = {
    "a one-shot fires": (facts(TEN_MINUTES, pending({"paused": True})), "it fires at once."),
    "a one-shot expires": (
        facts(TEN_MINUTES, pending({"paused": True}, ttl=30 * SECOND)),
        "it expires (its time to live ended at 2026-01-01T00:00:30.000Z).",
    ),
    "a one-shot within its time to live fires": (
        facts(DUE + 30 * SECOND, pending({"paused": True}, ttl=30 * SECOND)),
        "it fires at once.",
    ),
    "a one-shot from before the lookback": (
        facts(TEN_MINUTES, pending({"paused": True}), rules=LOOKBACK),
        "it becomes a dead letter (due 600000 ms ago, before the lookback of 5 minutes).",
    ),
    "a series skips what it has missed": (
        facts(HALF_PAST_TWO, pending({"paused": True}, **EVERY_HOUR, bounds=Bounds(misfire="skip"))),
        f"it fires next at {THREE} (in 30m).",
    ),
    "a series delivers the latest": (
        facts(HALF_PAST_TWO, pending({"paused": True}, **EVERY_HOUR)),
        "it fires at once.",
    ),
    "a series that skips has ended": (
        facts(HALF_PAST_TWO, pending({"paused": True}, **EVERY_HOUR, bounds=Bounds(misfire="skip", end=DUE + HOUR))),
        "it ends: no firing is left before its end.",
    ),
    "the last firing of a series has expired": (
        facts(HALF_PAST_TWO, pending({"paused": True}, **EVERY_HOUR, bounds=Bounds(end=DUE + HOUR), ttl=MINUTE)),
        "its last firing expires (its time to live ended at 2026-01-01T01:01:00.000Z), and it ends: no firing is left "
        "before its end.",
    ),
    "all that a series has missed has expired": (
        facts(HALF_PAST_TWO, pending({"paused": True}, **EVERY_HOUR, bounds=Bounds(misfire="all"), ttl=MINUTE)),
        f"it fires next at {THREE} (in 30m).",
    ),
    "more has expired than is looked at": (
        facts(
            HALF_PAST_TWO,
            pending({"paused": True}, trigger=FixedRate(1, DUE), bounds=Bounds(misfire="all"), ttl=MINUTE),
        ),
        "it first gives up the firings that are too late to be delivered.",
    ),
    "a firing waits for the one before": (
        facts(
            TEN_MINUTES,
            pending(
                {"paused": True, "awaited": (Awaited(DUE - HOUR, 1, 1, DUE + HOUR, DUE - HOUR),)},
                **EVERY_HOUR,
                bounds=Bounds(end=DUE),
                acknowledgement=Acknowledgement(2 * HOUR, 2, "queue"),
            ),
        ),
        "its firing waits for the completion of the one before. Firing 1, attempt 1, was delivered at "
        f"2025-12-31T23:00:00.000Z, and waits for its completion until {ONE} (in 50m). If it is not completed by then "
        "and the schedule is resumed, it is delivered again, as attempt 2.",
    ),
    "a time-out is over before its next time": (
        facts(TEN_MINUTES, pending(IN_AN_HOUR | TIMED_OUT, **EVERY_HOUR, acknowledgement=Acknowledgement(MINUTE, 2))),
        f"it fires at once. {DELIVERED_ONCE} it is delivered again, as attempt 2.",
    ),
    "the last time-out is over before its next time": (
        facts(TEN_MINUTES, pending(IN_AN_HOUR | TIMED_OUT, **EVERY_HOUR, acknowledgement=Acknowledgement(MINUTE, 1))),
        f"it fires next at {ONE} (in 50m). {DELIVERED_ONCE} it becomes a dead letter.",
    ),
    "a time-out is over, and so is the time to live": (
        facts(
            TEN_MINUTES,
            pending(IN_AN_HOUR | TIMED_OUT, **EVERY_HOUR, acknowledgement=Acknowledgement(MINUTE, 2), ttl=5 * MINUTE),
        ),
        f"it fires next at {ONE} (in 50m). {DELIVERED_ONCE} it expires: its time to live ended at "
        "2026-01-01T00:05:00.000Z.",
    ),
    "the last time-out is over, and so is the time to live": (
        facts(
            TEN_MINUTES,
            pending(IN_AN_HOUR | TIMED_OUT, **EVERY_HOUR, acknowledgement=Acknowledgement(MINUTE, 1), ttl=5 * MINUTE),
        ),
        f"it fires next at {ONE} (in 50m). {DELIVERED_ONCE} it becomes a dead letter.",
    ),
    "what was refused is due for its retry": (
        facts(TEN_MINUTES, pending({"paused": True, "refusals": 1, "retry_at": DUE + MINUTE}, **EVERY_HOUR)),
        "it fires at once.",
    ),
    "what was refused waits for its retry": (
        facts(DUE + 30 * SECOND, pending({"paused": True, "refusals": 1, "retry_at": DUE + MINUTE}, **EVERY_HOUR)),
        "what its target refused is tried again at 2026-01-01T00:01:00.000Z.",
    ),
    "a refused attempt waits for its retry before the next time": (
        facts(
            DUE + 90 * SECOND,
            pending(
                IN_AN_HOUR | TIMED_OUT | {"refusals": 1, "retry_at": DUE + 2 * MINUTE},
                **EVERY_HOUR,
                acknowledgement=Acknowledgement(MINUTE, 2),
            ),
        ),
        f"what its target refused is tried again at 2026-01-01T00:02:00.000Z. {DELIVERED_ONCE} it is delivered again, "
        "as attempt 2.",
    ),
    "a firing is queued, and the one before is completed": (
        facts(
            TEN_MINUTES,
            pending(IN_AN_HOUR | {"queued": DUE}, **EVERY_HOUR, acknowledgement=Acknowledgement(2 * HOUR, 2, "queue")),
        ),
        "it fires at once.",
    ),
    "something is in the way": (
        facts(TEN_MINUTES, pending({"paused": True}), tenant=Tenant(name="acme", state=TenantState.PAUSED)),
        "it fires at once: the tenant acme is paused, so it does not fire until the tenant is resumed.",
    ),
}


@pytest.mark.parametrize("case", PAUSED)
def test_what_is_paused_past_its_time_tells_what_the_engine_would_do_if_it_were_resumed(case: str) -> None:
    known, told = PAUSED[case]
    said = outlook([ACCEPTED], known).summary
    assert said == f"It is paused, and does not fire until it is resumed. If it is resumed now, {told}"


def test_what_is_paused_and_has_nothing_overdue_tells_when_it_would_fire_and_what_waits_for_its_completion() -> None:
    waits = {"awaited": (Awaited(DUE, 1, 1, DUE + HOUR // 2, DUE),)}
    entry = pending(IN_AN_HOUR | waits, **EVERY_HOUR, acknowledgement=Acknowledgement(HOUR // 2, 2))
    assert outlook([ACCEPTED], facts(TEN_MINUTES, entry)).summary == (
        f"It is paused, and does not fire until it is resumed. It would fire at {ONE}. Firing 1, attempt 1, was "
        f"delivered at {MIDNIGHT}, and waits for its completion until 2026-01-01T00:30:00.000Z (in 20m). If it is not "
        "completed by then and the schedule is resumed, it is delivered again, as attempt 2."
    )


def test_what_is_paused_in_its_window_tells_when_in_it() -> None:
    window = pending({"paused": True}, bounds=Bounds(window=HOUR))
    said = outlook([ACCEPTED], facts(DUE, window)).summary
    release = release_of(window.schedule, window.progress)
    assert said.endswith(f" If it is resumed now, it fires within its window, at {format_instant(release)}.")


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


@pytest.mark.parametrize("reason", ["triggered: fires at once", "extended: attempt 1 is still being processed"])
def test_a_trigger_or_an_extension_does_not_tell_when_the_schedule_was_accepted(reason: str) -> None:
    said = outlook([event("updated", DUE, reason=reason)], facts(BEFORE, pending())).summary
    assert said == f"{NEXT}. Version 1 was accepted at 2025-12-31T23:00:00.000Z."


@pytest.mark.parametrize("reason", [None, "rescheduled"])
def test_a_new_definition_tells_when_it_was_accepted(reason: str | None) -> None:
    said = outlook([event("updated", DUE - HOUR, reason=reason)], facts(BEFORE, pending())).summary
    assert said == f"{NEXT}."


def test_a_single_firing_that_was_delivered_leaves_pending_what_waits_since_it_was_a_fixed_delay() -> None:
    fired = event("fired", DUE + 5)
    said = outlook([ACCEPTED, fired], facts(DUE + MINUTE, pending(DELIVERED)))
    assert said.state == "awaiting"
    assert said.summary.endswith("If it is not completed by then, it becomes a dead letter.")
