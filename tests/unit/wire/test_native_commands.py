from __future__ import annotations

import base64

import pytest
from aiokafka.structs import ConsumerRecord

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    FIRE_PAST,
    NOW,
    REJECT_PAST,
    After,
    ControlCommand,
    Once,
    ReplyTo,
    ScheduleCommand,
    Target,
)
from light_scheduler.wire import dialect_named, native, record_id
from light_scheduler.wire.fields import OF_WORKERS
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.lane_marks import BULK_COUNT, BULK_REACH, FORWARDED_FROM
from light_scheduler.wire.probe import PROBE
from light_scheduler.wire.rate_lending import RATE_ASKED, RATE_LENT
from light_scheduler.wire.requester import REQUESTED_BY
from light_scheduler.wire.room_lending import ROOM_ASKED, ROOM_GIVEN
from light_scheduler.wire.signatures import not_ours

AT = 1_767_225_600_000
TOPIC = ("schedule-target-topic", b"reminders")


def record(
    *headers: tuple[str, bytes | None], key: bytes | None = b"customer-1", value: bytes | None = b"payload"
) -> ConsumerRecord:
    return ConsumerRecord("commands", 3, 42, AT, 0, key, value, None, -1, -1, headers)


def schedule(*headers: tuple[str, bytes | None], **parts: bytes | None) -> ScheduleCommand:
    command = dialect_named("native").decode(record(*headers, TOPIC, **parts))
    assert isinstance(command, ScheduleCommand)
    return command


def cancel(*headers: tuple[str, bytes | None], **parts: bytes | None) -> ControlCommand:
    command = dialect_named("native").decode(record(*headers, **parts))
    assert isinstance(command, ControlCommand)
    return command


def refusal(*headers: tuple[str, bytes | None], **parts: bytes | None) -> InvalidCommand:
    with pytest.raises(InvalidCommand) as caught:
        dialect_named("native").decode(record(*headers, **parts))
    return caught.value


def test_a_record_with_every_header_golden() -> None:
    command = schedule(
        ("traceparent", b"00-1-2-01"),
        ("schedule-command", b"schedule"),
        ("schedule-id", "pöst/4711".encode()),
        ("schedule-tenant", b"acme.eu"),
        ("schedule-at", b"1767225600000"),
        ("schedule-target-key", b"k"),
        ("schedule-target-partition", b"7"),
        ("schedule-labels", b"team=billing,kind=reminder"),
        ("schedule-priority", b"0"),
        ("schedule-ttl", b"10m"),
        ("schedule-on-past", b"reject"),
        ("schedule-on-conflict", b"keep"),
        ("schedule-expected-version", b"4"),
        ("schedule-reply-topic", b"answers"),
        ("schedule-correlation-id", b"\xff\x00"),
        ("traceparent", None),
    )
    assert command == ScheduleCommand(
        tenant="acme.eu",
        id="pöst/4711",
        key=b"customer-1",
        timing=Once(AT),
        target=Target("reminders", b"k", 7, None),
        payload=b"payload",
        headers=[("traceparent", b"00-1-2-01"), ("traceparent", None)],
        partition=3,
        offset=42,
        recorded_at=AT,
        ttl=600_000,
        priority=0,
        labels={"team": "billing", "kind": "reminder"},
        on_past=REJECT_PAST,
        on_conflict="keep",
        expected_version=4,
        reply_to=ReplyTo("answers", b"\xff\x00"),
    )


def test_the_least_record_means_now_under_the_id_of_its_key() -> None:
    assert schedule() == ScheduleCommand(
        tenant="default",
        id="customer-1",
        key=b"customer-1",
        timing=NOW,
        target=Target("reminders", b"customer-1"),
        payload=b"payload",
        headers=[],
        partition=3,
        offset=42,
        recorded_at=AT,
    )


