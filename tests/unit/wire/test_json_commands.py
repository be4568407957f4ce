from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import NOW, After, Backoff, ControlCommand, Once, ReplyTo, ScheduleCommand, Target
from light_scheduler.wire import command_schema, dialect_named, json_command
from light_scheduler.wire.fields import OF_WORKERS, RULES
from light_scheduler.wire.plain_json_commands import plain_json
from light_scheduler.wire.requester import REQUESTED_BY
from light_scheduler.wire.signatures import not_ours

AT = 1_767_225_600_000
JSON_TYPE = ("content-type", b"application/vnd.light-scheduler.command+json")


def record(
    value: Any, *headers: tuple[str, bytes | None], key: bytes | None = b"record-key", raw: bool = False
) -> ConsumerRecord:
    data = value if raw or value is None else msgspec.json.encode(value)
    return ConsumerRecord("commands", 3, 42, AT, 0, key, data, None, -1, -1, headers)


def decode(value: Any, *headers: tuple[str, bytes | None], **parts: Any) -> Any:
    return dialect_named("json").decode(record(value, *headers, **parts))


def refusal(value: Any, *headers: tuple[str, bytes | None], **parts: Any) -> InvalidCommand:
    with pytest.raises(InvalidCommand) as caught:
        decode(value, *headers, **parts)
    return caught.value


def test_a_command_with_every_field_golden() -> None:
    command = decode(
        {
            "command": "schedule",
            "id": "a",
            "tenant": "acme",
            "key": "entity",
            "trigger": {"at": AT},
            "target": {"topic": "t", "key": "k", "partition": 7, "headers": {"x": "ž", "n": None}},
            "payload": {"text": "hellö"},
            "ttl": "10m",
            "labels": {"team": "billing", "odd": "a,b=c"},
            "priority": 5,
            "on_past": 5000,
            "on_conflict": "fail",
            "expected_version": "3",
            "reply_topic": "answers",
            "correlation_id": "c-1",
        },
        ("traceparent", b"\xff"),
        JSON_TYPE,
    )
    assert command == ScheduleCommand(
        tenant="acme",
        id="a",
        key=b"entity",
        timing=Once(AT),
        target=Target("t", b"k", 7),
        payload="hellö".encode(),
        headers=[("x", "ž".encode()), ("n", None), ("traceparent", b"\xff")],
        partition=3,
        offset=42,
        recorded_at=AT,
        ttl=600_000,
        priority=5,
        labels={"team": "billing", "odd": "a,b=c"},
        on_past=5_000,
        on_conflict="fail",
        expected_version=3,
        reply_to=ReplyTo("answers", b"c-1"),
    )


