"""How long a total of a bulk command waits for reports."""

from __future__ import annotations

from math import inf

import pytest
from msgspec.structs import replace
from support.partition import AT, HOUR

from light_scheduler.lanes.context.overdue_totals import (
    LATER_MS,
    LOOK_MS,
    OVERDUE_MS,
    WATCHED_MS,
    OverdueTotals,
    log_unreported,
)
from light_scheduler.lanes.quotas.delayed_commands import FOR_COPIES, MOST_DELAYED, longest_delay
from light_scheduler.model import BulkTotal, ControlCommand, Selection
from light_scheduler.model.bulk import SubTotal
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantRules

COMMAND = ControlCommand("cancel", "acme", "*", None, 0, 7, AT, selection=Selection())
TOTAL = BulkTotal(COMMAND, (1, 3))
REPORTS = SubTotal(COMMAND, (1, 3), parent_partition=2, parent_offset=5, parent_token="token")


def ended(total: BulkTotal, begin: int, step: int = LOOK_MS) -> int:
    """Return how long (ms) after its command a total ends in a lane that looks from an instant on."""
    awaited, now = OverdueTotals(), begin
    while not awaited.overdue({7: total}, now):
        now += step
    return now - AT


def test_a_total_that_is_watched_ends_after_a_day_and_first_one_that_reports_to_another() -> None:
    assert ended(REPORTS, AT) == OVERDUE_MS
    assert ended(TOTAL, AT) == OVERDUE_MS + LATER_MS


def test_a_lane_that_takes_over_watches_first() -> None:
    assert ended(TOTAL, AT + 100 * HOUR) == 100 * HOUR + WATCHED_MS


def test_copies_that_may_wait_behind_delayed_commands_are_given_that_time() -> None:
    rules = TenantRules(commands_per_second=10, over_rate=OverRate.DELAY)
    delay = longest_delay(Tenant(name="acme", rules=rules), 0.25)
    assert delay == FOR_COPIES * MOST_DELAYED / 2.5 * 1_000
    awaited, now = OverdueTotals(), AT
    while not awaited.overdue({7: TOTAL}, now, lambda tenant: delay if tenant == "acme" else 0.0):
        now += LOOK_MS
    assert 0 <= now - AT - (OVERDUE_MS + LATER_MS + delay) < LOOK_MS


def test_copies_that_wait_are_given_the_same_time_when_the_rules_have_come_to_reject() -> None:
    delays = TenantRules(commands_per_second=10, max_pending=5, over_rate=OverRate.DELAY)
    rejects = replace(delays, over_rate=OverRate.REJECT)
    for rules in (replace(delays, max_pending=None), rejects):
        assert longest_delay(Tenant(name="acme", rules=rules), 0.5) == FOR_COPIES * MOST_DELAYED / 5 * 1_000


def test_copies_that_wait_for_room_wait_for_as_long_as_that_takes() -> None:
    delays = TenantRules(over_rate=OverRate.DELAY, max_pending=5)
    assert longest_delay(Tenant(name="acme", rules=delays), 1.0) == inf
    for rules in (TenantRules(max_pending=5), TenantRules(over_rate=OverRate.DELAY)):
        assert longest_delay(Tenant(name="acme", rules=rules), 1.0) == 0
    assert longest_delay(None, 1.0) == 0


def test_neither_a_clock_that_jumps_nor_a_lane_that_stands_still_ends_the_wait() -> None:
    awaited = OverdueTotals()
    for now in (AT, AT + 100 * HOUR, AT - 100 * HOUR, AT + 200 * HOUR):
        assert not awaited.overdue({7: TOTAL}, now)


def test_another_total_under_the_number_of_one_that_is_gone_begins_anew() -> None:
    awaited, late = OverdueTotals(), AT + 100 * HOUR
    for number in range(WATCHED_MS // LOOK_MS):
        assert not awaited.overdue({7: TOTAL}, late + number * LOOK_MS)
    assert not awaited.overdue({}, late + WATCHED_MS)
    assert not awaited.overdue({7: TOTAL}, late + WATCHED_MS + LOOK_MS)


def test_a_lane_looks_once_a_minute_also_when_its_clock_was_set_back() -> None:
    awaited = OverdueTotals()
    assert awaited.is_due(AT)
    awaited.overdue({}, AT)
    assert [awaited.is_due(AT + passed) for passed in (0, LOOK_MS - 1, LOOK_MS, -1)] == [False, False, True, True]


def test_the_log_says_what_ended_and_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    log_unreported(("commands", 2), [replace(TOTAL, changed=5)])
    for part in (
        "lane commands-2",
        "cancel of tenant acme",
        "offset 7",
        "partitions 1, 3",
        "one version",
        "retention.ms",
        "send it again",
    ):
        assert part in caplog.text
