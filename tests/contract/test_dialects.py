"""What holds for every dialect, whatever bytes come in."""

from __future__ import annotations

import base64
import json as standard_json
from collections.abc import Callable

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine import decide
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.engine.plain import plain_id
from light_scheduler.errors import ConfigurationError, InvalidCommand
from light_scheduler.model import Command, ControlCommand, ReplyTo, ScheduleCommand
from light_scheduler.wire import Dialect, Envelope, dialect_named
from light_scheduler.wire.fields import ON_FIRINGS, RULES

AT = 1_767_225_600_000
DIALECTS = ["native", "json"]

every_dialect = pytest.mark.parametrize("dialect", [dialect_named(name) for name in DIALECTS], ids=DIALECTS)

Headers = list[tuple[str, bytes | None]]


def record(key: bytes | None, value: bytes | None, headers: Headers, timestamp: int = AT) -> ConsumerRecord:
    return ConsumerRecord("commands", 3, 42, timestamp, 0, key, value, None, -1, -1, tuple(headers))


def native(fields: dict[str, str], payload: bytes | None) -> ConsumerRecord:
    headers = [(f"schedule-{name}", text.encode()) for name, text in fields.items()]
    return record(b"k", payload, [*headers, ("x", b"\xff")])


def json(fields: dict[str, str], payload: bytes | None) -> ConsumerRecord:
    value: dict[str, object] = {
        "payload": None if payload is None else {"base64": base64.b64encode(payload).decode()},
        "trigger": {},
        "target": {},
    }
    for field, text in fields.items():
        group, _, name = RULES[field].json_path.rpartition(".")
        place = value[group] if group else value
        assert isinstance(place, dict)
        place[name] = text
    return record(b"k", msgspec.json.encode(value), [("x", b"\xff")])


WRITERS: dict[str, Callable[[dict[str, str], bytes | None], ConsumerRecord]] = {"native": native, "json": json}

_COMMANDS: list[tuple[dict[str, str], bytes | None]] = [
    ({"target-topic": "t"}, b"x"),
    ({"target-topic": "t", "at": str(AT)}, None),
    ({"target-topic": "t", "after": "15m", "id": "a", "tenant": "acme", "priority": "7", "labels": "a=1,b=2"}, b"\xff"),
    ({"target-topic": "t", "target-key": "ž", "target-partition": "5", "ttl": "5s", "on-past": "reject"}, b""),
    ({"target-topic": "t", "on-conflict": "fail", "expected-version": "3", "reply-topic": "r"}, b"x"),
    ({"id": "a"}, None),
    ({"command": "cancel", "id": "a", "tenant": "acme", "reply-topic": "r", "correlation-id": "c"}, b"x"),
    ({"target-topic": "t", "every": "1m", "start": str(AT), "max-firings": "3", "misfire": "skip"}, b"x"),
    ({"target-topic": "t", "every": "1m", "mode": "fixed-delay", "ack-timeout": "30s"}, b"x"),
    ({"target-topic": "t", "cron": "0 9 * * *", "timezone": "Europe/Berlin", "jitter": "5s", "window": "1m"}, b"x"),
    ({"target-topic": "t", "backoff": "1s,2s,4s"}, b"x"),
    ({"target-topic": "t", "backoff": "initial=5s factor=2 max=1h attempts=50 jitter=0.1", "paused": "true"}, b"x"),
    ({"command": "pause", "id": "a*", "labels": "team=billing"}, b"x"),
    ({"command": "trigger", "id": "a", "expected-version": "3"}, None),
    ({"command": "reschedule", "id": "a", "cron": "0 9 * * *", "end": str(AT)}, None),
    ({"command": "complete", "firing-id": f"a@{AT}", "attempt": "2", "completion": "failure"}, None),
]


@pytest.mark.parametrize(("fields", "payload"), _COMMANDS)
def test_all_dialects_mean_the_same_command_by_the_same_fields(fields: dict[str, str], payload: bytes | None) -> None:
    commands = [dialect_named(name).decode(WRITERS[name](fields, payload)) for name in DIALECTS]
    assert all(command == commands[0] for command in commands)