@pytest.mark.parametrize(
    ("headers", "field", "expected"),
    [
        ([("schedule-at", b"2026-01-01T00:00:00Z")], "timing", Once(AT)),
        ([("schedule-after", b"15m")], "timing", After(900_000)),
        ([("schedule-after", b"0")], "timing", NOW),
        ([("schedule-after", b"PT15M")], "timing", After(900_000)),
        ([("schedule-on-past", b"fire")], "on_past", FIRE_PAST),
        ([("schedule-on-past", b"90s")], "on_past", 90_000),
        ([("schedule-priority", b"255")], "priority", 255),
        ([("schedule-labels", b"")], "labels", None),
        ([("schedule-labels", b" a = 1 , b=")], "labels", {"a": "1", "b": ""}),
        ([("schedule-labels", b"url=http://x?a=b")], "labels", {"url": "http://x?a=b"}),
        ([("schedule-target-key", b"")], "target", Target("reminders", b"")),
        ([("schedule-target-key", None)], "target", Target("reminders", None)),
        ([("schedule-target-key-base64", b"/wA=")], "target", Target("reminders", b"\xff\x00")),
        ([("schedule-target-partition-key", b"p")], "target", Target("reminders", b"customer-1", None, b"p")),
        ([("schedule-reply-topic", b"answers")], "reply_to", ReplyTo("answers")),
    ],
)
def test_reads_header(headers: list[tuple[str, bytes | None]], field: str, expected: object) -> None:
    assert getattr(schedule(*headers), field) == expected


@pytest.mark.parametrize(("value", "payload"), [(b"", b""), (b"\x00\xff", b"\x00\xff"), (None, None)])
def test_the_payload_is_the_value_as_it_is_and_null_with_a_trigger_is_a_tombstone(
    value: bytes | None, payload: bytes | None
) -> None:
    assert schedule(("schedule-after", b"1s"), value=value).payload == payload


def test_a_null_value_under_an_explicit_schedule_command_is_a_tombstone_for_now() -> None:
    command = schedule(("schedule-command", b"schedule"), value=None)
    assert (command.payload, command.timing) == (None, NOW)


def test_a_null_record_key_stays_null_and_the_id_is_made_from_the_records_place() -> None:
    command = schedule(key=None)
    assert (command.key, command.target.key, command.id) == (None, None, record_id(AT, 3, 42))


def test_a_null_value_without_trigger_is_a_cancel() -> None:
    assert cancel(value=None) == ControlCommand("cancel", "default", "customer-1", b"customer-1", 3, 42, AT)


def test_an_explicit_cancel_takes_identity_version_and_reply_and_ignores_value_and_user_headers() -> None:
    command = cancel(
        ("schedule-command", b"cancel"),
        ("schedule-id", b"a"),
        ("schedule-tenant", b"acme"),
        ("schedule-expected-version", b"2"),
        ("schedule-reply-topic", b"answers"),
        ("other", b"x"),
    )
    assert command == ControlCommand("cancel", "acme", "a", b"customer-1", 3, 42, AT, 2, ReplyTo("answers"))


@pytest.mark.parametrize(
    ("header", "value", "reason"),
    [
        ("schedule-at", b"1767225600", "looks like seconds"),
        ("schedule-at", b"\xff\xfe", "not UTF-8"),
        ("schedule-at", None, "must not be null"),
        ("schedule-after", b"-5s", "not a duration"),
        ("schedule-after", b"10001000w", "not a duration"),
        ("schedule-after", b"4000000d", "longer than 10000 years"),
        ("schedule-ttl", b"soon", "not a duration"),
        ("schedule-id", b"", "must not be empty"),
        ("schedule-id", b"a\nb", "control characters"),
        ("schedule-id", b"\xff", "not UTF-8"),
        ("schedule-tenant", b"", "not a tenant name"),
        ("schedule-tenant", b"-a", "not a tenant name"),
        ("schedule-tenant", b"a/b", "not a tenant name"),
        ("schedule-tenant", b"a" * 65, "not a tenant name"),
        ("schedule-tenant", b"acme\n", "not a tenant name"),
        ("schedule-target-topic", b"", "not a topic name"),
        ("schedule-target-topic", b"..", "not a topic name"),
        ("schedule-target-topic", b"a b", "not a topic name"),
        ("schedule-target-topic", b"a" * 250, "not a topic name"),
        ("schedule-target-key", b"\xff", "not UTF-8"),
        ("schedule-target-key-base64", b"!", "not base64"),
        ("schedule-target-key-base64", b"QQ", "not base64"),
        ("schedule-target-key-base64", b"QR==", "not base64"),
        ("schedule-target-partition", b"-1", "whole number from 0"),
        ("schedule-target-partition", b"2147483648", "whole number"),
        ("schedule-priority", b"256", "from 0 to 255"),
        ("schedule-priority", b"1_0", "from 0 to 255"),
        ("schedule-priority", "١".encode(), "from 0 to 255"),
        ("schedule-on-past", b"maybe", "fire, reject or a duration"),
        ("schedule-on-conflict", b"REPLACE", "one of replace, keep, fail"),
        ("schedule-expected-version", b"0", "from 1"),
        ("schedule-labels", b"team", "not a label"),
        ("schedule-labels", b"=x", "no name"),
        ("schedule-labels", b"a=1,a=2", "given twice"),
        ("schedule-labels", b"a=\x01", "control characters"),
        ("schedule-command", b"shedule", "did you mean schedule"),
        ("schedule-reply-topic", b"a/b", "not a topic name"),
        ("schedule-correlation-id", b"1", "needs schedule-reply-topic"),
        ("schedule-correlation-id", None, "must not be null"),
        ("schedule-every", b"0s", "at least 1 ms"),
        ("schedule-cron", b" ", "must not be empty"),
        ("schedule-end", b"1767225600000", "fires once"),
        ("schedule-due", b"1", "set by the scheduler"),
        ("schedule-taget-topic", b"x", "did you mean schedule-target-topic"),
        ("schedule-", b"x", "is not known"),
        ("schedule-zzzzzzzzzzzzzz", b"x", "is not known$"),
    ],
)
def test_refuses_header_by_name_and_says_why(header: str, value: bytes | None, reason: str) -> None:
    headers = [(header, value)] if header == TOPIC[0] else [(header, value), TOPIC]
    error = refusal(*headers)
    assert error.field == header
    with pytest.raises(InvalidCommand, match=reason):
        raise error