@pytest.mark.parametrize(
    ("value", "field", "expected"),
    [
        ({"trigger": {"at": str(AT)}}, "timing", Once(AT)),
        ({"trigger": {"at": "2026-01-01T00:00:00Z"}}, "timing", Once(AT)),
        ({"trigger": {"after": 90_000}}, "timing", After(90_000)),
        ({"trigger": {"after": "90s"}}, "timing", After(90_000)),
        ({"trigger": {}}, "timing", NOW),
        ({"trigger": None, "ttl": None, "labels": None}, "timing", NOW),
        ({"labels": "a=1"}, "labels", {"a": "1"}),
        ({"key": "e"}, "id", "e"),
        ({"key": "e"}, "key", b"e"),
        ({"key": "e"}, "target", Target("t", b"e")),
        ({}, "id", "record-key"),
        ({"target": {"topic": "t", "key": None}}, "target", Target("t", None)),
        ({"target": {"topic": "t", "key_base64": "/w=="}}, "target", Target("t", b"\xff")),
        ({"target": {"topic": "t", "partition_key": "p"}}, "target", Target("t", b"record-key", None, b"p")),
        ({"payload": {"base64": "/wA="}}, "payload", b"\xff\x00"),
        ({"payload": {"text": ""}}, "payload", b""),
        ({"payload": {"json": None}}, "payload", b"null"),
        ({"payload": None, "trigger": {"after": 1}}, "payload", None),
        ({"payload": None, "command": "schedule"}, "payload", None),
        ({}, "payload", b""),
    ],
)
def test_reads_field(value: dict[str, Any], field: str, expected: object) -> None:
    assert getattr(decode({"target": {"topic": "t"}, **value}), field) == expected


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        ({"initial": "1s", "jitter": 0.00001}, Backoff((), 1_000, 2, None, None, 0.00001)),
        ({"initial": 1e3, "max": None, "attempts": None, "factor": None}, Backoff((), 1_000, 2, None, None, 0)),
        ({"initial": 5000.0, "factor": 1.5, "attempts": 50.0}, Backoff((), 5_000, 1.5, None, 50, 0)),
        ({"intervals": [1000, "2s", 3000.0]}, Backoff((1_000, 2_000, 3_000))),
        ({"intervals": [1000], "initial": None}, Backoff((1_000,))),
        ({"intervals": None, "initial": 1000}, Backoff((), 1_000, 2, None, None, 0)),
        ([1000.0, "2s"], Backoff((1_000, 2_000))),
    ],
)
def test_reads_backoffs(backoff: Any, expected: Backoff) -> None:
    schema = command_schema()["properties"]["trigger"]["properties"]["backoff"]
    assert Draft202012Validator(schema).is_valid(backoff)
    assert decode({"target": {"topic": "t"}, "trigger": {"backoff": backoff}}).timing == expected


@pytest.mark.parametrize("number", [b"60000", b"60000.0", b"6e4", b"-0.0"])
def test_a_number_is_whole_as_json_schema_has_it(number: bytes) -> None:
    command = decode(b'{"target": {"topic": "t"}, "ttl": %b}' % number, raw=True)
    assert command.ttl == int(float(number))


def test_a_json_payload_is_delivered_with_its_own_bytes() -> None:
    value = b'{"target":{"topic":"t"}, "payload": {"json": {"b" : 1.0, "a":[ 1 ]} } }'
    assert decode(value, raw=True).payload == b'{"b" : 1.0, "a":[ 1 ]}'


@pytest.mark.parametrize(
    "value", [{"command": "cancel", "id": "a"}, {"id": "a", "payload": None}, {"command": "cancel", "key": "a"}]
)
def test_reads_cancels(value: dict[str, Any]) -> None:
    command = decode(value)
    assert isinstance(command, ControlCommand)
    assert command.id == "a"


