"""The OpenAPI document by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import validate

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import LATEST_INSTANT
from light_scheduler.tables.views import Query, QueryError
from light_scheduler.web.api.openapi import openapi_document
from light_scheduler.web.api.operations import OPERATIONS
from light_scheduler.web.commands.requested import requested
from light_scheduler.web.etf1.operations import with_etf1
from light_scheduler.web.forms.text_forms import INSTANT, LOWER_BOUND
from light_scheduler.web.light4j.operations import LIGHT4J_OPERATIONS
from light_scheduler.wire.build import ANY
from light_scheduler.wire.instants import FIRST_PLAUSIBLE, parse_instant


@pytest.mark.parametrize("operations", [OPERATIONS, with_etf1(OPERATIONS)], ids=["ours", "with etf1's"])
def test_the_document_is_valid(operations: Any) -> None:
    validate(openapi_document("1", operations))


ALL = (*with_etf1(OPERATIONS), *LIGHT4J_OPERATIONS)
NAMING_NOTHING = {
    "changes": {"list_changes"},
    "cluster": {"cluster"},
    "dry-run": {"dry_run"},
    "events": {"events"},
    "identity": {"identity"},
    "overview": {"overview"},
    "preview": {"preview", "preview_command"},
    "schedules": {"complete_schedule", "extend_schedule"},
    "tokens": {"list_tokens"},
    "upcoming": {"upcoming_groups"},
    "worker": {
        *("configuration", "doctor", "etf1_liveness", "etf1_planned", "etf1_stats", "index", "info", "live"),
        *("metrics", "openapi", "ready"),
    },
}
"""Operations, by tag, whose answers name nothing that another operation is about, and that are about no such thing.

A completion or extension is about a firing, which consumers get from its message. A list of tokens has the asker's own.
"""


def test_every_link_leads_to_an_operation_and_gives_all_parameters_of_its_path() -> None:
    paths = openapi_document("1", ALL)["paths"]
    described = {each["operationId"]: (path, each) for path, methods in paths.items() for each in methods.values()}
    linked: set[str] = set()
    for name, (_, operation) in described.items():
        for status, response in operation["responses"].items():
            for link in response.get("links", {}).values():
                assert status in ("200", "201")
                path, led_to = described[link["operationId"]]
                of_query = {each["name"] for each in led_to["parameters"] if each["in"] == "query"}
                assert set(re.findall(r"{(\w+)}", path)) == link["parameters"].keys() - of_query
                linked |= {name, link["operationId"]}
    unlinked: dict[str, set[str]] = {}
    for name, (_, operation) in described.items():
        if name not in linked:
            unlinked.setdefault(operation["tags"][0], set()).add(name)
    assert unlinked == NAMING_NOTHING


def test_names_in_paths_have_the_pattern_that_workers_hold_them_to() -> None:
    tenant = listing()["tenant"]["pattern"]
    assert re.search(tenant, "shop-1.eu")
    for wrong in ("", "-shop", "a/b", "a" * 65):
        assert not re.search(tenant, wrong)


@cache
def listing() -> Mapping[str, Any]:
    """Return the schemas of a list's parameters, by name."""
    described = openapi_document("1")["paths"]["/api/v1/tenants/{tenant}/schedules"]["get"]["parameters"]
    return {each["name"]: each["schema"] for each in described}


@pytest.mark.parametrize("name", ["id_prefix", "id_contains", "label_contains"])
@given(text=st.text())
@example("")
@example("a\n")
@example("\0")
@example("a\0\n")
def test_parts_of_texts_have_the_pattern_that_workers_hold_them_to(name: str, text: str) -> None:
    pattern = listing()[name]["pattern"]
    asked: Any = {name: text}
    try:
        Query(tenant="shop", **asked)
    except QueryError:
        assert not re.search(pattern, text)
    else:
        assert re.search(pattern, text)


