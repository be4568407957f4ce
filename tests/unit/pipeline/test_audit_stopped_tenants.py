"""What waits because its tenant is paused, or deleted, is neither missing nor late, however it is judged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.ledger import Ledger

from light_scheduler.model.tenant_rules import TenantState
from light_scheduler.pipeline.audit.faults import FaultKind
from light_scheduler.pipeline.audit.stops import NEVER_STOPPED, Stops, TenantStops, spans_after, told_stops
from light_scheduler.pipeline.audit.verdict_table import LATENESS
from light_scheduler.wire.tenant_changes import StateChange, read_state_change, state_change

from .conftest import Verdicts, evidence, judged_in_parts, stops_of
from .test_audit_clearing import cleared, found, terms_of

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, HOUR = 60_000, 3_600_000
ACTIVE, PAUSED, DELETED = TenantState.ACTIVE, TenantState.PAUSED, TenantState.DELETED


@pytest.fixture
def paused(ledger: Ledger) -> Ledger:
    """An application with an hour's due schedules, of which a tenant was paused after half an hour."""
    for tenant in ("shop", "other"):
        for number in range(1, 7):
            ledger.send(f"{tenant}-{number}", M, ("at", M + number * 10 * MINUTE), ("tenant", tenant))
    ledger.send("rate", M, ("every", "10m"), ("tenant", "shop"))
    ledger.run(M)
    ledger.run_until(M + 30 * MINUTE)
    ledger.stop("shop", PAUSED, M + 35 * MINUTE)
    for minute in (40, 50, 60):
        ledger.run(M + minute * MINUTE)
    return ledger


def kinds(ledger: Ledger, verdicts: Verdicts, end: int) -> dict[str, list[FaultKind]]:
    found = verdicts(ledger, end=end)
    return {id: [fault.kind for fault in verdict.faults] for id, verdict in found.items() if verdict.faults}


def test_nothing_of_a_paused_tenant_is_missing(paused: Ledger, verdicts: Verdicts) -> None:
    assert len(paused.of(paused.target)) == 6 + 3 + 3
    assert kinds(paused, verdicts, M + 2 * HOUR) == {}


def test_nothing_of_a_tenant_is_late_for_the_time_of_its_pause(paused: Ledger, verdicts: Verdicts) -> None:
    paused.stop("shop", ACTIVE, M + 90 * MINUTE)
    paused.run(M + 90 * MINUTE + 1_500)
    assert kinds(paused, verdicts, M + 90 * MINUTE + 2_000) == {}


def test_what_was_late_before_a_pause_or_after_it_is_told(paused: Ledger, verdicts: Verdicts) -> None:
    paused.stop("shop", ACTIVE, M + 90 * MINUTE)
    assert kinds(paused, verdicts, M + 92 * MINUTE).keys() == {"shop-4", "shop-5", "shop-6", "rate"}, "missing"
    paused.run(M + 92 * MINUTE)
    assert kinds(paused, verdicts, M + 93 * MINUTE) == {
        id: [FaultKind.LATE] for id in ("shop-4", "shop-5", "shop-6", "rate")
    }


def test_what_should_have_fired_before_a_pause_is_missing(ledger: Ledger, verdicts: Verdicts) -> None:
    ledger.send("overdue", M, ("at", M + 10 * MINUTE), ("tenant", "shop"))
    ledger.run(M)
    ledger.stop("shop", PAUSED, M + 20 * MINUTE)
    assert kinds(ledger, verdicts, M + HOUR) == {"overdue": [FaultKind.MISSING]}