def test_a_null_record_cancels_what_its_key_names() -> None:
    assert decode(None) == ControlCommand("cancel", "default", "record-key", b"record-key", 3, 42, AT)


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"trigger": {"at": 1_767_225_600}}, "trigger.at", "looks like seconds"),
        ({"trigger": {"at": 1.5}}, "trigger.at", "must be integer or string"),
        ({"trigger": {"at": True}}, "trigger.at", "must be integer or string"),
        ({"trigger": {"at": AT, "after": 1}}, "trigger.after", "given together with trigger.at"),
        ({"trigger": {"every": "5x"}}, "trigger.every", "not a duration"),
        ({"trigger": {"every": "5s", "jitter": "1s"}, "jitter": "2s"}, "jitter", "is given twice"),
        ({"trigger": {"backoff": {"initial": "1s", "factr": 2}}}, "trigger.backoff", "not a part of a backoff"),
        ({"trigger": {"backoff": {"initial": "1s", "factr": None}}}, "trigger.backoff", "not a part of a backoff"),
        ({"trigger": {"backoff": {"initial": None}}}, "trigger.backoff", "initial is missing"),
        ({"trigger": {"backoff": {"initial": True}}}, "trigger.backoff", "initial: must be integer or string"),
        ({"trigger": {"backoff": {"initial": "5s", "max": 0}}}, "trigger.backoff", "max must be at least 1 ms"),
        ({"trigger": {"backoff": {"initial": 1.5}}}, "trigger.backoff", "initial: '1.5' is not a duration"),
        ({"trigger": {"backoff": {"initial": "1s factor=3"}}}, "trigger.backoff", "initial: .* is not a duration"),
        ({"trigger": {"backoff": {"initial": "1s", "factor": 1e300}}}, "trigger.backoff", "factor: "),
        ({"trigger": {"backoff": {"initial": "1s", "jitter": 1e-300}}}, "trigger.backoff", "jitter: "),
        ({"trigger": {"backoff": {"intervals": 5}}}, "trigger.backoff", "intervals: must be array"),
        ({"trigger": {"backoff": {"intervals": ["1s"], "max": 5}}}, "trigger.backoff", "max is given together with"),
        ({"trigger": {"backoff": [1.5]}}, "trigger.backoff", "an interval must be integer or string"),
        ({"trigger": {"backoff": [None]}}, "trigger.backoff", "an interval must be integer or string"),
        ({"ttl": 2.0**53}, "ttl", "must be integer or string"),
        ({"priority": 5.5}, "priority", "must be integer or string"),
        ({"id": 5.0}, "id", "must be string"),
        ({"trigger": {"aftr": "5s"}}, "trigger.aftr", "did you mean trigger.after"),
        ({"trigger": 5}, "trigger", "must be a JSON object"),
        ({"misfire": "skp"}, "misfire", "must be one of coalesce, skip, all"),
        ({"paused": 1}, "paused", "must be boolean or string"),
        ({"target": {}}, "target.topic", "is required"),
        ({"target": {"topic": "a b"}}, "target.topic", "not a topic name"),
        ({"target": {"topic": 5}}, "target.topic", "must be string"),
        ({"target": {"topic": "t", "partition": -1}}, "target.partition", "whole number from 0"),
        (
            {"target": {"topic": "t", "headers": {"schedule-id": "x"}}},
            "target.headers.schedule-id",
            "reserved for the scheduler",
        ),
        ({"target": {"topic": "t", "headers": {"x": 1}}}, "target.headers.x", "string or null"),
        ({"target": {"topic": "t", "headers": []}}, "target.headers", "object"),
        ({"target": {"topic": "t", "key": "a", "key_base64": "YQ=="}}, "target.key_base64", "with target.key"),
        ({"": 1}, '""', "is not known"),
        ({"topic": "t"}, "topic", "did you mean target.topic"),
        ({"on-conflict": "keep"}, "on-conflict", "is not known; did you mean on_conflict"),
        ({"trigger": {"every": "5s", "max-firings": 3}}, "trigger.max-firings", "did you mean trigger.max_firings"),
        ({"target": {"topic": "t", "key-base64": "YQ=="}}, "target.key-base64", "did you mean target.key_base64"),
        ({"fired_at": 5}, "fired_at", "is set by the scheduler"),
        ({"id": 5}, "id", "must be string"),
        ({"id": ""}, "id", "must not be empty"),
        ({"key": 5}, "key", "must be string"),
        ({"key": "a*"}, "id", r"must not end in \*.*The id is the record's key"),
        ({"id": "a*", "key": "a"}, "id", r"must not end in \*"),
        ({"labels": {"a": 1}}, "labels", "must be string"),
        ({"labels": ["a"]}, "labels", "object or string"),
        ({"priority": 256}, "priority", "from 0 to 255"),
        ({"command": "pause", "target": {"topic": "t"}}, "target.topic", "has no meaning for a pause"),
        ({"command": "cancel", "ttl": 5}, "ttl", "no meaning for a cancel"),
        ({"correlation_id": "x"}, "correlation_id", "needs reply_topic"),
        ({"reply_partition": 1}, "reply_partition", "needs reply_topic"),
        ({"reply_topic": "r", "reply_partition": -1}, "reply_partition", "not a whole number"),
        ({"payload": "text"}, "payload", "must be a JSON object"),
        ({"payload": {}}, "payload", "exactly one of"),
        ({"payload": {"text": "a", "json": 1}}, "payload", "exactly one of"),
        ({"payload": {"xml": "a"}}, "payload.xml", "not known"),
        ({"payload": {"text": 5}}, "payload.text", "must be string"),
        ({"payload": {"base64": "?"}}, "payload.base64", "not base64"),
    ],
)
def test_refuses_field_by_its_path_and_says_why(value: dict[str, Any], path: str, reason: str) -> None:
    error = refusal(value if "target" in value or value.get("command") else {"target": {"topic": "t"}, **value})
    assert error.field == path
    with pytest.raises(InvalidCommand, match=reason):
        raise error


