"""One convention for the names in JSON documents, in and out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from light_scheduler.model import Backoff, Cron, Trigger
from light_scheduler.web.api.openapi import openapi_document
from light_scheduler.wire import command_schema

SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def names_in(schema: Any) -> Iterator[str]:
    """Yield the names of all properties that a JSON Schema, or a document of such, describes."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        for inner in schema.values():
            yield from names_in(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from names_in(inner)


def test_every_name_in_bodies_answers_and_commands_is_snake_case() -> None:
    names = {*names_in(openapi_document("1")), *names_in(command_schema())}
    assert {"max_firings", "on_conflict", "next_due", "key_base64", "misfire_grace"} <= names
    assert [name for name in names if not SNAKE_CASE.fullmatch(name)] == []


@pytest.mark.parametrize(
    ("trigger", "shown"),
    [
        (
            Cron("0 0 9 * * ?", "quartz", "Europe/Prague"),
            {"cron": "0 0 9 * * ?", "cron_dialect": "quartz", "timezone": "Europe/Prague"},
        ),
        (Backoff((1_000, 2_000)), {"backoff": {"intervals": [1_000, 2_000]}}),
        (
            Backoff((), 5_000, 1.5, 60_000, 3, 0.00001),
            {"backoff": {"initial": 5_000, "factor": 1.5, "max": 60_000, "attempts": 3, "jitter": 0.00001}},
        ),
    ],
    ids=["cron", "intervals", "rule"],
)
async def test_what_an_answer_says_of_a_trigger_can_be_put_again(
    cluster: Any, workers: Any, trigger: Trigger, shown: dict[str, Any]
) -> None:
    cluster.put("a", trigger=trigger)
    path = "/api/v1/tenants/default/schedules/a"
    assert (await workers[0].json(path))["trigger"] == shown
    await workers[0].ask("PUT", path, 200, {"trigger": shown, "target": {"topic": "out"}})
    assert (await workers[0].json(path))["trigger"] == shown


async def test_null_says_nothing_about_where_to_answer(workers: Any) -> None:
    nothing = {"reply_topic": None, "reply_partition": None, "correlation_id": None}
    body = {"trigger": {"after": "1h"}, "target": {"topic": "out"}, **nothing}
    await workers[0].ask("PUT", "/api/v1/tenants/default/schedules/new", 201, body)