@pytest.mark.parametrize(
    ("headers", "parts", "field", "reason"),
    [
        ([], {}, "schedule-target-topic", "is required"),
        ([TOPIC, TOPIC], {}, "schedule-target-topic", "given twice"),
        (
            [TOPIC, ("schedule-after", b"1s"), ("schedule-at", b"1767225600000")],
            {},
            "schedule-at",
            "given together with schedule-after",
        ),
        (
            [TOPIC, ("schedule-target-key", b"a"), ("schedule-target-key-base64", b"YQ==")],
            {},
            "schedule-target-key-base64",
            "given together with schedule-target-key",
        ),
        (
            [TOPIC, ("schedule-target-partition", b"1"), ("schedule-target-partition-key", b"a")],
            {},
            "schedule-target-partition-key",
            "given together with schedule-target-partition",
        ),
        ([TOPIC], {"key": b"\xff"}, "schedule-id", "not UTF-8"),
        ([TOPIC], {"key": b""}, "schedule-id", "must not be empty"),
        ([TOPIC], {"key": b"a*"}, "schedule-id", r"^schedule-id: must not end in \*.*The id is the record's key"),
        ([TOPIC], {"key": b"*"}, "schedule-id", r"must not end in \*"),
        ([TOPIC], {"value": None}, "schedule-target-topic", "no meaning for a cancel, which a null value"),
        ([("schedule-command", b"cancel"), ("schedule-at", b"1767225600000")], {}, "schedule-at", "for a cancel$"),
        ([], {"value": None, "key": None}, "schedule-id", "no key"),
        ([], {"value": None, "key": b"\xff"}, "schedule-id", "not UTF-8"),
    ],
)
def test_refuses_records_whose_parts_do_not_fit(
    headers: list[tuple[str, bytes | None]], parts: dict[str, bytes | None], field: str, reason: str
) -> None:
    error = refusal(*headers, **parts)
    assert error.field == field
    with pytest.raises(InvalidCommand, match=reason):
        raise error


@pytest.mark.parametrize("value", [None, b"", b"1:2:3"])
@pytest.mark.parametrize("header", sorted(OF_WORKERS))
def test_a_header_that_only_workers_set_is_refused_as_theirs(header: str, value: bytes | None) -> None:
    for given in ([(header, value), TOPIC], [(header, value)]):
        error = refusal(*given, key=None, value=None)
        assert (error.field, error.reason) == (header, not_ours(header).reason)


def test_the_headers_that_only_workers_set_are_those_of_their_records() -> None:
    of_records = {BULK_COUNT, BULK_REACH, ADOPTED_FROM, EMPTIED, ROOM_ASKED, ROOM_GIVEN, RATE_ASKED, RATE_LENT}
    assert of_records | {FORWARDED_FROM, PROBE, REQUESTED_BY} == OF_WORKERS


