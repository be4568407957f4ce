"""Records of each dialect, made from its public description alone, and what its users are told to expect of them.

Each case plays its records in order, lets time pass until nothing is due before `END`, and compares all messages and
all refused fields.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, NamedTuple

import pytest
from support.foreign import LIGHT4J_VALUE, SKYUK_SCHEMA, avro, etf1_headers, karafka_headers, record, task, task_key
from support.partition import AT, HOUR, Partition, topic
from support.producing import FakeProducer

from light_scheduler.model import DeadLetter

SECOND, MINUTE, DAY = 1_000, 60_000, 24 * HOUR
DUE = AT + HOUR
END = AT + 3 * DAY


class Message(NamedTuple):
    """A message as its consumer sees it: when, where, key and value."""

    at: int
    topic: str
    key: bytes | None
    value: bytes | None


class Case(NamedTuple):
    """Records that are read at `AT`, after an hour if they are in `later`, and what comes of them."""

    what: str
    records: list[Any]
    messages: list[Message]
    refused: list[str | None] = []  # noqa: RUF012 - of a tuple that nobody changes
    later: list[Any] = []  # noqa: RUF012


def reminder(
    at: int, value: bytes | None = b"x", key: bytes | None = b"target-key", topic: str = "reminders"
) -> Message:
    return Message(at, topic, key, value)


def etf1_epoch(text: bytes) -> Any:
    """A record whose due time is some text."""
    return record(b"a", b"x", [("scheduler-epoch", text), *etf1_headers(DUE)[1:]])


def without(headers: Any, *names: str) -> Any:
    return [header for header in headers if header[0] not in names]


def cancelled(kind: str, *more: tuple[str, bytes]) -> Any:
    return [("schedule_schema_version", b"1.0.0"), ("schedule_source_type", kind.encode()), *more]


HUNDRED_YEARS = AT + 36_524 * DAY

KARAFKA = [
    Case(
        "an id by default is the target topic and a UUID",
        [record(b"reminders-6f1c2d3e-0000-4000-8000-000000000000", b"x", karafka_headers(DUE))],
        [reminder(DUE)],
    ),
    Case("a target of this very second", [record(b"a", b"x", karafka_headers(AT))], [reminder(AT)]),
    Case("a target 9 s past", [record(b"a", b"x", karafka_headers(AT - 9 * SECOND))], [reminder(AT)]),
    Case("a target within a hundred years", [record(b"a", b"x", karafka_headers(HUNDRED_YEARS))], []),
    Case(
        "a negative target",
        [
            record(
                b"a", b"x", [*without(karafka_headers(DUE), "schedule_target_epoch"), ("schedule_target_epoch", b"-5")]
            )
        ],
        [],
        ["schedule_target_epoch"],
    ),
    Case("an empty payload", [record(b"a", b"", karafka_headers(DUE))], [reminder(DUE, b"")]),
    Case("a payload of zeros", [record(b"a", b"\x00" * 9, karafka_headers(DUE))], [reminder(DUE, b"\x00" * 9)]),
    Case(
        "a later record of the key, to another topic and another day",
        [
            record(b"a", b"old", karafka_headers(DUE)),
            record(b"a", b"new", karafka_headers(DUE + DAY, topic="answers", key=b"other"), offset=43),
        ],
        [Message(DUE + DAY, "answers", b"other", b"new")],
    ),
    Case(
        "three versions in one batch",
        [record(b"a", b"%d" % n, karafka_headers(DUE + n * MINUTE), offset=42 + n) for n in (2, 0, 1)],
        [reminder(DUE + MINUTE, b"1")],
    ),
    Case(
        "a cancel with a payload and all headers of a schedule",
        [record(b"a", b"x", karafka_headers(DUE)), record(b"a", b"x", karafka_headers(DUE, "cancel"), offset=43)],
        [],
    ),
    Case(
        "a cancel of one id leaves the others",
        [
            record(b"a", b"x", karafka_headers(DUE)),
            record(b"ab", b"y", karafka_headers(DUE), offset=43),
            record(b"a", None, cancelled("cancel"), offset=44),
        ],
        [reminder(DUE, b"y")],
    ),
    Case(
        "a cancel in the second of the target",
        [record(b"a", b"x", karafka_headers(DUE))],
        [],
        later=[record(b"a", None, cancelled("cancel"), offset=43, timestamp=DUE)],
    ),
    Case(
        "dispatched elsewhere already",
        [record(b"a", b"x", karafka_headers(DUE)), record(b"a", None, karafka_headers(DUE, "tombstone"), offset=43)],
        [],
    ),
    Case(
        "a schedule after its tombstone",
        [
            record(b"a", b"x", karafka_headers(DUE)),
            record(b"a", None, cancelled("tombstone"), offset=43),
            record(b"a", b"again", karafka_headers(DUE + MINUTE), offset=44),
        ],
        [reminder(DUE + MINUTE, b"again")],
    ),
    Case(
        "an older schema",
        [record(b"a", b"x", [("schedule_schema_version", b"0.9.0"), *karafka_headers(DUE)[1:]])],
        [reminder(DUE)],
    ),
    Case(
        "a newer minor version, written so that text would be smaller",
        [record(b"a", b"x", [("schedule_schema_version", b"1.10.0"), *karafka_headers(DUE)[1:]])],
        [],
        ["schedule_schema_version"],
    ),
    Case(
        "a refused update leaves what is pending",
        [
            record(b"a", b"x", karafka_headers(DUE)),
            record(b"a", b"new", karafka_headers(DUE + DAY, "sched"), offset=43),
        ],
        [reminder(DUE)],
        ["schedule_source_type"],
    ),
]

ETF1 = [
    Case("this very second", [record(b"a", b"x", etf1_headers(AT))], [reminder(AT)]),
    Case(
        "binary payload and target key",
        [record(b"a", b"\xff\x00", etf1_headers(DUE, key=b"\x00\xff"))],
        [reminder(DUE, b"\xff\x00", b"\x00\xff")],
    ),
    Case("an empty target key", [record(b"a", b"x", etf1_headers(DUE, key=b""))], [reminder(DUE, key=b"")]),
    Case("no target key", [record(b"a", b"x", etf1_headers(DUE)[:2])], [reminder(DUE, key=None)]),
    Case(
        "deleted and scheduled again for another day",
        [
            record(b"a", b"old", etf1_headers(DUE)),
            record(b"a", None, [], offset=43),
            record(b"a", b"new", etf1_headers(DUE + DAY), offset=44),
        ],
        [reminder(DUE + DAY, b"new")],
    ),
    Case(
        "moved to another day and back",
        [record(b"a", b"%d" % n, etf1_headers(at), offset=42 + n) for n, at in enumerate((DUE, DUE + DAY, DUE))],
        [reminder(DUE, b"2")],
    ),
    Case(
        "deleted in its second",
        [record(b"a", b"x", etf1_headers(DUE))],
        [],
        later=[record(b"a", None, [], offset=43, timestamp=DUE)],
    ),
    Case(
        "an id that is no text, deleted",
        [record(b"\xff\xfe", b"x", etf1_headers(DUE)), record(b"\xff\xfe", None, [], offset=43)],
        [],
    ),
    Case("an epoch in ms", [etf1_epoch(b"%d" % DUE)], [], ["scheduler-epoch"]),
    Case("an epoch with a fraction", [etf1_epoch(b"1767229200.5")], [], ["scheduler-epoch"]),
    Case("an empty epoch", [etf1_epoch(b"")], [], ["scheduler-epoch"]),
    Case("an epoch that is no text", [etf1_epoch(b"\xff")], [], ["scheduler-epoch"]),
    Case("an empty target topic", [record(b"a", b"x", etf1_headers(DUE, topic=""))], [], ["scheduler-target-topic"]),
    Case(
        "bad records between good ones",
        [
            record(b"a", b"1", etf1_headers(DUE)),
            record(b"b", b"bad", []),
            record(None, b"bad", etf1_headers(DUE), offset=44),
            record(b"c", b"2", etf1_headers(DUE), offset=45),
        ],
        [reminder(DUE, b"1"), reminder(DUE, b"2")],
        ["scheduler-epoch", "key"],
    ),
]


def skyuk(time: Any, payload: bytes | None = b"x", **members: Any) -> bytes:
    """A schedule in JSON as the description has it."""
    text = None if payload is None else b64encode(payload).decode()
    given = {"time": time, "topic": "reminders", "key": b64encode(b"target-key").decode(), "value": text}
    return json.dumps({**given, **members}).encode()


SKYUK = [
    Case("without headers", [record(b"a", skyuk(DUE), [])], [reminder(DUE)]),
    Case("with members of the future", [record(b"a", skyuk(DUE, priority=1), [])], [reminder(DUE)]),
    Case("RFC 3339 with an offset", [record(b"a", skyuk("2026-01-01T02:00:00+01:00"), [])], [reminder(DUE)]),
    Case("RFC 3339 west of Greenwich", [record(b"a", skyuk("2025-12-31T20:00:00-05:00"), [])], [reminder(DUE)]),
    Case("RFC 3339 with nanoseconds", [record(b"a", skyuk("2026-01-01T01:00:00.000000001Z"), [])], [reminder(DUE + 1)]),
    Case("a time without an offset", [record(b"a", skyuk("2026-01-01T01:00:00"), [])], [], ["time"]),
    Case("the beginning of time", [record(b"a", skyuk(0), [])], [reminder(AT)]),
    Case("the day before", [record(b"a", skyuk("2025-12-31T00:00:00Z"), [])], [reminder(AT)]),
    Case("an empty key and an empty value", [record(b"a", skyuk(DUE, b"", key=""), [])], [reminder(DUE, b"", b"")]),
    Case("white space around", [record(b"a", b"\n  " + skyuk(DUE) + b"\n", [])], [reminder(DUE)]),
    Case("base64 without its padding", [record(b"a", skyuk(DUE, value="eHk"), [])], [reminder(DUE, b"xy")]),
    Case(
        "a schedule replaced by a scheduled tombstone",
        [record(b"a", skyuk(DUE), []), record(b"a", skyuk(DUE + MINUTE, None), [], offset=43)],
        [reminder(DUE + MINUTE, None)],
    ),
    Case(
        "a scheduled tombstone that is cancelled",
        [record(b"a", skyuk(DUE, None), []), record(b"a", None, [], offset=43)],
        [],
    ),
    Case(
        "JSON replaced by Avro",
        [
            record(b"a", skyuk(DUE), []),
            record(
                b"a",
                avro(
                    SKYUK_SCHEMA,
                    {"time": DUE + DAY, "topic": "answers", "key": b"k", "value": b"avro", "headers": {}},
                    7,
                ),
                [],
                offset=43,
            ),
        ],
        [Message(DUE + DAY, "answers", b"k", b"avro")],
    ),
    Case("a list", [record(b"a", b"[]", [])], [], ["record value"]),
    Case("headers that are a list", [record(b"a", skyuk(DUE, headers=[]), [])], [], ["headers"]),
]


def job(name: str, host: str = "networknt.com", *, offset: int = 42, timestamp: int = AT, **fields: Any) -> Any:
    given = {"host": host, "name": name, "frequency": {"timeUnit": "HOURS", "time": 24}, "start": AT, **fields}
    return record(task_key(name, host), task(DUE, **given), [], offset=offset, timestamp=timestamp)


TWO_DAYS = [AT + DAY, AT + 2 * DAY]


class Tasks(NamedTuple):
    """Tasks, and the instants at which a message of each comes, in their order."""

    what: str
    records: list[Any]
    instants: list[tuple[int, bytes]]
    refused: list[str | None] = []  # noqa: RUF012


NO_DATA = {
    "host": "networknt.com",
    "name": "a",
    "action": "INSERT",
    "frequency": {"timeUnit": "HOURS", "time": 24},
    "topic": "reminders",
    "start": AT,
    "data": None,
}

LIGHT4J = [
    Tasks("every day", [job("a")], [(at, task_key("a")) for at in [*TWO_DAYS, END]]),
    Tasks(
        "in days as in hours",
        [job("a", frequency={"timeUnit": "DAYS", "time": 1})],
        [(at, task_key("a")) for at in [*TWO_DAYS, END]],
    ),
    Tasks(
        "an update of what is not there",
        [job("a", action="UPDATE", frequency={"timeUnit": "DAYS", "time": 2})],
        [(AT + 2 * DAY, task_key("a"))],
    ),
    Tasks(
        "an update to another frequency and unit",
        [job("a"), job("a", action="UPDATE", frequency={"timeUnit": "DAYS", "time": 2}, offset=43)],
        [(AT + 2 * DAY, task_key("a"))],
    ),
    Tasks(
        "one name of two hosts, of which one is deleted",
        [job("a"), job("a", "other.org", offset=43), job("a", offset=44, action="DELETE")],
        [(at, task_key("a", "other.org")) for at in [*TWO_DAYS, END]],
    ),
    Tasks("deleted, and never there", [job("a", action="DELETE")], []),
    Tasks(
        "stored again after its end",
        [job("a"), job("a", action="DELETE", offset=43), job("a", offset=44)],
        [(at, task_key("a")) for at in [*TWO_DAYS, END]],
    ),
    Tasks(
        "without data",
        [record(task_key("a"), avro(LIGHT4J_VALUE, NO_DATA), [])],
        [(at, task_key("a")) for at in [*TWO_DAYS, END]],
    ),
    Tasks(
        "a frequency of no time",
        [job("a", frequency={"timeUnit": "DAYS", "time": 0}), job("b", offset=43)],
        [(at, task_key("b")) for at in [*TWO_DAYS, END]],
        ["frequency.time"],
    ),
    Tasks("a host that can be no tenant", [job("a", "my host")], [], ["host"]),
]


async def played(dialect: str, records: list[Any], later: list[Any]) -> tuple[list[Message], list[DeadLetter]]:
    """Return all messages until `END`, and all dead letters, of a partition that reads records at once and later."""
    partition = Partition(FakeProducer(), dialect=dialect)
    partition.topics["answers"] = topic(1)
    messages: list[Message] = []
    letters: list[DeadLetter] = []

    async def run(*commands: Any, now: int) -> None:
        await partition.run(*commands, now=now)
        for name in ("reminders", "answers"):
            messages.extend(Message(now, name, sent.key, sent.value) for sent in partition.sent(name))
        letters.extend(partition.dead_letters)

    await run(*records, now=AT)
    if later:
        await run(*later, now=AT + HOUR)
    while (wakes_at := partition.wakes_at) is not None and wakes_at <= END:
        await run(now=wakes_at)
    return messages, letters


CASES = [
    pytest.param(dialect, case, id=f"{dialect}: {case.what}")
    for dialect, cases in {"karafka": KARAFKA, "etf1": ETF1, "skyuk": SKYUK}.items()
    for case in cases
]


@pytest.mark.parametrize(("dialect", "case"), CASES)
async def test_records_give_what_their_senders_are_told(dialect: str, case: Case) -> None:
    messages, letters = await played(dialect, case.records, case.later)
    assert messages == case.messages
    assert [letter.field for letter in letters] == case.refused
    assert all(letter.reason for letter in letters)


@pytest.mark.parametrize("case", LIGHT4J, ids=[case.what for case in LIGHT4J])
async def test_tasks_repeat_as_their_senders_are_told(case: Tasks) -> None:
    messages, letters = await played("light4j", case.records, [])
    assert [(message.at, message.key) for message in messages] == case.instants
    assert [letter.field for letter in letters] == case.refused
