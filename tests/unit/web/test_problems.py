"""The class of an error is in its problem document."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.client import Receipt
from light_scheduler.client.errors import ResultTimeout
from light_scheduler.errors import BrokerError
from light_scheduler.lanes.context.status import RULES_UNREAD
from light_scheduler.web.commands.errors import TooManyWaitingError

NOW = 1_800_000_000_000
SCHEDULES = "/api/v1/tenants/default/schedules"
ONCE = {"trigger": {"at": NOW + 1}, "target": {"topic": "out"}}
URN = "urn:light-scheduler:problem:"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "type"),
    [
        ("GET", f"{SCHEDULES}?lable=a", None, 400, "invalid-request"),
        ("POST", f"{SCHEDULES}?timeout=10", ONCE, 400, "invalid-request"),
        ("POST", SCHEDULES, {**ONCE, "on-conflict": "fail"}, 400, "invalid-command"),
        ("POST", SCHEDULES, {**ONCE, "payload": {"text": "x" * 1_001}}, 400, "command-rejected"),
        ("POST", "/api/v1/preview", {"trigger": {"cron": "x"}}, 400, "invalid-command"),
        ("PUT", "/api/v1/delays/a", {"source": "a"}, 400, "invalid-delay-rule"),
        ("PUT", "/api/v1/delays/a", {"source": "a b", "delay": 5, "target": "t"}, 400, "invalid-delay-rule"),
        ("DELETE", "/api/v1/delays/fixed", None, 409, "delay-rule-in-configuration"),
        ("GET", f"{SCHEDULES}/a", None, 404, "not-found"),
        ("DELETE", f"{SCHEDULES}/a", None, 404, "not-found"),
        ("GET", "/nowhere", None, 404, "not-found"),
        ("PATCH", f"{SCHEDULES}/a", None, 405, "method-not-allowed"),
        ("PUT", f"{SCHEDULES}/a", {**ONCE, "expected_version": 2}, 409, "conflict"),
    ],
)
async def test_it_is_of_its_class(workers: Any, method: str, path: str, body: Any, status: int, type: str) -> None:
    assert (await workers[0].ask(method, path, status, body))["type"] == URN + type


@pytest.mark.parametrize(
    ("failure", "status", "type"),
    [
        (TooManyWaitingError(), 429, "too-many-requests"),
        (BrokerError("gone"), 503, "unavailable"),
        (ResultTimeout("no answer", Receipt("default", "a", 3, 17)), 504, "no-answer"),
        (ValueError("a bug"), 500, "internal-error"),
    ],
)
async def test_a_failure_is_of_its_class(
    workers: Any, caplog: pytest.LogCaptureFixture, failure: Exception, status: int, type: str
) -> None:
    workers[0].commands.failure = failure
    assert (await workers[0].ask("POST", SCHEDULES, status, ONCE))["type"] == URN + type
    caplog.clear()


async def test_partitions_that_do_not_answer_and_a_worker_that_is_not_ready_have_types_of_their_own(
    workers: Any,
) -> None:
    lane = next(iter(workers[0].lanes.states))
    workers[0].lanes.states[lane] = "restoring"
    assert (await workers[0].json(SCHEDULES, status=503))["type"] == URN + "partitions-missing"
    assert (await workers[0].json("/ready", status=503))["type"] == URN + "not-ready"


async def test_what_a_lane_has_failed_with_is_told_to_nobody_who_asks_whether_the_worker_is_ready(workers: Any) -> None:
    lanes = workers[0].lanes
    lanes.states[next(iter(lanes.states))] = "failed"
    lanes.figures["reason"] = "no answer for 8 s from shop-orders-3"
    problem = await workers[0].json("/ready", status=503)
    assert [reason.rpartition(" is ")[2] for reason in problem["reasons"]] == ["failed"]
    lanes.figures["reason"] = RULES_UNREAD
    problem = await workers[0].json("/ready", status=503)
    assert [reason.rpartition(" is ")[2] for reason in problem["reasons"]] == [f"failed: {RULES_UNREAD}"]


async def test_a_page_of_another_site_is_refused_with_a_type(workers: Any) -> None:
    problem = await workers[0].ask("POST", SCHEDULES, 403, ONCE, headers={"Sec-Fetch-Site": "cross-site"})
    assert problem["type"] == URN + "forbidden"