def test_headers_that_do_not_begin_with_the_prefix_are_the_users_in_their_order() -> None:
    given = [("b", b"1"), ("Schedule-At", b"2"), ("content-type", b"application/json"), ("a", None), ("b", b"\xff")]
    assert schedule(*given).headers == given


def test_an_id_may_hold_any_text_that_is_not_control_characters() -> None:
    assert schedule(("schedule-id", "a b\u3000ж\u200d👩/@".encode())).id == "a b\u3000ж\u200d👩/@"


def test_a_key_that_ends_in_a_star_names_one_schedule_beside_an_id_and_for_a_cancel() -> None:
    assert (schedule(("schedule-id", b"a"), key=b"a*").id, schedule(key=b"*a").id) == ("a", "*a")
    command = cancel(value=None, key=b"a*")
    assert (command.id, command.selection) == ("a*", None)


def test_a_binary_target_key_round_trips() -> None:
    key = bytes(range(256))
    assert schedule(("schedule-target-key-base64", base64.b64encode(key))).target.key == key


def test_a_refused_record_still_tells_whom_to_answer() -> None:
    envelope = dialect_named("native").salvage(
        record(
            ("schedule-bogus", b"1"),
            ("schedule-command", b"pause"),
            ("schedule-id", b"a"),
            ("schedule-tenant", b"acme"),
            ("schedule-reply-topic", b"answers"),
            ("schedule-correlation-id", b"\xff"),
        )
    )
    assert (envelope.command, envelope.tenant, envelope.id) == ("pause", "acme", "a")
    assert envelope.reply_to == ReplyTo("answers", b"\xff")


def test_a_refused_record_without_usable_parts_is_told_of_by_defaults() -> None:
    envelope = dialect_named("native").salvage(
        record(("schedule-tenant", b"\xff"), ("schedule-reply-topic", b"a b"), key=b"\xff", value=None)
    )
    assert (envelope.command, envelope.tenant, envelope.id, envelope.reply_to) == ("cancel", "default", None, None)
    assert not envelope.is_tenant_known


@pytest.mark.parametrize(
    "headers",
    [
        (("schedule-tenant", None),),
        (("schedule-tenant", b"a"), ("schedule-tenant", b"b")),
        (("schedule-tennant", b"acme"),),
        (("schedule-Tenant", b"acme"),),
    ],
)
def test_the_tenant_of_a_record_that_is_refused_for_how_it_names_it_is_not_known(
    headers: tuple[tuple[str, bytes | None], ...],
) -> None:
    with pytest.raises(InvalidCommand):
        dialect_named("native").decode(record(*headers))
    assert not dialect_named("native").salvage(record(*headers)).is_tenant_known


@pytest.mark.parametrize(("headers", "tenant"), [((), "default"), ((("schedule-tenant", b"acme"),), "acme")])
def test_the_tenant_of_a_refused_record_is_known_if_it_names_one_or_none(
    headers: tuple[tuple[str, bytes], ...], tenant: str
) -> None:
    envelope = dialect_named("native").salvage(record(("schedule-bogus", b"1"), *headers))
    assert (envelope.tenant, envelope.is_tenant_known) == (tenant, True)


def test_plain_commands_are_read_however_many_names_and_topics_there_were_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "_MOST_KEPT", 0)
    at = "schedule-at", b"%d" % AT
    for number in range(3):
        name, topic = f"name-{number}", b"topic-%d" % number
        plain = native.NATIVE.plain(record((name, b"1"), at, ("schedule-target-topic", topic)))
        assert plain == (AT, Target(topic.decode(), b"customer-1"), b"payload", [(name, b"1")])
        assert native.NATIVE.plain(record((f"schedule-{name}", b"1"), at, TOPIC)) is None
        assert name not in native._KINDS
        assert topic not in native._TOPICS


def test_no_long_name_is_kept_of_a_header() -> None:
    long = "n" * 10_000
    plain = native.NATIVE.plain(record((long, b"1"), ("schedule-at", b"%d" % AT), TOPIC))
    assert plain == (AT, Target("reminders", b"customer-1"), b"payload", [(long, b"1")])
    assert native.NATIVE.plain(record((f"schedule-{long}", b"1"), TOPIC)) is None
    assert max(map(len, native._KINDS)) < len(long)