@pytest.mark.parametrize(
    "value",
    [b"", b"not json", b"[]", b'"text"', b"{", b'{"id": NaN}', b"[" * 100_000, b'{"id":"\xff"}', b'{"id":"\\ud800"}'],
)
def test_refuses_values_that_are_no_json_object(value: bytes) -> None:
    assert refusal(value, raw=True).field in ("value", "id")


def test_refuses_control_headers_beside_the_json_form() -> None:
    assert refusal({"id": "a"}, ("schedule-at", b"1")).field == "schedule-at"


@pytest.mark.parametrize("value", [None, b"", b"1"])
@pytest.mark.parametrize("header", sorted(OF_WORKERS - {REQUESTED_BY}))
def test_a_header_that_only_workers_set_is_refused_as_theirs(header: str, value: bytes | None) -> None:
    error = refusal({"id": "a"}, (header, value))
    assert (error.field, error.reason) == (header, not_ours(header).reason)


@pytest.mark.parametrize("content_type", [JSON_TYPE[1], JSON_TYPE[1].upper() + b"; charset=utf-8"])
def test_a_native_topic_takes_the_json_form_where_the_content_type_says_so(content_type: bytes) -> None:
    value = {"id": "a", "target": {"topic": "t"}, "payload": {"text": "x"}}
    native = dialect_named("native").decode(record(value, ("h", b"1"), ("content-type", content_type)))
    assert native == decode(value, ("h", b"1"))


@pytest.mark.parametrize("value", [{"payload": {"text": "x"}}, {"trigger": {"at": AT}}])
def test_only_the_content_type_of_commands_is_not_of_the_message(value: dict[str, Any]) -> None:
    """The short way reads the second one."""
    own = [("content-type", b"application/json"), ("content-type", None), ("h", b"1")]
    parameters = ("content-type", JSON_TYPE[1] + b"; charset=utf-8")
    sent = record({"target": {"topic": "t"}, **value}, own[0], JSON_TYPE, own[1], parameters, own[2])
    command: Any = dialect_named("json").decode(sent)
    assert command.headers == own
    plain = plain_json(sent)
    assert plain is None or plain[3] == own
    assert (plain is None) == ("trigger" not in value)


@pytest.mark.parametrize("dialect", ["native", "json"])
def test_a_refused_record_still_tells_whom_to_answer(dialect: str) -> None:
    value = {"command": "pause", "id": "a", "tenant": "acme", "reply_topic": "r", "correlation_id": "c", "target": 5}
    envelope = dialect_named(dialect).salvage(record(value, JSON_TYPE))
    assert (envelope.command, envelope.tenant, envelope.id) == ("pause", "acme", "a")
    assert envelope.reply_to == ReplyTo("r", b"c")