_FAULTS = [
    ({"target-topic": "t", "at": "1767225600"}, "at", "looks like seconds"),
    ({"target-topic": "t", "at": str(AT), "after": "5s"}, "after", "a schedule has one trigger"),
    ({"target-topic": "a b"}, "target-topic", "not a topic name"),
    ({"target-topic": "t", "tenant": "a b"}, "tenant", "not a tenant name"),
    ({"target-topic": "t", "command": "resume"}, "target-topic", "has no meaning for a resume"),
    ({"target-topic": "t", "command": "resum"}, "command", "did you mean resume"),
    ({"target-topic": "t", "timezone": "Europe/Berlin"}, "timezone", "needs"),
    ({"target-topic": "t", "every": "1m", "timezone": "Europe/Berlin"}, "timezone", "needs .*cron"),
    ({"target-topic": "t", "every": "1m", "cron-dialect": "quartz"}, "cron-dialect", "needs .*cron"),
    ({"target-topic": "t", "backoff": "1s,2s", "timezone": "Europe/Berlin"}, "timezone", "needs .*cron"),
    ({"target-topic": "t", "backoff": "1s,2s", "mode": "fixed-delay"}, "mode", "needs .*every"),
    ({"target-topic": "t", "cron": "@daily", "mode": "fixed-delay", "ack-timeout": "1m"}, "mode", "needs .*every"),
    ({"command": "reschedule", "id": "a", "every": "1m", "timezone": "Europe/Berlin"}, "timezone", "needs .*cron"),
    ({"target-topic": "t", "every": "1m", "cron": "* * * * *"}, "cron", "a schedule has one trigger"),
    ({"target-topic": "t", "every": "0"}, "every", "at least 1 ms"),
    ({"target-topic": "t", "backoff": "initial=1s factr=2"}, "backoff", "not a part of a backoff rule"),
    ({"target-topic": "t", "backoff": "initial=0"}, "backoff", "initial must be at least 1 ms"),
    ({"target-topic": "t", "backoff": "initial=5s max=0"}, "backoff", "max must be at least 1 ms"),
    ({"target-topic": "t", "at": str(AT), "max-firings": "3"}, "max-firings", "fires once"),
    ({"target-topic": "t", "every": "1m", "start": str(AT), "end": str(AT - 1)}, "end", "is before"),
    ({"target-topic": "t", "every": "1m", "on-past": "reject"}, "on-past", "fires once"),
    ({"target-topic": "t", "every": "1m", "overlap": "skip"}, "overlap", "needs"),
    ({"target-topic": "t", "id": "a*"}, "id", r"must not end in \*"),
    ({"command": "complete", "firing-id": "a"}, "firing-id", "not the id of a firing"),
    ({"command": "complete", "firing-id": f"a@{AT}"}, "attempt", "is required"),
    (
        {"command": "complete", "firing-id": f"a@{AT}", "attempt": "1", "id": "b"},
        "firing-id",
        "not a firing of schedule b",
    ),
    ({"command": "pause", "id": "a", "labels": "a=b"}, "labels", "is for several schedules"),
    ({"command": "reschedule", "id": "a"}, "at", "is required"),
    ({}, "target-topic", "is required"),
]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(("fields", "field", "reason"), _FAULTS)
def test_all_dialects_refuse_the_same_faults_by_their_own_names(
    name: str, fields: dict[str, str], field: str, reason: str
) -> None:
    with pytest.raises(InvalidCommand, match=reason) as caught:
        dialect_named(name).decode(WRITERS[name](fields, b"x"))
    own_name = {"native": f"schedule-{field}", "json": RULES[field].json_path}
    assert caught.value.field == own_name[name]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"every": "3650000d"}, "every"),
        ({"every": "3650000d", "mode": "fixed-delay"}, "every"),
        ({"backoff": "3650000d,1s"}, "backoff"),
        ({"backoff": "initial=3650000d"}, "backoff"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"every": "1h", "end": str(AT)}, "end"),
        ({"after": "3650000d"}, "after"),
    ],
)
def test_a_time_rule_that_never_fires_is_refused_by_its_own_field(
    name: str, fields: dict[str, str], field: str
) -> None:
    dialect, sent = dialect_named(name), WRITERS[name]({"target-topic": "t", **fields}, b"x")
    with pytest.raises(InvalidCommand) as caught:
        decide(dialect.decode(sent), None, AT, NO_LIMITS)
    own_name = {"native": f"schedule-{field}", "json": RULES[field].json_path}
    assert dialect.field_name(sent, caught.value.field) == own_name[name]


