"""More records of each dialect by its public description: what its fields can be, up to their edges and beyond.

A row is a record that fires at `DUE` to `reminders`, changed in one place, and the message that its sender is told to
expect, or the field that a dead letter names.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from support.foreign import (
    LIGHT4J_VALUE,
    avro,
    etf1_headers,
    karafka_headers,
    record,
    skyuk_avro,
    task,
    task_key,
)
from support.partition import AT

from .test_described_records import DAY, DUE, END, MINUTE, SECOND, Message, played, reminder, skyuk

LAST = 253_402_300_799
"""The last second of the year 9999."""


def changed(headers: Any, prefix: str, **changes: bytes | None) -> Any:
    """Return headers with others in place of some, or without them."""
    given = {**dict(headers), **{f"{prefix}{name}": value for name, value in changes.items()}}
    return [(name, value) for name, value in given.items() if value is not None]


def k(value: bytes | None = b"x", key: bytes | None = b"a", due: int = DUE, **changes: bytes | None) -> Any:
    return record(key, value, changed(karafka_headers(due), "schedule_", **changes))


def e(value: bytes | None = b"x", key: bytes | None = b"a", due: int = DUE, **changes: bytes | None) -> Any:
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    return record(key, value, changed(etf1_headers(due), "scheduler-", **named))


def etf1_of(headers: Any) -> Any:
    return record(b"a", b"x", headers)


def renamed(rename: Callable[[str], str]) -> Any:
    return etf1_of([(rename(name), value) for name, value in etf1_headers(DUE)])


def s(time: Any = DUE, key: bytes | None = b"a", headers: Any = (), **members: Any) -> Any:
    return record(key, skyuk(time, **members), list(headers))


def raw(text: str) -> Any:
    return record(b"a", text.encode(), [])


NO_VALUE = raw(json.dumps({"time": DUE, "topic": "reminders", "key": b64encode(b"target-key").decode()}))
FIRED = reminder(DUE)
ANSWER = Message(DUE, "answers", b"target-key", b"x")
NONE = None

KARAFKA: list[tuple[str, Any, Message | str | None]] = [
    ("a zero before the epoch", k(target_epoch=b"0%d" % (DUE // 1000)), FIRED),
    ("a plus before the epoch", k(target_epoch=b"+%d" % (DUE // 1000)), FIRED),
    ("a space before the epoch", k(target_epoch=b" %d" % (DUE // 1000)), "schedule_target_epoch"),
    ("a line end after the epoch", k(target_epoch=b"%d\n" % (DUE // 1000)), "schedule_target_epoch"),
    ("underscores in the epoch", k(target_epoch=b"1_767_229_200"), "schedule_target_epoch"),
    ("an epoch in hexadecimal", k(target_epoch=b"0x69560000"), "schedule_target_epoch"),
    ("an epoch with an exponent", k(target_epoch=b"1.7672292e9"), "schedule_target_epoch"),
    ("an epoch in ms", k(target_epoch=b"%d" % DUE), "schedule_target_epoch"),
    ("an epoch in Arabic digits", k(target_epoch="١٧٦٧٢٢٩٢٠٠".encode()), "schedule_target_epoch"),
    ("an epoch of no bytes", k(target_epoch=b""), "schedule_target_epoch"),
    ("the epoch 0", k(target_epoch=b"0"), "schedule_target_epoch"),
    ("an instant as text", k(target_epoch=b"2026-01-01T01:00:00Z"), "schedule_target_epoch"),
    ("10 s past", k(due=AT - 10 * SECOND), reminder(AT)),
    ("11 s past", k(due=AT - 11 * SECOND), "schedule_target_epoch"),
    ("1 s ahead", k(due=AT + SECOND), reminder(AT + SECOND)),
    ("a hundred years and a day ahead", k(due=AT + 36_526 * DAY), "schedule_target_epoch"),
    ("a version of two numbers", k(schema_version=b"1.0"), "schedule_schema_version"),
    ("a version with a v", k(schema_version=b"v1.0.0"), "schedule_schema_version"),
    ("a version with a suffix", k(schema_version=b"1.0.0-beta"), "schedule_schema_version"),
    ("zeros in the version", k(schema_version=b"01.00.00"), FIRED),
    ("a newer patch", k(schema_version=b"1.0.1"), "schedule_schema_version"),
    ("a newer major version", k(schema_version=b"2.0.0"), "schedule_schema_version"),
    ("a version that is not text", k(schema_version=b"\xff"), "schedule_schema_version"),
    ("a type in capitals", k(source_type=b"Schedule"), "schedule_source_type"),
    ("a type with a space", k(source_type=b"schedule "), "schedule_source_type"),
    ("a type of no bytes", k(source_type=b""), "schedule_source_type"),
    ("a type that is not text", k(source_type=b"\xff"), "schedule_source_type"),
    ("a topic with a slash", k(target_topic=b"a/b"), "schedule_target_topic"),
    ("a topic of dots", k(target_topic=b".."), "schedule_target_topic"),
    ("a topic that is not text", k(target_topic=b"\xff"), "schedule_target_topic"),
    ("a topic of 250 letters", k(target_topic=b"t" * 250), "schedule_target_topic"),
    ("another topic", k(target_topic=b"answers"), ANSWER),
    ("without a target key", k(target_key=None), reminder(DUE, key=None)),
    ("a target key of no bytes", k(target_key=b""), reminder(DUE, key=b"")),
    ("a target key of other bytes", k(target_key=b"\xff\0"), reminder(DUE, key=b"\xff\0")),
    ("a partition with a space", k(target_partition=b" 0"), "schedule_target_partition"),
    ("a negative partition", k(target_partition=b"-1"), "schedule_target_partition"),
    ("a partition beyond Java's integers", k(target_partition=b"2147483648"), "schedule_target_partition"),
    ("the first partition", k(target_partition=b"0"), FIRED),
    ("a partition key", k(target_partition_key=b"by this"), FIRED),
    ("a null value of a schedule is a tombstone for the target", k(value=None), reminder(DUE, None)),
    ("a key of one letter", k(key=b"1"), FIRED),
    ("a key with spaces", k(key=b" a b "), FIRED),
    ("a key of an emoji", k(key="⏰".encode()), FIRED),
    ("a key with $()", k(key=b"$(id)"), FIRED),
    ("a key of 512 bytes", k(key=b"k" * 512), FIRED),
    ("a key of 513 bytes", k(key=b"k" * 513), "key"),
    ("without a key", k(key=None), "key"),
    ("a key of white space", k(key=b" \t"), "key"),
    ("cancel without a key", k(key=None, source_type=b"cancel"), "key"),
]

ETF1: list[tuple[str, Any, Message | str | None]] = [
    ("a zero before the epoch", e(epoch=b"0%d" % (DUE // 1000)), FIRED),
    ("a plus before the epoch", e(epoch=b"+%d" % (DUE // 1000)), FIRED),
    ("a space after the epoch", e(epoch=b"%d " % (DUE // 1000)), "scheduler-epoch"),
    ("an epoch with a comma", e(epoch=b"1,767,229,200"), "scheduler-epoch"),
    ("underscores in the epoch", e(epoch=b"1_767_229_200"), "scheduler-epoch"),
    ("an epoch in binary", e(epoch=(DUE // 1000).to_bytes(8)), "scheduler-epoch"),
    ("an epoch of nanoseconds", e(epoch=b"%d" % (DUE * 1_000_000)), "scheduler-epoch"),
    ("an epoch of 20 nines", e(epoch=b"9" * 20), "scheduler-epoch"),
    ("an epoch in full-width digits", e(epoch="１７６７２２９２００".encode()), "scheduler-epoch"),
    ("a minus zero", e(epoch=b"-0"), "scheduler-epoch"),
    ("a word", e(epoch=b"null"), "scheduler-epoch"),
    ("the last second that there is", e(epoch=b"%d" % LAST), NONE),
    ("a second after the last", e(epoch=b"%d" % (LAST + 1)), "scheduler-epoch"),
    ("a day past", e(due=AT - DAY), "scheduler-epoch"),
    ("a second past", e(due=AT - SECOND), "scheduler-epoch"),
    ("the epoch 0", e(epoch=b"0"), "scheduler-epoch"),
    ("a second ahead", e(due=AT + SECOND), reminder(AT + SECOND)),
    ("without a topic", e(target_topic=None), "scheduler-target-topic"),
    ("a topic with a space", e(target_topic=b" reminders"), "scheduler-target-topic"),
    ("a topic with a line end", e(target_topic=b"reminders\n"), "scheduler-target-topic"),
    ("a topic that is not text", e(target_topic=b"\xff"), "scheduler-target-topic"),
    ("a topic with a NUL", e(target_topic=b"remind\0ers"), "scheduler-target-topic"),
    ("a topic of one dot", e(target_topic=b"."), "scheduler-target-topic"),
    ("another topic", e(target_topic=b"answers"), ANSWER),
    ("a target key of other bytes", e(target_key=b"\xff\0"), reminder(DUE, key=b"\xff\0")),
    ("a target key of a kilobyte", e(target_key=b"k" * 1_000), reminder(DUE, key=b"k" * 1_000)),
    ("a value of no bytes is a payload", e(value=b""), reminder(DUE, b"")),
    ("a value of the text null is a payload", e(value=b"null"), reminder(DUE, b"null")),
    ("a value that looks like a frame", e(value=b"\0\0\0\0\x01x"), reminder(DUE, b"\0\0\0\0\x01x")),
    (
        "a value that looks like JSON of ours",
        e(value=b'{"command":"cancel","id":"a"}'),
        reminder(DUE, b'{"command":"cancel","id":"a"}'),
    ),
    ("a value of zeros", e(value=bytes(1_000)), reminder(DUE, bytes(1_000))),
    ("a key with a line end", e(key=b"a\nb"), FIRED),
    ("a key with a NUL", e(key=b"a\0b"), FIRED),
    ("a key that is no text", e(key=b"\xff\xfe"), FIRED),
    ("a key that looks like one of ours", e(key=b"base64:YQ=="), FIRED),
    ("a key that ends in a star", e(key=b"video*"), FIRED),
    ("a key of a path", e(key=b"../../etc/passwd"), FIRED),
    ("a key of an id and an instant", e(key=b"a@1767225600000"), FIRED),
    ("a key of white space", e(key=b"\t"), "key"),
    ("a key of no bytes", e(key=b""), "key"),
    ("a deletion with headers of a schedule", e(value=None), NONE),
    ("a deletion with a bad epoch", e(value=None, epoch=b"soon"), NONE),
    ("a deletion without a key", e(value=None, key=None), "key"),
    (
        "headers in capitals are others",
        record(b"a", b"x", [(n.upper(), v) for n, v in etf1_headers(DUE)]),
        "scheduler-epoch",
    ),
    (
        "headers with underscores are others",
        record(b"a", b"x", [(n.replace("-", "_"), v) for n, v in etf1_headers(DUE)]),
        "scheduler-epoch",
    ),
    ("a header without a value", etf1_of([*etf1_headers(DUE), ("kind", None)]), FIRED),
    (
        "an epoch without a value",
        record(b"a", b"x", [("scheduler-epoch", None), *etf1_headers(DUE)[1:]]),
        "scheduler-epoch",
    ),
]

SKYUK: list[tuple[str, Any, Message | str | None]] = [
    ("a lower z", s("2026-01-01T01:00:00z"), FIRED),
    ("a lower t", s("2026-01-01t01:00:00Z"), FIRED),
    ("a fraction of a tenth", s("2026-01-01T01:00:00.1Z"), reminder(DUE + 100)),
    ("milliseconds", s("2026-01-01T01:00:00.001Z"), reminder(DUE + 1)),
    ("an offset of minutes", s("2026-01-01T06:30:00+05:30"), FIRED),
    ("an offset without a colon", s("2026-01-01T02:00:00+0100"), "time"),
    ("an hour only", s("2026-01-01T01Z"), "time"),
    ("a date only", s("2026-01-01"), "time"),
    ("a 30th of February", s("2026-02-30T00:00:00Z"), "time"),
    ("a 25th hour", s("2026-01-01T25:00:00Z"), "time"),
    ("text of no letters", s(""), "time"),
    ("text with spaces", s(" 2026-01-01T01:00:00Z"), "time"),
    ("a number as text", s(str(DUE)), FIRED),
    ("a number as a float", raw(skyuk(DUE).decode().replace(str(DUE), f"{DUE}.0")), FIRED),
    ("a number with an exponent", raw(skyuk(DUE).decode().replace(str(DUE), "1.7672292e12")), FIRED),
    ("a fraction of a millisecond", raw(skyuk(DUE).decode().replace(str(DUE), f"{DUE}.25")), "time"),
    ("a negative time", s(-1), reminder(AT)),
    ("a time of long ago", s("1969-12-31T23:59:59Z"), reminder(AT)),
    ("a time of false", s(False), "time"),
    ("a time in a list", s([2026, 1, 1]), "time"),
    ("a time of null", s(None), "time"),
    ("a time too large for any number", raw(skyuk(DUE).decode().replace(str(DUE), "1e400")), "record value"),
    ("NaN", raw(skyuk(DUE).decode().replace(str(DUE), "NaN")), "record value"),
    ("the topic null", s(topic=None), "topic"),
    ("a topic with a space", s(topic="a b"), "topic"),
    ("another topic", s(topic="answers"), ANSWER),
    ("a key of other bytes", s(key=b"\xff"), FIRED),
    ("a value without padding", s(value="eHl6eQ"), reminder(DUE, b"xyzy")),
    ("a value with a line end", s(value="eA==\n"), "value"),
    ("a value in URL-safe base64", s(value="_-8="), "value"),
    ("a value in base64", s(value="/+8="), reminder(DUE, b"\xff\xef")),
    ("too much padding", s(value="eA==="), "value"),
    ("a value of text", s(value="hello world"), "value"),
    ("a value of no bytes", s(payload=b""), reminder(DUE, b"")),
    (
        "a value that is left out sends a tombstone",
        NO_VALUE,
        reminder(DUE, None),
    ),
    ("a value of a list", s(value=[1]), "value"),
    ("headers of no bytes", raw(skyuk(DUE, headers={"h": ""}).decode()), FIRED),
    ("a header of null", raw(skyuk(DUE, headers={"h": None}).decode()), "headers.h"),
    ("a header without a name", raw(skyuk(DUE, headers={"": "eA=="}).decode()), FIRED),
    ("headers of null", raw(skyuk(DUE, headers=None).decode()), FIRED),
    ("headers of text", raw(skyuk(DUE, headers="x").decode()), "headers"),
    ("a record's own header", s(headers=[("schedule:expired", b"no")]), FIRED),
    ("a key given twice: the last counts", raw(skyuk(DUE).decode().replace("{", '{"topic": "answers", ', 1)), FIRED),
    ("a comma at the end", raw(skyuk(DUE).decode()[:-1] + ",}"), "record value"),
    ("two documents", raw(skyuk(DUE).decode() * 2), "record value"),
    ("half a document", raw(skyuk(DUE).decode()[:-9]), "record value"),
    ("a NUL behind", raw(skyuk(DUE).decode() + "\0"), "record value"),
    ("no document", raw("{}"), "topic"),
    ("text", raw("hello"), "record value"),
    ("white space", raw("  "), "record value"),
    ("a document of 100,000 lists", raw('{"time": ' + "[" * 100_000), "record value"),
    ("half a character", record(b"a", skyuk(DUE)[:-1] + b', "z": "\xff"}', []), "record value"),
    ("Avro of a frame without a body", record(b"a", b"\0\0\0\0\x07", []), "record value"),
    (
        "Avro cut short",
        record(b"a", skyuk_avro(DUE)[:-2], []),
        "record value",
    ),
    ("a byte order mark before", raw("\ufeff" + skyuk(DUE).decode()), "record value"),
]

TABLES = {"karafka": KARAFKA, "etf1": ETF1, "skyuk": SKYUK}


@pytest.mark.parametrize(
    ("dialect", "given", "expected"),
    [
        pytest.param(dialect, given, expected, id=f"{dialect}: {what}")
        for dialect, rows in TABLES.items()
        for what, given, expected in rows
    ],
)
async def test_a_record_gives_what_its_sender_is_told(dialect: str, given: Any, expected: Message | str | None) -> None:
    messages, letters = await played(dialect, [given], [])
    assert messages == ([expected] if isinstance(expected, Message) else [])
    assert [letter.field for letter in letters] == ([expected] if isinstance(expected, str) else [])
    assert all(letter.reason for letter in letters)


def t(key: bytes | None = None, **fields: Any) -> Any:
    given = {
        **{"host": "h", "name": "a", "action": "INSERT", "frequency": every("HOURS", 24), "topic": "reminders"},
        **{"start": AT, "data": {"key": "value"}},
        **fields,
    }
    return record(task_key(given["name"], given["host"]) if key is None else key, avro(LIGHT4J_VALUE, given), [])


def every(unit: str, time: int) -> Any:
    return {"timeUnit": unit, "time": time}


DAILY = [AT + DAY, AT + 2 * DAY, END]
LIGHT4J: list[tuple[str, Any, list[int] | str]] = [
    ("in minutes", t(frequency=every("MINUTES", 1_440)), DAILY),
    ("in seconds", t(frequency=every("SECONDS", 86_400)), DAILY),
    ("in milliseconds", t(frequency=every("MILLISECONDS", DAY)), DAILY),
    ("every three days", t(frequency=every("DAYS", 3)), [END]),
    ("every four days", t(frequency=every("DAYS", 4)), []),
    ("a negative time", t(frequency=every("DAYS", -1)), "frequency.time"),
    ("from an hour on", t(start=AT + 60 * MINUTE, frequency=every("HOURS", 36)), [AT + 37 * 60 * MINUTE]),
    ("from within an hour", t(start=AT + 59 * MINUTE), DAILY),
    ("from within a day, in days", t(start=AT + 5 * 60 * MINUTE, frequency=every("DAYS", 1)), DAILY),
    ("from the last millisecond of an hour", t(start=AT + 60 * MINUTE - 1), DAILY),
    ("from yesterday", t(start=AT - DAY), [AT, *DAILY]),
    ("from the day before", t(start=AT - 2 * DAY), [AT, *DAILY]),
    ("from 1970", t(start=1), [AT, *DAILY]),
    (
        "from 1970, in milliseconds",
        t(start=1, frequency=every("MILLISECONDS", DAY)),
        [at + 1 for at in (AT, *DAILY[:-1])],
    ),
    ("from next year", t(start=AT + 365 * DAY), []),
    ("from beyond the year 9999", t(start=LAST * 1_000 + 1_000), "start"),
    ("from the smallest number", t(start=-(2**63)), "start"),
    ("from the largest number", t(start=2**63 - 1), "start"),
    ("data of nothing", t(data={}), DAILY),
    ("data of odd names", t(data={"": "", "a b": "\n", "ž": "⏰"}), DAILY),
    ("data of 1,000 entries", t(data={f"k{n}": "v" * 10 for n in range(1_000)}), DAILY),
    ("a name with spaces", t(name="my task"), DAILY),
    ("a name in Greek", t(name="εργασία"), DAILY),
    ("a name of 512 letters", t(name="n" * 512), DAILY),
    ("a name of 513 letters", t(name="n" * 513), "name"),
    ("a name with a line end", t(name="a\nb"), "name"),
    ("a name with a NUL", t(name="a\0b"), "name"),
    ("a name of nothing", t(name=""), "name"),
    ("a name that ends in a star", t(name="a*"), DAILY),
    ("a host with a port", t(host="networknt.com:8443"), "host"),
    ("a host of nothing", t(host=""), "host"),
    ("a host of an address", t(host="192.168.0.1"), DAILY),
    ("a host of 64 letters", t(host="h" * 64), DAILY),
    ("a host of 65 letters", t(host="h" * 65), "host"),
    ("a host in capitals", t(host="NetworkNT.com"), DAILY),
    ("a host with an underscore", t(host="my_host"), DAILY),
    ("a host with a slash", t(host="a/b"), "host"),
    ("a host of dots", t(host=".."), "host"),
    ("a host in Greek", t(host="οικος"), "host"),
    ("a topic of nothing", t(topic=""), "topic"),
    ("a topic with a slash", t(topic="a/b"), "topic"),
    ("a topic of 250 letters", t(topic="t" * 250), "topic"),
    ("a key of another task", t(key=task_key("other", "h")), DAILY),
    ("a key that is text", t(key=b"a"), DAILY),
    ("a key of no bytes", t(key=b""), DAILY),
    ("a key of a frame", t(key=task_key("a", "h", 3)), DAILY),
    ("a value of no bytes", record(task_key("a", "h"), b"", []), "record value"),
    (
        "a value of JSON",
        record(task_key("a", "h"), b'{"host": "h", "name": "a"}', []),
        "record value",
    ),
    ("a value with a byte more", record(task_key("a", "h"), task(DUE, host="h") + b"\0", []), "record value"),
    ("a value that ends early", record(task_key("a", "h"), task(DUE, host="h")[:-1], []), "record value"),
    ("a frame without a body", record(task_key("a", "h"), b"\0\0\0\0\x01", []), "record value"),
    ("a deletion without frequency", t(action="DELETE", frequency=None), []),
    ("a deletion of a bad topic", t(action="DELETE", topic=""), []),
    ("a null value", record(task_key("a", "h"), None, []), []),
    ("a null value without a key", record(None, None, []), "record key"),
]


@pytest.mark.parametrize(("given", "expected"), [pytest.param(*row[1:], id=row[0]) for row in LIGHT4J])
async def test_a_task_repeats_as_its_sender_is_told(given: Any, expected: list[int] | str) -> None:
    messages, letters = await played("light4j", [given], [])
    assert [message.at for message in messages] == (expected if isinstance(expected, list) else [])
    assert {message.key for message in messages} <= {given.key}
    assert [letter.field for letter in letters] == ([expected] if isinstance(expected, str) else [])
    assert all(letter.reason for letter in letters)