@pytest.mark.parametrize("dialect", ["native", "json", "etf1", "light4j"])
@pytest.mark.parametrize(
    ("given", "partition"),
    [(3, 3), ("3", 3), (0, 0), (None, None), (-1, None), (2**64, None), (3.0, 3), (3.5, None), (True, None)],
)
def test_a_refused_record_is_answered_in_the_partition_that_it_names(
    dialect: str, given: Any, partition: int | None
) -> None:
    value = {"id": "a", "trigger": {"at": 5}, "reply_topic": "r", "correlation_id": "c", "reply_partition": given}
    assert dialect_named(dialect).salvage(record(value, JSON_TYPE)).reply_to == ReplyTo("r", b"c", partition)


@pytest.mark.parametrize("dialect", ["native", "json", "etf1", "light4j"])
@pytest.mark.parametrize(
    ("value", "tenant"),
    [
        ({"id": "a"}, "default"),
        ({"tenant": "default"}, "default"),
        ({"tenant": "acme"}, "acme"),
        ({"tenant": None}, None),
        ({"tenant": 5}, None),
        ({"tenant": "a b"}, None),
        ({"tenant": ""}, None),
        ({"Tenant": "acme"}, None),
        ({"tennant": "acme"}, None),
        ({"target.tenant": "acme"}, None),
        ({"target": {"tenant": "acme"}}, None),
        ({"trigger": {"Tenant": "acme"}}, None),
        ({"payload": {"tenant": "acme"}}, None),
        ({"target": {"topic": "t", "headers": {"tenant": "acme"}}}, "default"),
        ({"target": {"topic": "t", "headers": {"schedule-tenant": "acme"}}}, None),
        ({"target": {"topic": "t", "headers": {"schedule-tennant": 5}}}, None),
        ({"target": {"topic": "t", "headers": {"schedule-at": "1"}}}, "default"),
        ({"target": {"topic": "t", "headers": ["schedule-tenant"]}}, "default"),
        ({"payload": {"json": {"tenant": "acme"}}}, "default"),
        (["acme"], None),
    ],
)
def test_a_refused_record_tells_whether_its_tenant_is_known(dialect: str, value: Any, tenant: str | None) -> None:
    envelope = dialect_named(dialect).salvage(record(value, JSON_TYPE))
    assert (envelope.tenant, envelope.is_tenant_known) == (tenant or "default", tenant is not None)