def test_schedules_of_a_deleted_tenant_are_not_missing_before_they_are_removed(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    ledger.send("ahead", M, ("at", M + HOUR), ("tenant", "shop"))
    ledger.run(M)
    ledger.stop("shop", DELETED, M + 30 * MINUTE)
    assert kinds(ledger, verdicts, M + 2 * HOUR) == {}


def test_audits_in_parts_know_of_a_pause_that_began_before(paused: Ledger) -> None:
    paused.stop("shop", ACTIVE, M + 90 * MINUTE)
    paused.run(M + 90 * MINUTE)
    paused.run_until(M + 2 * HOUR)
    assert judged_in_parts(paused, [M + HOUR, M + 80 * MINUTE, M + 2 * HOUR]) == []


@pytest.mark.parametrize("patience", [MINUTE, HOUR])
def test_a_pause_is_judged_with_a_replay_as_without(paused: Ledger, patience: int) -> None:
    paused.send("at-once", M + 65 * MINUTE, ("after", 0), ("tenant", "shop"))
    paused.stop("shop", ACTIVE, M + 90 * MINUTE)
    paused.run(M + 90 * MINUTE + 30_000)
    rows = evidence(paused)
    terms = terms_of(paused, patience=patience, stops=stops_of(paused))
    assert cleared(rows, terms) == 6 + 6 + 1
    counted, others = found(rows, terms)
    assert (counted, others) == found(rows, replace(terms, replays_all=True))
    assert max(at for what, _, at in counted if what == LATENESS) <= 30_000
    assert cleared(rows, replace(terms, stops=TenantStops())) == 6 + 6 + 1 - (4 if patience == MINUTE else 0)


# -- spans -------------------------------------------------------------------------------------------------------------


def test_only_the_time_of_a_stop_counts() -> None:
    stops = Stops(((10, 20), (30, None)))
    assert [stops.between(*span) for span in [(0, 5), (0, 12), (12, 15), (15, 25), (0, 40), (35, 40)]] == [
        *(0, 2, 3, 5, 20, 5),
    ]
    assert NEVER_STOPPED.between(0, 40) == 0
    assert Stops(((0, M), (M + 1, None))).between(M - 1, M + 3) == 3, "instants are exact"


@pytest.mark.parametrize(
    ("changes", "spans"),
    [
        ([(5, ACTIVE, PAUSED)], ((5, None),)),
        ([(5, ACTIVE, PAUSED), (9, PAUSED, ACTIVE)], ((5, 9),)),
        ([(5, ACTIVE, PAUSED), (7, PAUSED, DELETED), (9, DELETED, ACTIVE)], ((5, 9),)),
        ([(5, ACTIVE, PAUSED), (6, PAUSED, PAUSED)], ((5, None),)),
        ([(5, ACTIVE, ACTIVE)], ()),
        ([(9, PAUSED, ACTIVE)], ((0, 9),)),
        ([(5, ACTIVE, PAUSED), (9, PAUSED, ACTIVE), (20, PAUSED, ACTIVE)], ((5, 9), (9, 20))),
        ([(5, ACTIVE, PAUSED), (4, PAUSED, ACTIVE), (8, ACTIVE, PAUSED)], ((8, None),)),
    ],
    ids=["paused", "resumed", "deleted", "again", "never", "begin lost", "another begin lost", "two clocks"],
)
def test_spans_are_those_between_changes(
    changes: list[tuple[int, TenantState, TenantState]], spans: tuple[tuple[int, int | None], ...]
) -> None:
    reasons = [("shop", at, state_change("shop", before, after)) for at, before, after in changes]
    assert spans_after(told_stops(reasons), {"other": ((1, 2),)}) == {"other": ((1, 2),), "shop": spans}
    for cut in range(len(reasons)):
        before = spans_after(told_stops(reasons[:cut]), {})
        assert spans_after(told_stops(reasons[cut:]), before) == {"shop": spans}


def test_other_changes_are_no_changes_of_a_state() -> None:
    assert read_state_change("shop", "tenant shop: active -> paused") == StateChange(ACTIVE, PAUSED)
    assert read_state_change("shop", "rules of tenant shop: weight none -> 3") is None
    assert read_state_change("", "tenant : active -> paused") is None
    assert read_state_change("shop", "tenant shop: active -> frozen") is None