def test_only_lower_bounds_may_be_0() -> None:
    assert not any(re.search(form["pattern"], "0") for form in INSTANT["anyOf"] if "pattern" in form)
    assert any(re.search(form["pattern"], "0") for form in LOWER_BOUND["anyOf"] if "pattern" in form)


def of_the_path(operation: str) -> str:
    """Return the pattern of the id in an operation's path."""
    found = [each for methods in openapi_document("1")["paths"].values() for each in methods.values()]
    (parameters,) = [each["parameters"] for each in found if each["operationId"] == operation]
    (pattern,) = [each["schema"]["pattern"] for each in parameters if each["name"] == "id"]
    return str(pattern)


def of_the_body(schema: str) -> str:
    """Return the pattern of the id in a body."""
    return str(openapi_document("1")["components"]["schemas"][schema]["properties"]["id"]["pattern"])


ONCE = {"trigger": {"after": "1h"}, "target": {"topic": "target"}}


@pytest.mark.parametrize(
    ("pattern", "command", "body", "is_in_the_path"),
    [
        (of_the_path("put_schedule"), "schedule", ONCE, True),
        (of_the_path("delete_schedule"), "cancel", {}, True),
        (of_the_path("pause_schedule"), "pause", {}, True),
        (of_the_body("ScheduleSubmission"), "schedule", ONCE, False),
        (of_the_body("CancelMany"), "cancel", {}, False),
    ],
)
@given(id=st.text())
@example("")
@example("*")
@example("a*")
@example("a*b")
@example("a\n")
@example("a\n*")
def test_ids_have_the_pattern_that_workers_hold_them_to(
    pattern: str, command: str, body: dict[str, Any], is_in_the_path: bool, id: str
) -> None:
    told = {"tenant": "shop", "command": command}
    given, asked = (told | {"id": id}, body) if is_in_the_path else (told, body | {"id": id})
    try:
        wanted = requested(json.dumps(asked).encode(), given, lambda _: [])
    except InvalidCommand:
        is_taken = False
    else:
        is_taken = is_in_the_path or command == "schedule" or wanted.id.endswith(ANY)
    whole = pattern.removesuffix("$") + r"\Z"  # in ECMAScript's dialect, which JSON Schema has, $ is the very end
    assert bool(re.search(whole, id)) == is_taken


EDGES = (LATEST_INSTANT, 253_399_999_999_999, 253_401_999_999_999, 253_402_299_999_999, FIRST_PLAUSIBLE - 1)


@pytest.mark.parametrize("edge", EDGES)
@given(distance=st.integers(-(10**12), 10**12))
@example(0)
@example(1)
def test_milliseconds_have_the_pattern_that_workers_hold_them_to(edge: int, distance: int) -> None:
    (pattern,) = [form["pattern"] for form in INSTANT["anyOf"] if "pattern" in form]
    text = str(edge + distance)
    try:
        parse_instant(text)
    except ValueError:
        assert not re.search(pattern, text)
    else:
        assert re.search(pattern, text)


@pytest.mark.parametrize(
    ("body", "is_legal"),
    [
        ({"trigger": {"after": "1h"}}, True),
        ({"after": "1h"}, True),
        ({"cron": "@daily", "timezone": "Europe/Prague"}, True),
        ({"trigger": None, "at": 1_893_456_000_000}, True),
        ({}, False),
        ({"trigger": None}, False),
        ({"at": None}, False),
        ({"jitter": "1s"}, False),
    ],
)
def test_a_reschedule_needs_a_trigger_wherever_it_is(body: dict[str, Any], is_legal: bool) -> None:
    schema = openapi_document("1")["components"]["schemas"]["RescheduleBody"]
    assert Draft202012Validator(schema).is_valid(body) == is_legal
    given = {"command": "reschedule", "tenant": "shop", "id": "a"}
    with nullcontext() if is_legal else pytest.raises(InvalidCommand):
        requested(json.dumps(body).encode(), given, lambda _: [])
