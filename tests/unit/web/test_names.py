"""One convention for the names in JSON documents, in and out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from light_scheduler.model import Cron
from light_scheduler.web.openapi import openapi_document
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


async def test_what_an_answer_says_of_a_trigger_can_be_put_again(cluster: Any, workers: Any) -> None:
    cluster.put("a", trigger=Cron("0 0 9 * * ?", "quartz", "Europe/Prague"))
    path = "/api/v1/tenants/default/schedules/a"
    trigger = (await workers[0].json(path))["trigger"]
    assert trigger == {"cron": "0 0 9 * * ?", "cron_dialect": "quartz", "timezone": "Europe/Prague"}
    await workers[0].ask("PUT", path, 200, {"trigger": trigger, "target": {"topic": "out"}})