@pytest.mark.parametrize("dialect", ["native", "json"])
@pytest.mark.parametrize("is_json", [True, False])
def test_few_of_very_many_names_are_compared_with_that_of_the_tenant(
    dialect: str, is_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    monkeypatch.setattr("difflib.get_close_matches", lambda name, known, n: compared.append(name))
    names = [f"x{number}" for number in range(10_000)]
    given = record(dict.fromkeys(names), JSON_TYPE) if is_json else record({}, *((f"schedule-{x}", b"") for x in names))
    envelope = dialect_named(dialect).salvage(given)
    assert len(compared) <= 100
    assert not (is_json and envelope.is_tenant_known)


@pytest.mark.parametrize("dialect", ["native", "json"])
@pytest.mark.parametrize(
    ("header", "is_known"), [("schedule-tenant", False), ("schedule-tennant", False), ("tenant", True)]
)
def test_the_tenant_of_json_with_a_header_for_it_is_not_known(dialect: str, header: str, is_known: bool) -> None:
    given = record({"id": "a"}, JSON_TYPE, (header, b"acme"))
    assert dialect_named(dialect).salvage(given).is_tenant_known is is_known


@pytest.mark.parametrize("dialect", ["native", "json"])
def test_the_tenant_of_malformed_json_is_not_known(dialect: str) -> None:
    given = record({"tenant": "acme"}, JSON_TYPE)
    envelope = dialect_named(dialect).salvage(dataclasses.replace(given, value=given.value + b","))
    assert not envelope.is_tenant_known


@pytest.mark.parametrize("dialect", ["native", "json"])
@pytest.mark.parametrize(
    ("trigger", "command"),
    [({"at": 5}, "schedule"), ({"every": "5x"}, "schedule"), ({"aftr": "5s"}, "schedule"), (5, "schedule"),
     ({}, "cancel"), (None, "cancel")],
)  # fmt: skip
def test_a_refused_null_payload_is_a_schedule_if_it_has_a_trigger(dialect: str, trigger: Any, command: str) -> None:
    value = {"id": "a", "trigger": trigger, "payload": None, "target": {"topic": "a b"}}
    refused = record(value, JSON_TYPE)
    with pytest.raises(InvalidCommand):
        dialect_named(dialect).decode(refused)
    assert dialect_named(dialect).salvage(refused).command == command


@pytest.mark.parametrize("dialect", ["native", "json"])
@pytest.mark.parametrize(("at", "command"), [(5, "schedule"), (1.5, "schedule"), ({}, "schedule"), (None, "cancel")])
def test_a_refused_null_payload_is_a_schedule_if_its_trigger_is_at_the_top(dialect: str, at: Any, command: str) -> None:
    refused = record({"id": "a", "at": at, "payload": None, "target_topic": "a b"}, JSON_TYPE)
    with pytest.raises(InvalidCommand):
        dialect_named(dialect).decode(refused)
    assert dialect_named(dialect).salvage(refused).command == command


# What the schema calls each field, with a value of each type that it claims to take.
_EXAMPLES: dict[str, Any] = {
    "command": ["schedule"],
    "id": ["a"],
    "tenant": ["acme"],
    "key": ["k"],
    "trigger.at": [AT, str(AT)],
    "trigger.after": [5, "5s"],
    "trigger.every": [5, "5s"],
    "trigger.mode": ["fixed-delay"],
    "trigger.cron": ["* * * * *"],
    "trigger.cron_dialect": ["quartz"],
    "trigger.timezone": ["Europe/Berlin"],
    "trigger.backoff": ["1s,2s", ["1s", 2000], {"initial": "5s", "factor": 2, "max": "1h", "attempts": 50}],
    "trigger.start": [AT, str(AT)],
    "trigger.end": [AT, str(AT)],
    "trigger.max_firings": [3, "3"],
    "trigger.jitter": [5, "5s"],
    "trigger.window": [5, "5s"],
    "misfire": ["skip"],
    "misfire_grace": [5, "5s"],
    "paused": [True, "true"],
    "ack_timeout": [5, "5s"],
    "max_attempts": [3, "3"],
    "overlap": ["queue"],
    "firing_id": [f"a@{AT}"],
    "attempt": [1, "1"],
    "completion": ["failure"],
    "target.topic": ["t"],
    "target.key": ["k", None],
    "target.key_base64": ["YQ=="],
    "target.partition": [1, "1"],
    "target.partition_key": ["k"],
    "target.headers": [{"a": "b"}],
    "payload": [{"text": "x"}, {"json": [1]}, {"base64": "YQ=="}],
    "ttl": [5, "5s"],
    "labels": [{"a": "b"}, "a=b"],
    "priority": [5, "5"],
    "on_past": [5, "fire"],
    "on_conflict": ["keep"],
    "expected_version": [1, "1"],
    "reply_topic": ["r"],
    "reply_partition": [0, "3"],
    "correlation_id": ["c"],
}
_TWINS = {path: rule.json_path for field, rule in RULES.items() if (path := field.replace("-", "_")) != rule.json_path}
_TWINS |= {f"trigger.{path}": path for path in ("misfire", "misfire_grace")}
_EXAMPLES |= {path: _EXAMPLES[twin] for path, twin in _TWINS.items()}


# What some fields cannot be without.
_SERIES = {"trigger": {"every": "1m"}}
_COMPANIONS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("mode", "start", "end", "max_firings", "overlap"), _SERIES),
    **{f"trigger.{name}": _SERIES for name in ("mode", "start", "end", "max_firings")},
    **{f"trigger.{name}": {"trigger": {"cron": "* * * * *"}} for name in ("cron_dialect", "timezone")},
    **{path: {"trigger": {"cron": "* * * * *"}} for path in ("cron_dialect", "timezone")},
    "max_attempts": {"ack_timeout": "5s"},
    "overlap": {**_SERIES, "ack_timeout": "5s"},
}


