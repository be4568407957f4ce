"""Commands that wait for a quota of their tenant are not ignored, and those that overtake them are explained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.ledger import Ledger

from light_scheduler.model import EventType
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.pipeline.audit.faults import FaultKind
from light_scheduler.pipeline.audit.handled import Queue, flat_by_tenant, nested_by_tenant
from light_scheduler.pipeline.audit.verdict_table import HANDLED
from light_scheduler.wire import decode_history

from .conftest import evidence, judged, judged_in_parts
from .test_audit_clearing import found, terms_of

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
SHOP: tuple[str, Any] = ("tenant", "shop")


@pytest.fixture
def ledger() -> Ledger:
    """An application with one partition, in which a tenant may send a command a second."""
    ledger = Ledger(partitions=1)
    rules = TenantRules(commands_per_second=1, over_rate=OverRate.DELAY)
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=rules)])
    return ledger


def events(ledger: Ledger) -> list[EventType]:
    return [decode_history(record.value).event for record in ledger.of(ledger.names.history)]


def send_burst(ledger: Ledger) -> None:
    for number in range(10):
        ledger.send(f"shop-{number}", M, ("at", M + HOUR), SHOP)
    ledger.send("other", M, ("after", 0), ("tenant", "other"))
    ledger.run(M)


def test_commands_that_wait_for_a_quota_are_not_ignored_for_those_of_other_tenants(ledger: Ledger) -> None:
    send_burst(ledger)
    assert events(ledger).count(EventType.SCHEDULED) < 11
    assert judged_in_parts(ledger, [M + SECOND]) == []


def test_a_command_that_a_lane_passed_over_is_ignored_once_a_later_one_of_its_tenant_is_handled(
    ledger: Ledger,
) -> None:
    ledger.send("passed-over", M, ("at", M + HOUR), SHOP)
    ledger.forget()
    ledger.send("other", M, ("after", 0), ("tenant", "other"))
    ledger.run(M)
    assert judged_in_parts(ledger, [M + SECOND]) == []
    ledger.send("next", M + 2 * SECOND, ("at", M + HOUR), SHOP)
    ledger.run(M + 2 * SECOND)
    (fault,) = judged_in_parts(ledger, [M + SECOND, M + 3 * SECOND])
    assert (fault[0], fault[1].kind) == ("passed-over", FaultKind.IGNORED)


def test_how_far_commands_are_handled_is_told_of_each_tenant_with_a_replay_as_without(ledger: Ledger) -> None:
    send_burst(ledger)
    rows, terms = evidence(ledger), terms_of(ledger, end=M + MINUTE)
    counted, others = found(rows, terms)
    assert (counted, others) == found(rows, replace(terms, replays_all=True))
    handled = {key[2]: offset for key, offset in counted.items() if key[0] == HANDLED}
    scheduled = events(ledger).count(EventType.SCHEDULED)
    assert handled == {(0, "other"): 10, (0, "shop"): scheduled - 2}


REPORTS: dict[str, list[tuple[str, Any]]] = {
    "complete": [("command", "complete"), ("completion", "success")],
    "fail": [("command", "complete"), ("completion", "failure")],
    "extend": [("command", "extend"), ("ack-timeout", "50m")],
}


@pytest.mark.parametrize("report", REPORTS)
def test_reports_overtake_commands_that_wait(report: str, ledger: Ledger) -> None:
    ledger.send("work", M, ("every", "1h"), ("ack-timeout", "30m"), ("max-attempts", 3), SHOP)
    ledger.run(M)
    ledger.run_until(M + HOUR)
    for number in range(10):
        ledger.send(f"shop-{number}", M + HOUR, ("at", M + 2 * HOUR), SHOP)
    ledger.send("work", M + HOUR, ("command", "reschedule"), ("every", "15m"), SHOP)
    named = ("firing-id", f"work@{M + HOUR}"), ("attempt", 1)
    ledger.send("work", M + HOUR, *REPORTS[report], *named, SHOP, value=None)
    ledger.run(M + HOUR)
    told = events(ledger)
    assert told[-1 if report != "fail" else -2] in (EventType.COMPLETED, EventType.UPDATED)
    cut = M + HOUR + SECOND
    assert judged_in_parts(ledger, [cut]) == []
    for second in range(1, 15):
        ledger.run(M + HOUR + second * SECOND)
    assert events(ledger).count(EventType.UPDATED) == (2 if report == "extend" else 1)
    ledger.run_until(M + 3 * HOUR)
    assert judged_in_parts(ledger, [cut, M + 3 * HOUR]) == []
    assert not [verdict.faults for verdict in judged(ledger, end=M + 3 * HOUR).values() if verdict.faults]


def test_a_command_that_is_rejected_overtakes_commands_that_wait(ledger: Ledger) -> None:
    ledger.send("work", M, ("every", "1h"), SHOP)
    ledger.run(M)
    for number in range(10):
        ledger.send(f"shop-{number}", M + 1, ("at", M + 2 * HOUR), SHOP)
    ledger.send("work", M + 1, ("command", "reschedule"), ("every", "15m"), SHOP)
    ledger.run(M + 1)
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=TenantRules(commands_per_second=1))])
    ledger.send("work", M + 2, ("command", "reschedule"), ("every", "20m"), SHOP)
    ledger.run(M + 2)
    assert events(ledger)[-1] is EventType.REJECTED
    assert judged_in_parts(ledger, [M + SECOND // 2]) == []
    for second in range(1, 20):
        ledger.run(M + second * SECOND)
    assert EventType.UPDATED in events(ledger)
    assert judged_in_parts(ledger, [M + SECOND // 2, M + MINUTE]) == []


def test_offsets_by_tenant_are_read_as_they_were_written() -> None:
    handled = {Queue("commands", 0, "shop"): 4, Queue("commands", 0, "other"): 9, Queue("commands", 11, "shop"): 2}
    written = nested_by_tenant(handled)
    assert written == {"commands": {"0": {"other": 9, "shop": 4}, "11": {"shop": 2}}}
    assert flat_by_tenant(written) == handled
