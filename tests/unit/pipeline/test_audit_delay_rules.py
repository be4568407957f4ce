"""What delay rules forward is a copy that nobody has to account for, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.ledger import Ledger

from light_scheduler.model import DelayRule
from light_scheduler.pipeline.audit.bounds import Horizon
from light_scheduler.pipeline.audit.changes import NO_CHANGES, ToldChange
from light_scheduler.pipeline.audit.faults import FaultKind
from light_scheduler.pipeline.audit.forwarding import NOWHERE, Forwarding, routes_with
from light_scheduler.wire import delay_changes

from .conftest import Verdicts, evidence, forwarding_of, judged_in_parts
from .test_audit_clearing import cleared, found, terms_of
from .test_audit_lost_history import forget_history

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, HOUR = 60_000, 3_600_000
LATER, LAST = "app-later", "app-last"
BOTH = (LATER, LAST)


@pytest.fixture
def ledger() -> Ledger:
    """An hour of firings, which two rules forward, one after the other."""
    ledger = Ledger()
    ledger.delay(DelayRule("later", ledger.target, 20 * MINUTE, LATER), M)
    ledger.delay(DelayRule("last", LATER, 5 * MINUTE, LAST), M)
    for number in range(5):
        ledger.send(f"once-{number}", M + 1, ("at", M + (10 + number) * MINUTE))
    ledger.send("rate", M + 1, ("every", "10m"), ("end", M + HOUR))
    ledger.run(M + 1)
    ledger.run_until(M + HOUR)
    ledger.forward(M + 2 * HOUR)
    return ledger


def kinds(ledger: Ledger, verdicts: Verdicts) -> dict[str, list[FaultKind]]:
    judged = verdicts(ledger, end=M + 2 * HOUR, targets=BOTH)
    return {id: [fault.kind for fault in verdict.faults] for id, verdict in judged.items() if verdict.faults}


def test_what_a_rule_has_forwarded_is_no_duplicate(ledger: Ledger, verdicts: Verdicts) -> None:
    assert len(ledger.of(LAST)) == len(ledger.of(LATER)) == len(ledger.of(ledger.target)) > 5
    assert kinds(ledger, verdicts) == {}


def test_a_copy_that_no_rule_has_forwarded_is_a_duplicate(ledger: Ledger, verdicts: Verdicts) -> None:
    record = ledger.of(ledger.target)[0]
    ledger.append(ledger.target, 3, record.timestamp, record.key, record.value, record.headers)
    assert list(kinds(ledger, verdicts).values()) == [[FaultKind.DUPLICATE]]


def test_what_was_forwarded_does_not_stand_in_for_what_is_missing(ledger: Ledger, verdicts: Verdicts) -> None:
    lost = next(record for record in ledger.of(ledger.target) if record.header("schedule-id") == b"once-3")
    ledger.remove(lost)
    assert kinds(ledger, verdicts) == {"once-3": [FaultKind.MISSING]}


def test_audits_in_parts_know_what_was_forwarded_later(ledger: Ledger) -> None:
    assert judged_in_parts(ledger, [M + 15 * MINUTE, M + 40 * MINUTE, M + 2 * HOUR], targets=BOTH) == []


def test_what_was_forwarded_is_judged_with_a_replay_as_without(ledger: Ledger) -> None:
    rows = evidence(ledger, BOTH)
    terms = terms_of(
        ledger, forwarding=forwarding_of(ledger), horizon=Horizon(dict.fromkeys((*BOTH, ledger.target), 0), 0)
    )
    assert found(rows, terms) == found(rows, replace(terms, replays_all=True))
    assert cleared(evidence(ledger), terms) == 5
    assert [name for name in found(rows, terms)[1] if ("what", "fault") in name] == []
    assert [name for name in found(rows, replace(terms, forwarding=NOWHERE))[1] if ("what", "fault") in name] != []


def test_what_was_forwarded_of_a_firing_that_the_history_has_lost_is_not_unexpected(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    begins = forget_history(ledger, M + 12 * MINUTE, 2)
    ledger.append(ledger.names.history, 0, M + HOUR, *told_again(ledger), [])
    judged = verdicts(ledger, end=M + 2 * HOUR, whole_since=max(begins.values()), history=begins, targets=BOTH)
    assert [fault for verdict in judged.values() for fault in verdict.faults] == []


def told_again(ledger: Ledger) -> tuple[bytes, bytes]:
    other = Ledger()
    for rule in ledger.delays:
        other.delay(rule, M)
    (first, second) = other.of(other.names.history)
    assert first.value is not None
    assert second.value is not None
    ledger.append(ledger.names.history, 0, M + HOUR, first.key, first.value, [])
    return second.key or b"", second.value


# -- routes ------------------------------------------------------------------------------------------------------------


def test_a_route_leads_over_any_number_of_rules_and_not_back() -> None:
    forwarding = Forwarding([("a", "b"), ("b", "c"), ("c", "a"), ("x", "c")])
    assert [topic for topic in "abcx" if forwarding.leads("a", topic)] == ["b", "c"]
    assert [topic for topic in "abcx" if forwarding.leads_to(topic)] == ["a", "b", "c"]
    assert not NOWHERE.leads(None, "a")
    assert not NOWHERE.leads_to("a")


def test_routes_are_all_that_rules_have_been() -> None:
    first, second = DelayRule("r", "a", 1, "b"), DelayRule("r", "a", 1, "c")
    reasons = [delay_changes.put(None, first), delay_changes.put(first, second), delay_changes.removed(second)]
    told = [ToldChange("", M, reason) for reason in reasons]
    assert NO_CHANGES.after(told).routes == {"r": (("a", "b"), ("a", "c"))}
    assert NO_CHANGES.after(told[:1]).after(told[1:]).routes == {"r": (("a", "b"), ("a", "c"))}
    assert NO_CHANGES.after(told[1:]).routes == {"r": (("a", "c"),)}
    assert NO_CHANGES.after(told[1:2]).routes == {}
    configured = DelayRule("s", "b", 1, "d")
    assert routes_with([configured], {"r": (("a", "b"),)}) == {"r": (("a", "b"),), "s": (("b", "d"),)}