def test_the_published_schema_lists_exactly_the_fields_that_are_accepted() -> None:
    properties = command_schema()["properties"]
    listed = set()
    for name, schema in properties.items():
        if name in ("trigger", "target"):
            listed |= {f"{name}.{inner}" for inner in schema["properties"]}
        else:
            listed.add(name)
    assert listed == set(_EXAMPLES)
    for path, examples in _EXAMPLES.items():
        for example in examples:
            target = {} if path == "target_topic" else {"target": {"topic": "t"}}
            value = copy.deepcopy({**target, "reply_topic": "r", **_COMPANIONS.get(path, {})})
            if path in ("firing_id", "attempt", "completion"):
                value = {"command": "complete", "firing_id": f"a@{AT}", "attempt": 1}
            group, _, name = path.rpartition(".")
            (value.setdefault(group, {}) if group else value)[name] = example
            command = decode(value)
            assert path not in _TWINS or command == decode(_moved(value, path, _TWINS[path]))


def _moved(value: dict[str, Any], path: str, to: str) -> dict[str, Any]:
    """Return a command with a member in another place."""
    moved = copy.deepcopy(value)
    group, _, name = path.rpartition(".")
    member = (moved[group] if group else moved).pop(name)
    group, _, name = to.rpartition(".")
    (moved.setdefault(group, {}) if group else moved)[name] = member
    return moved


@pytest.mark.parametrize("path", _TWINS)
def test_a_member_that_is_given_in_both_places_is_refused(path: str) -> None:
    twin = _TWINS[path]
    target = {} if path == "target_topic" else {"target": {"topic": "t"}}
    both = copy.deepcopy({**target, **_COMPANIONS.get(path, {})})
    for place in (path, twin):
        group, _, name = place.rpartition(".")
        (both.setdefault(group, {}) if group else both)[name] = _EXAMPLES[path][0]
    error = refusal(both)
    assert error.field in (path, twin)
    assert error.reason == "is given twice"
    assert plain_json(record(both)) is None


@pytest.mark.parametrize("path", _TWINS)
def test_null_in_one_of_both_places_counts_as_absent(path: str) -> None:
    if path == "target_key":
        assert decode({"target_topic": "t", path: None}).target == Target("t", None)
        return
    group, _, name = path.rpartition(".")
    value: dict[str, Any] = {"trigger": {"every": "5m"}, "target": {"topic": "t"}}
    expected = decode(value)
    (value[group] if group else value)[name] = None
    assert decode(value) == expected


def test_a_member_that_is_wrong_is_named_where_it_is() -> None:
    assert refusal({"target_topic": "t", "target_partition": -1}).field == "target_partition"
    assert refusal({"command": "pause", "target_topic": "t"}).field == "target_topic"
    assert refusal({"target": {"topic": "t"}, "at": AT, "trigger": {"after": 1}}).field in ("trigger.after", "at")
    assert refusal({"target_topic": "t", "mode": "fixed-rate", "trigger": {"at": AT}}).field == "mode"


@pytest.mark.parametrize("dialect", ["native", "json", "etf1", "light4j"])
@pytest.mark.parametrize("path", [path for path in _EXAMPLES if "." in path] + ["payload.text", "payload.json"])
def test_a_path_is_no_name_of_a_member_and_the_reason_says_where_it_belongs(dialect: str, path: str) -> None:
    group, _, name = path.partition(".")
    for target in ({"topic": "t"}, {}):
        given = record({path: "1h", "target": target, "trigger": {"at": AT}}, JSON_TYPE)
        with pytest.raises(InvalidCommand) as caught:
            dialect_named(dialect).decode(given)
        reason = f'is not known; did you mean "{group}": {{"{name}": ...}}?'
        assert (caught.value.field, caught.value.reason) == (path, reason)
        assert plain_json(given) is None


