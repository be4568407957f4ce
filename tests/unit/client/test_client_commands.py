"""What a client's arguments become on the wire, seen through the codec that the workers read with."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from aiokafka.structs import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.client.commands import (
    SAME_AS_KEY,
    CommandToSend,
    ScheduleRequest,
    cancel_command,
    schedule_command,
)
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import REJECT_PAST, After, Command, ControlCommand, Once, ReplyTo, ScheduleCommand
from light_scheduler.wire import dialect_named

AT = 4_102_444_800_000


def received(sent: CommandToSend) -> Command:
    return dialect_named("native").decode(
        ConsumerRecord("commands", 0, 0, AT, 0, sent.key, sent.value, None, -1, -1, sent.headers)
    )


def scheduled(**request: Any) -> ScheduleCommand:
    command = received(schedule_command("default", cast(ScheduleRequest, {"topic": "t", "id": "a", **request})))
    assert isinstance(command, ScheduleCommand)
    return command


@pytest.mark.parametrize(
    ("argument", "value", "field", "expected"),
    [
        ("at", AT, "timing", Once(AT)),
        ("at", str(AT), "timing", Once(AT)),
        ("at", "2100-01-01T00:00:00Z", "timing", Once(AT)),
        ("at", datetime(2100, 1, 1, tzinfo=UTC), "timing", Once(AT)),
        ("at", datetime(2100, 1, 1, tzinfo=UTC) + timedelta(microseconds=1), "timing", Once(AT + 1)),
        ("after", 5_000, "timing", After(5_000)),
        ("after", "15m", "timing", After(900_000)),
        ("after", timedelta(minutes=15), "timing", After(900_000)),
        ("after", timedelta(microseconds=1), "timing", After(1)),
        ("ttl", timedelta(seconds=5), "ttl", 5_000),
        ("on_past", "reject", "on_past", REJECT_PAST),
        ("on_past", timedelta(seconds=5), "on_past", 5_000),
        ("priority", 0, "priority", 0),
        ("labels", {"team": "billing", "url": "a=b"}, "labels", {"team": "billing", "url": "a=b"}),
        ("labels", {}, "labels", None),
        ("labels", "team=billing", "labels", {"team": "billing"}),
        ("on_conflict", "keep", "on_conflict", "keep"),
        ("expected_version", 3, "expected_version", 3),
        ("headers", {"a": "ž", "n": None}, "headers", [("a", "ž".encode()), ("n", None)]),
        ("headers", [("a", b"1"), ("a", b"2")], "headers", [("a", b"1"), ("a", b"2")]),
        ("payload", None, "payload", None),
        ("payload", b"\xff", "payload", b"\xff"),
    ],
)
def test_arguments_arrive_as_they_were_meant(argument: str, value: object, field: str, expected: object) -> None:
    assert getattr(scheduled(**{argument: value}), field) == expected


@pytest.mark.parametrize(
    ("arguments", "key", "target_key"),
    [
        ({}, b"a", b"a"),
        ({"key": "k"}, b"k", b"k"),
        ({"key": b"\xff"}, b"\xff", b"\xff"),
        ({"key": "k", "target_key": SAME_AS_KEY}, b"k", b"k"),
        ({"target_key": None}, b"a", None),
        ({"target_key": "t"}, b"a", b"t"),
        ({"target_key": b""}, b"a", b""),
        ({"target_key": b"\xff\x00"}, b"a", b"\xff\x00"),
    ],
)
def test_the_entity_key_defaults_to_the_id_and_the_messages_key_to_the_entity_key(
    arguments: dict[str, Any], key: bytes, target_key: bytes | None
) -> None:
    command = scheduled(**arguments)
    assert (command.id, command.key, command.target.key) == ("a", key, target_key)


def test_an_id_that_is_not_given_is_the_key_or_else_a_new_one() -> None:
    with_key = schedule_command("default", {"topic": "t", "key": "k"}, generated_id="new")
    without = schedule_command("default", {"topic": "t"}, generated_id="new")
    assert (with_key.id, received(with_key).id, with_key.key) == ("k", "k", b"k")
    assert (without.id, received(without).id, without.key) == ("new", "new", b"new")


def test_a_tombstone_for_now_is_a_schedule_and_not_a_cancel() -> None:
    command = scheduled(payload=None)
    assert (command.payload, command.timing) == (None, After(0))


def test_reply_and_tenant_are_in_the_record() -> None:
    reply_to = ReplyTo("answers", b"c-1")
    command = received(schedule_command("acme", {"topic": "t", "id": "a"}, reply_to=reply_to))
    assert (command.tenant, command.reply_to) == ("acme", reply_to)


def test_a_cancel_carries_identity_key_and_expected_version() -> None:
    command = received(cancel_command("acme", "a", key="k", expected_version=2, reply_to=ReplyTo("answers", b"c")))
    assert command == ControlCommand("cancel", "acme", "a", b"k", 0, 0, AT, 2, ReplyTo("answers", b"c"))


@pytest.mark.parametrize(
    ("request_", "field", "reason"),
    [
        ({"topic": "a b"}, "schedule-target-topic", "not a topic name"),
        ({}, "schedule-target-topic", "is required"),
        ({"topic": "t", "at": 1_767_225_600}, "schedule-at", "looks like seconds"),
        ({"topic": "t", "at": datetime(2026, 1, 1)}, "schedule-at", "no time zone"),
        ({"topic": "t", "at": AT, "after": 5}, "schedule-after", "one trigger"),
        ({"topic": "t", "after": timedelta(seconds=-1)}, "schedule-after", "not a duration"),
        ({"topic": "t", "at": True}, "schedule-at", "not an instant"),
        ({"topic": "t", "priority": 256}, "schedule-priority", "from 0 to 255"),
        ({"topic": "t", "id": ""}, "schedule-id", "must not be empty"),
        ({"topic": "t", "id": None, "key": b"\xff"}, "schedule-id", "not UTF-8"),
        ({"topic": "t", "id": "\ud800"}, "schedule-id", "UTF-8"),
        ({"topic": "t", "payload": "text"}, "payload", "must be bytes"),
        ({"topic": "t", "labels": {"a,b": "c"}}, "schedule-labels", "comma"),
        ({"topic": "t", "headers": {"schedule-priority": "5"}}, "schedule-priority", "scheduler's"),
        (
            {"topic": "t", "headers": {"content-type": "application/vnd.light-scheduler.command+json"}},
            "content-type",
            "JSON form",
        ),
        ({"topic": "t", "target_topic": "t"}, "target_topic", "is not known; there are"),
    ],
)
def test_mistakes_are_refused_before_anything_is_sent(request_: ScheduleRequest, field: str, reason: str) -> None:
    with pytest.raises(InvalidCommand, match=reason) as caught:
        schedule_command("default", {"id": "a", **request_})
    assert caught.value.field == field


@given(st.binary(max_size=20), st.none() | st.binary(max_size=20), st.text(min_size=1, max_size=20))
def test_any_bytes_reach_the_worker_untouched(key: bytes, payload: bytes | None, header: str) -> None:
    command = scheduled(key=key, payload=payload, headers={f"x-{header}": key})
    assert (command.key, command.target.key, command.payload) == (key, key, payload)
    assert command.headers == [(f"x-{header}", key)]


def test_the_client_loads_neither_faust_nor_the_store() -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import sys, light_scheduler.client; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {"faust", "mode", "rocksdict", "pyspark"}.isdisjoint(found)
