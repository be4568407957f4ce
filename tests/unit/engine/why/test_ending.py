"""How a schedule ended that is not pending, or that nobody knows of."""

from __future__ import annotations

import pytest
from support.why import ACCEPTED, DUE, HOUR, MIDNIGHT, MINUTE, ONE, event, facts, pending

from light_scheduler.engine.why import Stopped, outlook
from light_scheduler.model import Entry, HistoryEvent

from .test_outlook import ACKNOWLEDGED, BEFORE, DELIVERED, SERIES

ENDS: dict[str, tuple[list[HistoryEvent], str, str]] = {
    "never heard of": (
        [],
        "unknown",
        "It is unknown: it is not pending, and the history since 2025-12-31T00:00:00.000Z has no event about it.",
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
        "It has been moving to another partition since 2025-12-31T23:00:00.000Z: handed over to partition 5. "
        f"It was due at {MIDNIGHT}.",
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