@pytest.mark.parametrize("path", ["trigger.aftr", "target.", "trigger.after.x", "ttl.x", ".topic"])
def test_a_name_with_a_dot_that_is_no_path_is_not_known_either(path: str) -> None:
    error = refusal({path: "1h", "target": {"topic": "t"}})
    assert (error.field, error.reason.partition(";")[0]) == (path, "is not known")


def test_the_published_schema_is_json_and_closed() -> None:
    schema = command_schema()
    assert msgspec.json.decode(msgspec.json.encode(schema)) == schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    assert schema["properties"]["target"]["additionalProperties"] is False


class TestWhatIsToldElsewhere:
    def test_a_body_and_what_is_told_are_one_command(self) -> None:
        body = b' {"trigger" : {"at": 1.50}, "payload": {"json": [1.0,  "\\u0041"]}, "ttl": null, "id": null}'
        value = json_command(body, {"id": "a", "command": "schedule"}, {"ttl": "5m", "key": "k"})
        assert json.loads(value) == {
            "id": "a", "command": "schedule", "trigger": {"at": 1.5}, "payload": {"json": [1.0, "A"]}, "ttl": "5m",
            "key": "k",
        }  # fmt: skip
        assert b'[1.0,  "\\u0041"]' in value  # a payload keeps its very bytes

    @pytest.mark.parametrize("version", ["3", 3, 3.0, None])
    def test_a_number_says_the_same_as_its_text(self, version: Any) -> None:
        value = json_command(json.dumps({"expected_version": version}).encode(), {"expected_version": "3"})
        assert decode({"id": "a", "command": "cancel", **json.loads(value)}).expected_version == 3

    @pytest.mark.parametrize("version", ["4", 4, 3.5, True, [3]])
    def test_another_number_is_refused(self, version: Any) -> None:
        with pytest.raises(InvalidCommand, match=r"must be '3' here"):
            json_command(json.dumps({"expected_version": version}).encode(), {"expected_version": "3"})

    def test_what_the_body_says_comes_before_a_default(self) -> None:
        assert json.loads(json_command(b'{"ttl": 1}', {}, {"ttl": 2})) == {"ttl": 1}
        assert json.loads(json_command(b"", {"id": "a"})) == {"id": "a"}

    @pytest.mark.parametrize(
        ("body", "field"), [(b"[]", "body"), (b"{", "body"), (b'{"id": "b"}', "id"), (b'{"id": 5}', "id")]
    )
    def test_a_contradiction_is_refused(self, body: bytes, field: str) -> None:
        with pytest.raises(InvalidCommand) as caught:
            json_command(body, {"id": "a"})
        assert caught.value.field == field


def test_a_schema_can_be_of_one_command() -> None:
    schema = command_schema({"id", "expected-version", "at"})
    assert schema["properties"].keys() == {"id", "key", "expected_version", "trigger", "at"}
    assert schema["properties"]["trigger"]["properties"].keys() == {"at"}


def test_of_very_many_members_only_the_first_that_is_not_known_is_looked_at() -> None:
    """A large body has a hundred thousand, and whoever reads it holds up the loop."""
    members = b"".join(b', "m%d": "\xff"' % number for number in range(1_000))
    with pytest.raises(InvalidCommand, match="is not known") as caught:
        json_command(b'{"id": "a"' + members + b"}", {"command": "schedule"})
    assert caught.value.field == "m0"


def test_members_that_nothing_else_tells_are_not_read_to_put_a_command_together() -> None:
    body = b'{"id": "a", "payload": {"json": "\xff"}, "tenant": null}'
    value = json_command(body, {"command": "schedule", "tenant": "acme"})
    assert b"\xff" in value
    assert refusal(value, raw=True).field == "payload"
    assert b'"tenant":"acme"' in value
