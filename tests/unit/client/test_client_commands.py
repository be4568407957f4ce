"""What a client's arguments become on the wire, seen through the codec that the workers read with."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args
from zoneinfo import ZoneInfo

import pytest
from aiokafka.structs import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.client import (
    FROM_CONTENT,
    SAME_AS_KEY,
    CommandRecords,
    ManyOptions,
    SchedulerClient,
    ScheduleRequest,
    TimeRule,
)
from light_scheduler.client.commands import (
    CommandToSend,
    complete_command,
    control_command,
    control_many_command,
    reschedule_command,
    reschedule_many_command,
    schedule_command,
)
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    REJECT_PAST,
    Acknowledgement,
    After,
    Backoff,
    Bounds,
    Command,
    CompleteCommand,
    ControlCommand,
    ControlName,
    Cron,
    FixedDelay,
    FixedRate,
    Once,
    ReplyTo,
    RescheduleCommand,
    ScheduleCommand,
    Selection,
)
from light_scheduler.wire import dialect_named
from light_scheduler.wire.fields import RULES

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
        ("trigger", Once(AT), "timing", Once(AT)),
        ("trigger", After(5_000), "timing", After(5_000)),
        ("trigger", FixedRate(60_000), "timing", FixedRate(60_000)),
        (
            "trigger",
            Cron("0 9 * * 1-5", timezone="Europe/Prague"),
            "timing",
            Cron("0 9 * * 1-5", "unix", "Europe/Prague"),
        ),
        ("every", timedelta(minutes=1), "timing", FixedRate(60_000)),
        ("cron", "@daily", "timing", Cron("@daily")),
        ("backoff", "1s,2s", "timing", Backoff((1_000, 2_000))),
        ("backoff", [1_000, "2s", timedelta(seconds=4)], "timing", Backoff((1_000, 2_000, 4_000))),
        ("jitter", timedelta(seconds=5), "bounds", Bounds(jitter=5_000)),
        ("window", "5s", "bounds", Bounds(window=5_000)),
        ("misfire_grace", timedelta(seconds=5), "bounds", Bounds(misfire_grace=5_000)),
        ("paused", True, "paused", True),
        ("paused", False, "paused", False),
        ("ack_timeout", timedelta(minutes=1), "acknowledgement", Acknowledgement(60_000, 10)),
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


def test_a_series_takes_all_that_its_headers_can_say() -> None:
    command = scheduled(
        cron="0 0 9 L * ?",
        cron_dialect="quartz",
        timezone=ZoneInfo("Europe/Prague"),
        start=datetime(2100, 1, 1, tzinfo=UTC),
        end="2101-01-01T00:00:00Z",
        max_firings=5,
        misfire="all",
        ack_timeout="1m",
        max_attempts=3,
        overlap="queue",
    )
    assert command.timing == Cron("0 0 9 L * ?", "quartz", "Europe/Prague")
    assert command.bounds == Bounds(AT, 4_133_980_800_000, 5, misfire="all")
    assert command.acknowledgement == Acknowledgement(60_000, 3, "queue")
    assert scheduled(every="5m", mode="fixed-delay").timing == FixedDelay(300_000)


def test_the_arguments_are_the_headers_of_a_schedule_command() -> None:
    others = {
        "command",
        "id",
        "tenant",
        "firing-id",
        "attempt",
        "completion",
        "reply-topic",
        "reply-partition",
        "correlation-id",
    }
    arguments = {name.replace("_", "-") for name in ScheduleRequest.__annotations__}
    assert RULES.keys() - others - {"target-topic", "target-key-base64"} == arguments - {
        "id", "payload", "headers", "key", "topic", "trigger",
    }  # fmt: skip


def test_an_id_of_the_content_is_the_same_for_the_same_request_only() -> None:
    def id_of(**request: Any) -> str:
        return scheduled(**{"id": FROM_CONTENT, "payload": b"x", "after": "1m", **request}).id

    same: list[dict[str, Any]] = [{}, {"on_conflict": "keep"}, {"expected_version": 1}]
    other: list[dict[str, Any]] = [
        {"payload": b"y"}, {"payload": None}, {"after": "2m"}, {"topic": "u"}, {"key": "k"}, {"key": ""},
        {"headers": {"a": "b"}}, {"labels": "a=b"}, {"target_key": None},
    ]  # fmt: skip
    assert len({id_of(**request) for request in same}) == 1
    assert len({id_of(**request) for request in [*same, *other]}) == 1 + len(other)


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


@pytest.mark.parametrize("name", get_args(ControlName))
def test_control_commands_carry_identity_key_and_expected_version(name: ControlName) -> None:
    sent = control_command(name, "acme", "a", key="k", expected_version=2, reply_to=ReplyTo("answers", b"c"))
    assert received(sent) == ControlCommand(name, "acme", "a", b"k", 0, 0, AT, 2, ReplyTo("answers", b"c"))


def test_a_reschedule_carries_a_time_rule() -> None:
    rule: TimeRule = {"every": "5m", "start": AT, "jitter": timedelta(seconds=1)}
    sent = reschedule_command("acme", "a", rule, key="k", expected_version=2)
    assert received(sent) == RescheduleCommand(
        "acme", "a", b"k", FixedRate(300_000), 0, 0, AT, None, 2, None, Bounds(AT, jitter=1_000)
    )
    one_shot: TimeRule = {"trigger": Once(AT), "on_past": "reject"}
    command = received(reschedule_command("acme", "a", one_shot))
    assert isinstance(command, RescheduleCommand)
    assert (command.timing, command.on_past) == (Once(AT), REJECT_PAST)


@pytest.mark.parametrize("id", ["*", "order-*"])
@pytest.mark.parametrize("version", [None, 2])
def test_no_command_for_one_schedule_selects_several(id: str, version: int | None) -> None:
    reason = r"schedule-id: must not end in \*: .* use SchedulerClient\."
    for name in get_args(ControlName):
        with pytest.raises(InvalidCommand, match=f"{reason}{name}_many"):
            control_command(name, "acme", id, expected_version=version)
    with pytest.raises(InvalidCommand, match=f"{reason}reschedule_many"):
        reschedule_command("acme", id, {"after": "1h"}, expected_version=version)
    with pytest.raises(InvalidCommand, match=r"^id: must not end in \*: .* use SchedulerClient\.cancel_many"):
        CommandRecords().cancel(id, expected_version=version)


@pytest.mark.parametrize("succeeded", [True, False])
def test_a_completion_names_firing_and_attempt(succeeded: bool) -> None:
    sent = complete_command("acme", f"a@b@{AT}", 2, succeeded=succeeded, key="k", reply_to=ReplyTo("answers", b"c"))
    assert received(sent) == CompleteCommand(
        "acme", "a@b", b"k", AT, 2, succeeded, 0, 0, AT, None, ReplyTo("answers", b"c")
    )
    assert complete_command("acme", f"a@b@{AT}", 2).key == b"a@b"
    with pytest.raises(InvalidCommand, match="not the id of a firing"):
        complete_command("acme", "a@b", 2)


def test_a_target_that_is_not_named_is_for_the_worker_to_judge() -> None:
    sent = schedule_command("shop", {"id": "a", "key": "k", "after": "1m"})
    assert (sent.tenant, sent.id, sent.key) == ("shop", "a", b"k")
    assert "schedule-target-topic" not in dict(sent.headers)
    assert schedule_command("shop", {"id": "a", "key": "k", "after": "1m", "topic": None}) == sent
    with pytest.raises(InvalidCommand, match="give tenant shop a default target"):
        received(sent)


async def test_an_argument_that_no_command_has_is_refused() -> None:
    client: Any = SchedulerClient()
    with pytest.raises(InvalidCommand, match="is not an argument; use key, expected_version"):
        await client.pause("a", kee="k")
    with pytest.raises(InvalidCommand, match="is not an argument; use trigger, at"):
        await client.reschedule("a", wait=False, topic="t")


@pytest.mark.parametrize(
    ("request_", "field", "reason"),
    [
        ({"topic": "a b"}, "schedule-target-topic", "not a topic name"),
        ({"topic": "t", "at": 1_767_225_600}, "schedule-at", "looks like seconds"),
        ({"topic": "t", "at": datetime(2026, 1, 1)}, "schedule-at", "no time zone"),
        ({"topic": "t", "at": AT, "after": 5}, "schedule-after", "one trigger"),
        ({"topic": "t", "after": timedelta(seconds=-1)}, "schedule-after", "not a duration"),
        ({"topic": "t", "at": True}, "schedule-at", "not an instant"),
        ({"topic": "t", "every": "1m", "cron": "@daily"}, "schedule-cron", "one trigger"),
        ({"topic": "t", "trigger": Once(AT), "cron": "@daily"}, "schedule-cron", "one trigger"),
        ({"topic": "t", "trigger": Once(AT), "at": AT}, "schedule-at", "given twice"),
        ({"topic": "t", "trigger": "15m"}, "trigger", "must be one of Once, After"),
        ({"topic": "t", "trigger": FixedRate(5, anchor=7)}, "trigger", "use start"),
        ({"topic": "t", "timezone": "UTC"}, "schedule-timezone", "needs schedule-cron"),
        ({"topic": "t", "trigger": FixedRate(5), "timezone": "UTC"}, "schedule-timezone", "needs schedule-cron"),
        ({"topic": "t", "every": "1m", "start": datetime(2026, 1, 1)}, "schedule-start", "no time zone"),
        ({"topic": "t", "paused": "yes"}, "schedule-paused", "must be true or false"),
        ({"topic": "t", "priority": 256}, "schedule-priority", "from 0 to 255"),
        ({"topic": "t", "id": ""}, "schedule-id", "must not be empty"),
        ({"topic": "t", "id": None, "key": b"\xff"}, "schedule-id", "not UTF-8"),
        ({"topic": "t", "id": "\ud800"}, "schedule-id", "UTF-8"),
        ({"topic": "t", "payload": "text"}, "payload", "must be bytes"),
        ({"topic": "t", "labels": {"a,b": "c"}}, "schedule-labels", "comma"),
        ({"topic": "t", "labels": {"a": 5}}, "schedule-labels", "must have a name and a value that are text"),
        ({"topic": "t", "labels": [("a", "b")]}, "schedule-labels", "must be a mapping or text, not list"),
        ({"topic": "t", "backoff": 5}, "schedule-backoff", "must be a sequence of intervals or text, not int"),
        ({"topic": "t", "headers": {1: b""}}, "headers", "has the name 1: names must be text"),
        ({"topic": "t", "headers": "ab"}, "headers", "must be a mapping, or pairs"),
        ({"topic": "t", "headers": 5}, "headers", "must be a mapping, or pairs"),
        ({"topic": "t", "id": FROM_CONTENT, "payload": object()}, "payload", "must be bytes or None, not object"),
        ({"topic": "t", "headers": {"schedule-priority": "5"}}, "schedule-priority", "reserved for the scheduler"),
        (
            {"topic": "t", "headers": {"content-type": "application/vnd.light-scheduler.command+json"}},
            "content-type",
            "JSON form",
        ),
        ({"topic": "t", "target_topic": "t"}, "target_topic", "is not an argument; use"),
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


SELECTIONS: list[tuple[ManyOptions, str, Selection]] = [
    ({"id_prefix": "order-"}, "order-*", Selection("order-")),
    ({"id_prefix": "order-*"}, "order-**", Selection("order-*")),  # an id can have an asterisk inside
    (
        {"id_prefix": "order-", "labels": {"team": "a", "kind": "b"}},
        "order-*",
        Selection("order-", {"team": "a", "kind": "b"}),
    ),
    ({"labels": "team=a"}, "*", Selection("", {"team": "a"})),
    ({"id_prefix": None, "labels": "team=a", "everything": None}, "*", Selection("", {"team": "a"})),
    ({"everything": True}, "*", Selection("")),
]


@pytest.mark.parametrize(("selected", "id", "selection"), SELECTIONS)
@pytest.mark.parametrize("name", get_args(ControlName))
def test_a_command_for_many_selects(name: ControlName, selected: ManyOptions, id: str, selection: Selection) -> None:
    command = received(control_many_command(name, "acme", selected, reply_to=ReplyTo("r", b"c", 2)))
    assert command == ControlCommand(name, "acme", id, id.encode(), 0, 0, AT, None, ReplyTo("r", b"c", 2), selection)


def test_many_are_rescheduled_by_a_time_rule() -> None:
    command = received(reschedule_many_command("acme", {"id_prefix": "a"}, {"every": "1m", "max_firings": 2}))
    assert isinstance(command, RescheduleCommand)
    assert (command.timing, command.bounds, command.selection) == (
        FixedRate(60_000),
        Bounds(max_firings=2),
        Selection("a"),
    )


@pytest.mark.parametrize(
    ("selected", "reason"),
    [
        ({}, "everything: is needed without id_prefix and labels"),
        ({"id_prefix": ""}, "everything: is needed"),
        ({"labels": {}}, "everything: is needed"),
        ({"everything": False}, "everything: is needed"),
        ({"everything": None}, "everything: is needed"),
        ({"everything": 0}, "everything: must be True or False, not int"),
        ({"everything": ""}, "everything: must be True or False, not str"),
        ({"everything": 1, "id_prefix": "a"}, "everything: must be True or False, not int"),
        ({"id_prefix": 5}, "id_prefix: must be text, not int"),
        ({"everything": True, "id_prefix": "a"}, "everything: is given together with"),
        ({"everything": True, "labels": "a=b"}, "everything: is given together with"),
        ({"labels": "a"}, "schedule-labels: 'a' is not a label"),
        ({"id_prefix": "\0"}, "schedule-id: .* has control characters"),
    ],
)
def test_nobody_means_all_schedules_by_leaving_something_out(selected: ManyOptions, reason: str) -> None:
    with pytest.raises(InvalidCommand, match=reason):
        control_many_command("cancel", "default", selected)


async def test_an_unknown_argument_of_a_command_for_many_is_refused() -> None:
    client: Any = SchedulerClient()
    with pytest.raises(InvalidCommand, match="prefix: is not an argument"):
        await client.cancel_many(prefix="a")
    with pytest.raises(InvalidCommand, match="key: is not an argument"):
        await client.reschedule_many(id_prefix="a", key="k", after=0)
