"""Commands that changed nothing while quotas delayed them say nothing of how far their lane had come."""

from __future__ import annotations

import pytest
from support.ledger import Ledger

from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules

from .conftest import judged
from .test_audit import HOUR, SECOND, M, explained

SHOP = ("tenant", "shop")
SENT = M + 5 * SECOND
DUE = M + 10 * SECOND


@pytest.fixture
def ledger() -> Ledger:
    """A lane with a tenant of which it takes one command a second. `b` is due in ten."""
    ledger = Ledger()
    rules = TenantRules(commands_per_second=1, over_rate=OverRate.DELAY)
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=rules)])
    ledger.send("b", M, ("at", DUE), SHOP, partition=0)
    return ledger


def cancel_too_late(ledger: Ledger) -> None:
    """Send so many commands that a cancel of `b` behind them is carried out only after `b` has fired."""
    for number in range(30):
        ledger.send(f"x-{number}", SENT, ("at", M + HOUR), SHOP, partition=0)
    ledger.send("b", SENT, ("command", "cancel"), SHOP, partition=0)


def run(ledger: Ledger) -> None:
    for second in range(120):
        ledger.run(SENT + second * SECOND)
    ledger.run_until(M + 2 * HOUR)


def test_what_is_rejected_at_once_does_not_mean_that_those_before_it_were_carried_out(ledger: Ledger) -> None:
    ledger.run(M)
    cancel_too_late(ledger)
    ledger.send("z", SENT, ("command", "cancel"), SHOP, partition=0)  # there is none
    ledger.send("z", SENT, ("at", M + HOUR), ("target-topic", None), SHOP, partition=0)  # has no target
    run(ledger)
    assert not explained(judged(ledger, end=M + 2 * HOUR, patience=24 * HOUR))


def test_a_report_that_did_not_wait_does_not_mean_that_those_before_it_were_carried_out(ledger: Ledger) -> None:
    fired = M + 2 * SECOND
    ledger.send("a", M, ("at", fired), ("ack-timeout", "5m"), ("max-attempts", 2), SHOP, partition=0)
    for second in range(5):
        ledger.run(M + second * SECOND)
    cancel_too_late(ledger)
    ledger.send("a", SENT, ("command", "resume"), SHOP, partition=0)  # is not paused
    ledger.send("a", SENT, ("command", "extend"), ("firing-id", f"a@{fired}"), ("attempt", 1), SHOP, partition=0)
    run(ledger)
    assert not explained(judged(ledger, end=M + 2 * HOUR, patience=24 * HOUR))


def test_a_cancel_that_still_waits_at_the_end_is_not_known_to_be_ignored(ledger: Ledger) -> None:
    ledger.run(M)
    cancel_too_late(ledger)
    ledger.send("z", SENT, ("command", "cancel"), SHOP, partition=0)
    ledger.send("z", SENT, ("at", M + HOUR), ("target-topic", None), SHOP, partition=0)
    ledger.run(SENT)
    ledger.run(SENT + 20 * SECOND)
    found = judged(ledger, end=SENT + 20 * SECOND, patience=24 * HOUR)
    handled = max(-1 if each.handled is None else each.handled for each in found.values())
    assert not [fault for fault in found["b"].faults if fault.place.offset <= handled]
