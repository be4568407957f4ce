"""Commands that lanes have passed over, by the order of their lines alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger import Ledger
from support.tries import tries

from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.pipeline.audit.replay import MOST_STATES

from .conftest import Verdicts, judged
from .test_audit import HOUR, MINUTE, SECOND, TIMES, M, explained, faults

IN_ONE_LANE = 0


def passed_over(
    ledger: Ledger, *headers: tuple[str, Any], command: tuple[str, Any] = ("command", "cancel"), then: int = 1
) -> None:
    """Have a lane lose a command for schedule `a` of an application, and carry out others `then`."""
    ledger.send("a", M, *headers, partition=IN_ONE_LANE)
    ledger.run(M)
    ledger.send("a", M + MINUTE, command, partition=IN_ONE_LANE)
    ledger.forget()
    for number in range(then):
        ledger.send(f"later-{number}", M + 2 * MINUTE, ("at", M + 3 * HOUR), partition=IN_ONE_LANE)
    ledger.run(M + 2 * MINUTE)
    ledger.run_until(M + 2 * HOUR)


@pytest.mark.parametrize("name", ["cancel", "pause"])
def test_a_command_that_was_lost_before_a_schedule_fired_and_ended_is_ignored(
    name: str, ledger: Ledger, verdicts: Verdicts
) -> None:
    passed_over(ledger, ("at", M + HOUR), command=("command", name))
    found = verdicts(ledger, end=M + 2 * HOUR)
    assert faults(found) == [("a", "ignored", None)]
    (fault,) = found["a"].faults
    lost = ledger.of(ledger.commands)[1]
    assert fault.place == (lost.topic, lost.partition, lost.offset)
    assert (fault.at, "before app-history/0/2, and a later command had" in fault.detail) == (M + MINUTE, True)


def test_a_cancel_is_ignored_once_if_the_series_goes_on(ledger: Ledger, verdicts: Verdicts) -> None:
    passed_over(ledger, ("every", "10m"))
    assert faults(verdicts(ledger, end=M + 2 * HOUR)) == [("a", "ignored", None)]


def test_a_command_that_had_its_effect_after_a_firing_is_ignored_if_a_later_one_had_its_own_before(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    ledger.send("a", M, ("every", "10m"), partition=IN_ONE_LANE)
    ledger.send("later", M, ("at", M + 3 * HOUR), partition=IN_ONE_LANE)
    ledger.run_until(M + 25 * MINUTE)
    ledger.send("a", M + 25 * MINUTE, ("command", "cancel"), partition=IN_ONE_LANE)
    ledger.run(M + 25 * MINUTE)
    assert not explained(verdicts(ledger, end=M + HOUR))
    log = ledger.records[ledger.commands, IN_ONE_LANE]
    log[1:] = [replace(log[2], offset=1), replace(log[1], offset=2)]
    found = verdicts(ledger, end=M + HOUR)
    assert faults(found) == [("a", "ignored", None)]
    assert "before app-history/0/3" in found["a"].faults[0].detail, "the last firing before it"


def test_a_command_after_which_nothing_was_carried_out_may_have_come_after_the_firing(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    passed_over(ledger, ("at", M + HOUR), then=0)
    assert not explained(verdicts(ledger, end=M + 2 * HOUR))


def test_a_command_may_have_come_after_the_firing_if_later_ones_did(ledger: Ledger, verdicts: Verdicts) -> None:
    """A lane that is behind carries out what was recorded before, too."""
    ledger.send("a", M, ("at", M + HOUR), partition=IN_ONE_LANE)
    ledger.run(M)
    ledger.run_until(M + HOUR)
    for key, *headers in (("a", ("command", "cancel")), ("b", ("at", M + 2 * HOUR))):
        ledger.send(key, M + MINUTE, *headers, partition=IN_ONE_LANE)
    ledger.run(M + HOUR + SECOND)
    ledger.run_until(M + 2 * HOUR)
    assert not explained(verdicts(ledger, end=M + 2 * HOUR))


@pytest.mark.parametrize("of", ["another tenant", "another partition"])
def test_a_command_that_does_not_wait_for_another_one_tells_nothing_of_it(
    of: str, ledger: Ledger, verdicts: Verdicts
) -> None:
    passed_over(ledger, ("at", M + HOUR), then=0)
    partition = 1 if of == "another partition" else IN_ONE_LANE
    tenant = ("tenant", "other" if of == "another tenant" else "default")
    first = len(ledger.records[ledger.names.history, 0])
    ledger.send("later", M + 2 * HOUR, ("at", M + 3 * HOUR), tenant, partition=partition)
    ledger.run(M + 2 * HOUR)
    log = ledger.records[ledger.names.history, partition]
    line = log.pop()  # as if it had been written before the firing
    log.insert(1 if partition == IN_ONE_LANE else 0, line)
    log[:] = [replace(record, offset=offset) for offset, record in enumerate(log)]
    assert first > 1
    assert not explained(verdicts(ledger, end=M + 2 * HOUR))


def test_what_was_rejected_and_what_a_report_says_have_no_place_among_commands(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    rules = TenantRules(commands_per_second=1, over_rate=OverRate.REJECT)
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=rules)])
    of_shop = ("tenant", "shop")
    ledger.send("a", M, ("at", M + HOUR), of_shop, partition=IN_ONE_LANE)
    ledger.run(M)
    for number in range(30):
        ledger.send(f"x-{number}", M + MINUTE, ("at", M + HOUR), of_shop, partition=IN_ONE_LANE)
    ledger.send("a", M + MINUTE, ("command", "cancel"), of_shop, partition=IN_ONE_LANE)
    ledger.run(M + MINUTE)
    ledger.send("later", M + 2 * MINUTE, ("at", M + HOUR), of_shop, partition=IN_ONE_LANE)
    ledger.run_until(M + 2 * HOUR)
    letters = ledger.of(ledger.names.dead_letters)
    assert any(letter.header("dead-letter-id") == b"a" for letter in letters)
    assert not explained(verdicts(ledger, end=M + 2 * HOUR))


def test_commands_may_have_been_carried_out_in_more_orders_than_are_followed(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    ledger.send("a", M, ("every", "10m"), partition=IN_ONE_LANE)
    for _ in range(MOST_STATES + 10):
        ledger.send("a", M, ("command", "resume"), partition=IN_ONE_LANE)  # without effect
    ledger.send("later", M, ("at", M + 3 * HOUR), partition=IN_ONE_LANE)
    ledger.run_until(M + 10 * MINUTE)
    ledger.send("a", M + 11 * MINUTE, ("command", "cancel"), partition=IN_ONE_LANE)
    ledger.run(M + 11 * MINUTE)
    assert not explained(verdicts(ledger, end=M + HOUR))


def test_a_line_may_tell_of_a_command_that_is_gone_and_not_of_one_that_asked_for_the_same(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    for id in "ab":
        ledger.send(id, M, ("at", M + HOUR), partition=IN_ONE_LANE)
    ledger.run(M)
    ledger.run_until(M + HOUR)
    ledger.send("a", M + 61 * MINUTE, ("command", "cancel"), partition=IN_ONE_LANE)
    ledger.send("b", M + 62 * MINUTE, ("at", M + HOUR), partition=IN_ONE_LANE)
    log = ledger.records[ledger.commands, IN_ONE_LANE]
    del log[1]
    found = verdicts(ledger, end=M + 62 * MINUTE, whole_since=M)
    assert not found["a"].faults


CONTROLS = st.one_of(
    TIMES,
    st.sampled_from(["cancel", "pause", "resume", "trigger"]).map(lambda name: [("command", name)]),
    st.sampled_from(["success", "failure"]).map(
        lambda word: [("command", "complete"), ("firing-id", f"a@{M + HOUR}"), ("attempt", 1), ("completion", word)]
    ),
    st.sampled_from([("every", "15m"), ("at", M + 2 * HOUR)]).map(lambda time: [("command", "reschedule"), time]),
    st.sampled_from(["cancel", "pause"]).map(lambda name: [("command", name), ("id", "*")]),
)
MANY = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, SECOND, MINUTE, 20 * MINUTE]),
        st.booleans(),
        st.sampled_from("aabc"),
        st.sampled_from([None, None, 0, 1]),
        st.sampled_from(["shop", "shop", "other"]),
        CONTROLS,
    ),
    min_size=2,
    max_size=20,
)


@settings(max_examples=tries(300))
@given(MANY, st.sampled_from([None, OverRate.DELAY, OverRate.REJECT]), st.sampled_from([None, 2]))
def test_nothing_is_passed_over_by_lanes_that_are_behind_or_delay_what_is_over_a_quota(
    steps: list[Any], over: OverRate | None, room: int | None
) -> None:
    ledger, now = Ledger(), M
    rules = TenantRules(
        commands_per_second=None if over is None else 1, over_rate=over or OverRate.REJECT, max_pending=room
    )
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=rules)])
    for pause, is_down, key, partition, tenant, headers in steps:
        if not is_down:
            ledger.run_until(now + pause)
        now += pause
        ledger.send(key, now, *headers, ("tenant", tenant), partition=partition)
        if not is_down:
            ledger.run(now)
    for second in range(1, 30):
        ledger.run(now + second * SECOND)
    ledger.run_until(now + HOUR)
    assert not explained(judged(ledger, end=now + HOUR, patience=24 * HOUR))
