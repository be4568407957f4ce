"""The dry run over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from light_scheduler.web import dry_run as handler
from light_scheduler.web.commands.large_bodies import LARGE_BYTES

NOW = 1_800_000_000_000
HOUR = 3_600_000
DRY_RUN = "/api/v1/dry-run"


def lines(*commands: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps({"target": {"topic": "t"}, **command}).encode() for command in commands)


async def test_what_would_be_delivered_and_what_is_refused_is_told(workers: Any) -> None:
    body = lines({"id": "a", "trigger": {"every": "8h"}}, {"id": "b", "trigger": {"cron": "61 * * * *"}})
    found = await workers[0].ask("POST", DRY_RUN, 200, body)
    assert [delivery["at"] for delivery in found["deliveries"]] == [NOW + 8 * HOUR, NOW + 16 * HOUR, NOW + 24 * HOUR]
    assert [(answer["line"], answer["outcome"], answer["field"]) for answer in found["answers"]] == [
        (1, "scheduled", None),
        (2, "rejected", "trigger.cron"),
    ]
    assert (found["undelivered"], found["complete"]) == ([], True)


async def test_it_begins_and_ends_when_it_is_told_to(workers: Any) -> None:
    query = "?from=2030-01-01T00:00:00Z&until=2030-01-01T02:00:00Z"
    found = await workers[0].ask("POST", DRY_RUN + query, 200, lines({"id": "a", "trigger": {"every": "1h"}}))
    assert [delivery["at"] for delivery in found["deliveries"]] == [1_893_456_000_000 + n * HOUR for n in (1, 2)]


async def test_an_answer_has_no_more_messages_than_its_limit(workers: Any) -> None:
    body = lines({"id": "a", "trigger": {"every": "1s"}})
    found = await workers[0].ask("POST", f"{DRY_RUN}?limit=5", 200, body)
    assert (len(found["deliveries"]), found["complete"]) == (5, False)


async def test_an_answer_repeats_no_more_bytes_than_its_bound(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "MOST_BYTES", 1_000)
    body = lines({"id": "a", "trigger": {"every": "1s"}, "payload": {"text": "x" * 400}})
    found = await workers[0].ask("POST", f"{DRY_RUN}?limit=1000", 200, body)
    assert (len(found["deliveries"]), found["complete"]) == (3, False)


async def test_a_run_that_takes_too_long_ends_where_it_is(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "MOST_TIME_S", 0.02)
    body = lines({"id": "a", "trigger": {"every": "1ms"}})
    found = await workers[0].ask("POST", f"{DRY_RUN}?limit=1000", 200, body)
    assert len(found["deliveries"]) < 1_000
    assert found["complete"] is False


async def test_commands_that_take_too_long_are_refused(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "MOST_TIME_S", 0.0)
    problem = await workers[0].ask("POST", DRY_RUN, 400, lines({"id": "a"}, {"id": "b"}))
    assert "light-scheduler dry-run" in problem["detail"]


async def test_a_body_has_a_bound_of_lines(workers: Any) -> None:
    most = lines({"id": "a", "target": {"topic": "t"}}) + b"\n" * handler.MOST_LINES
    assert len((await workers[0].ask("POST", DRY_RUN, 200, most))["answers"]) == 1
    problem = await workers[0].ask("POST", DRY_RUN, 400, most + b"{}")
    assert "1000 lines" in problem["detail"]


@pytest.mark.parametrize("query", ["until=soon", "from=soon", "until=1700000000000", "limit=0", "untill=1"])
async def test_a_parameter_that_is_wrong_is_named(workers: Any, query: str) -> None:
    problem = await workers[0].ask("POST", f"{DRY_RUN}?{query}", 400, lines({"id": "a"}))
    assert problem["parameter"] == query.partition("=")[0]


async def test_a_large_line_is_refused_with_what_to_do(workers: Any) -> None:
    def padded(size: int) -> bytes:
        short = lines({"id": "a", "trigger": {"after": "1h"}, "payload": {"text": ""}})
        return short.replace(b'"text": ""', b'"text": "%s"' % (b"x" * (size - len(short))))

    almost = padded(LARGE_BYTES - 1)
    assert len(almost) == LARGE_BYTES - 1
    assert len((await workers[0].ask("POST", DRY_RUN, 200, almost))["deliveries"]) == 1
    problem = await workers[0].ask("POST", DRY_RUN, 413, lines({"id": "b"}) + b"\n" + padded(LARGE_BYTES))
    assert "Line 2 has 65536 bytes" in problem["detail"]
    assert "light-scheduler dry-run" in problem["detail"]


SHOP = {
    "targets": ["shop-*"],
    "default_target": "shop-events",
    "max_payload_bytes": 10,
    "max_pending": 1,
    "commands_per_second": 1,
    "over_rate": "delay",
    "firings_per_second": 0.001,
    "distribution": "partition:20000",
}


async def test_rules_that_allow_or_refuse_a_single_command_count(workers: Any) -> None:
    await workers[0].ask("PUT", "/api/v1/tenants/shop", 201, SHOP)
    soon = {"tenant": "shop", "trigger": {"after": "1h"}}
    body = b"\n".join(
        json.dumps(command).encode()
        for command in (
            {**soon, "id": "by default"},
            {**soon, "id": "allowed", "target": {"topic": "shop-mails"}},
            {**soon, "id": "elsewhere", "target": {"topic": "mails"}},
            {**soon, "id": "long", "payload": {"text": "x" * 11}},
            {**soon, "id": "of another tenant", "tenant": "other", "target": {"topic": "mails"}},
            {"id": "without a target", "tenant": "other", "trigger": {"after": "1h"}},
        )
    )
    for worker in workers:
        found = await worker.ask("POST", DRY_RUN, 200, body)
        assert [(answer["id"], answer["field"]) for answer in found["answers"] if answer["outcome"] == "rejected"] == [
            ("elsewhere", "target.topic"),
            ("long", "payload"),
            ("without a target", "target.topic"),
        ]
        assert {delivery["id"]: (delivery["topic"], delivery["at"]) for delivery in found["deliveries"]} == {
            "by default": ("shop-events", NOW + HOUR),
            "allowed": ("shop-mails", NOW + HOUR),
            "of another tenant": ("mails", NOW + HOUR),
        }


async def test_a_paused_tenant_is_shown_as_if_resumed_and_a_deleted_one_is_rejected(workers: Any) -> None:
    body = lines({"id": "a", "tenant": "shop", "trigger": {"after": "1h"}})
    await workers[0].ask("POST", "/api/v1/tenants/shop/pause", 200)
    assert [each["id"] for each in (await workers[1].ask("POST", DRY_RUN, 200, body))["deliveries"]] == ["a"]
    await workers[0].ask("DELETE", "/api/v1/tenants/shop", 200)
    found = await workers[1].ask("POST", DRY_RUN, 200, body)
    assert (found["answers"][0]["reason"], found["deliveries"]) == ("tenant shop was deleted", [])