@every_dialect
@pytest.mark.parametrize("key", [b"a*", b"*"])
def test_a_key_that_cannot_be_an_id_is_refused_the_short_way_and_the_long(dialect: Dialect, key: bytes) -> None:
    value = msgspec.json.encode({"trigger": {"at": AT}, "target": {"topic": "t"}})
    headers: Headers = [("schedule-at", b"%d" % AT), ("schedule-target-topic", b"t")]
    sent = record(key, value, headers if dialect.name == "native" else [])
    plain = dialect.plain(sent)
    assert plain is not None
    assert plain_id(sent, plain, NO_LIMITS) is None
    with pytest.raises(InvalidCommand, match=r"must not end in \*"):
        dialect.decode(sent)


@pytest.mark.parametrize("name", DIALECTS)
def test_all_dialects_can_tell_whom_to_answer_when_they_refuse(name: str) -> None:
    fields = {
        "at": "never",
        "id": "a",
        "tenant": "acme",
        "reply-topic": "r",
        "correlation-id": "c",
        "reply-partition": "3",
    }
    envelope = dialect_named(name).salvage(WRITERS[name](fields, b"x"))
    assert envelope == Envelope("schedule", "acme", "a", ReplyTo("r", b"c", 3))
    illegal = dialect_named(name).salvage(WRITERS[name]({**fields, "reply-partition": "-1"}, b"x"))
    assert illegal.reply_to == ReplyTo("r", b"c")


_NAMES = st.sampled_from([*(f"schedule-{field}" for field in (*RULES, *sorted(ON_FIRINGS))), "content-type"]) | st.text(
    max_size=12
).map(lambda text: f"schedule-{text}")
_TEXTS = st.sampled_from(
    [
        *("schedule", "cancel", str(AT), "15m", "1", "t", "a=b", "fire", "9" * 5_000, "YQ=="),
        *("application/json", "application/vnd.light-scheduler.command+json"),
    ]
)
_HEADERS = st.lists(
    st.tuples(_NAMES | st.text(max_size=8), st.none() | _TEXTS.map(str.encode) | st.binary(max_size=12)), max_size=6
)
_JSON_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | st.text(max_size=8)
_JSON_NAMES = st.sampled_from([*(rule.json_path.rpartition(".")[2] for rule in RULES.values()), "key", "payload"])
_JSON_NAMES |= st.sampled_from(["trigger", "target", "headers", "text", "json", "base64", "every"]) | st.text(
    max_size=5
)
_JSON = st.recursive(_JSON_LEAVES, lambda inner: st.dictionaries(_JSON_NAMES, inner, max_size=5) | st.lists(inner))


def _as_json(value: object) -> bytes:
    # NaN and infinities too: what Python's own encoder writes is what careless senders send.
    return standard_json.dumps(value).encode()


_VALUES = st.none() | st.binary(max_size=40) | _JSON.map(_as_json)


@every_dialect
@given(key=st.none() | st.binary(max_size=8), value=_VALUES, headers=_HEADERS, timestamp=st.integers(-1, 2**63 - 1))
def test_any_record_gives_a_command_or_is_refused_and_can_always_be_told_of(
    dialect: Dialect, key: bytes | None, value: bytes | None, headers: Headers, timestamp: int
) -> None:
    given_record = record(key, value, headers, timestamp)
    command, refusal = attempt(dialect, given_record)
    if refusal is not None:
        assert refusal.field
        assert refusal.reason
        str(refusal).encode()  # what is said of it can be written to Kafka
    else:
        assert isinstance(command, ScheduleCommand | ControlCommand)
        assert (command.partition, command.offset, command.recorded_at) == (3, 42, timestamp)
        command.id.encode()
        assert dialect.decode(given_record) == command
    envelope = dialect.salvage(given_record)
    f"{envelope.command}{envelope.tenant}{envelope.id}".encode()


def attempt(dialect: Dialect, given_record: ConsumerRecord) -> tuple[Command | None, InvalidCommand | None]:
    try:
        return dialect.decode(given_record), None
    except InvalidCommand as refusal:
        return None, refusal


def test_a_dialect_that_does_not_exist_is_refused_by_the_name_of_its_setting() -> None:
    with pytest.raises(ConfigurationError, match=r"commands_topics.*'avro'.*native, json"):
        dialect_named("avro")


@every_dialect
def test_a_dialect_is_found_under_its_own_name(dialect: Dialect) -> None:
    assert dialect_named(dialect.name) is dialect
