from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.errors import FormatError
from light_scheduler.model import (
    Acknowledgement,
    Backoff,
    Entry,
    Firing,
    FixedDelay,
    Headers,
    HomeKey,
    Once,
    Progress,
    Schedule,
    Target,
    delivery_id,
)
from light_scheduler.wire import firing_headers, parse_firing
from light_scheduler.wire.fired_headers import fired_headers

replace = msgspec.structs.replace

AT = 1_767_225_600_000


def entry(headers: Headers, *, id: str = "pöst", version: int = 2, sequence: int = 1) -> Entry:
    return Entry(
        Schedule("acme", id, version, Once(AT), Target("t"), b"x", headers, 3, 42, AT),
        Progress(AT, 42, sequence, 1),
    )


def message(headers: Headers) -> ConsumerRecord:
    return ConsumerRecord("t", 0, 1, AT, 0, b"k", b"x", None, -1, -1, headers)


def in_a_run(entry: Entry, fired_at: int, source_topic: bytes) -> Headers:
    return fired_headers(fired_at, source_topic)(entry, entry.schedule.id.encode())


def test_a_firing_carries_the_users_headers_and_where_it_comes_from_golden() -> None:
    assert firing_headers(entry([("trace", b"\xff"), ("trace", None)]), AT + 7, b"commands") == [
        ("trace", b"\xff"),
        ("trace", None),
        ("schedule-id", "pöst".encode()),
        ("schedule-tenant", b"acme"),
        ("schedule-firing-id", f"pöst@{AT}".encode()),
        ("schedule-due", b"1767225600000"),
        ("schedule-fired-at", b"1767225600007"),
        ("schedule-sequence", b"1"),
        ("schedule-attempt", b"1"),
        ("schedule-version", b"2"),
        ("schedule-source-topic", b"commands"),
        ("schedule-source-partition", b"3"),
        ("schedule-source-offset", b"42"),
        ("schedule-delivery-id", f"commands:3:42:2:1:{AT}:1".encode()),
    ]


def test_the_schedules_own_headers_are_not_touched() -> None:
    stored: Headers = [("a", b"1")]
    firing_headers(entry(stored), AT, b"commands")
    assert stored == [("a", b"1")]


@given(
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4),
    st.text(min_size=1, max_size=8),
    st.integers(1, 2**40),
    st.integers(1, 2**40),
)
def test_what_is_written_reads_back(headers: Headers, id: str, version: int, sequence: int) -> None:
    fired = entry(headers, id=id, version=version, sequence=sequence)
    assert parse_firing(message(firing_headers(fired, AT + 7, b"commands"))) == Firing(
        *("acme", id, AT, AT + 7, sequence, 1, version, "commands", 3, 42, b"k", b"x", headers),
        delivery_id=delivery_id(("commands", 3, 42), version, sequence, AT, 1),
    )


@pytest.mark.parametrize(
    ("home", "key", "told"),
    [
        (HomeKey.ID, b"k", None),
        (HomeKey.ID, None, None),
        (HomeKey.ID, "pöst".encode(), None),
        (HomeKey.TARGET_KEY, b"k", b"k"),
        (b"\xff", b"k", b"\xff"),
        (HomeKey.UNKNOWN, b"k", None),
    ],
)
@pytest.mark.parametrize("headers_of", [firing_headers, in_a_run])
@pytest.mark.parametrize(
    "to_report",
    [
        {"acknowledgement": Acknowledgement(60_000, 10)},
        {"trigger": FixedDelay(60_000)},
        {"trigger": Backoff((60_000,))},
    ],
    ids=["acknowledged", "fixed delay", "backoff"],
)
def test_a_firing_to_complete_tells_the_key_of_its_schedule_unless_that_is_its_id(
    headers_of: Any, to_report: dict[str, Any], home: Any, key: bytes | None, told: bytes | None
) -> None:
    fired = entry([])
    schedule = replace(fired.schedule, target=Target("t", key), home_key=home)
    assert "schedule-key" not in dict(headers_of(Entry(schedule, fired.progress), AT, b"commands"))
    reported = Entry(replace(schedule, **to_report), fired.progress)
    headers = headers_of(reported, AT, b"commands")
    assert dict(headers).get("schedule-key") == told
    assert parse_firing(message(headers)).schedule_key == told


@pytest.mark.parametrize("broken", [None, b"x", b"-1", b"\xff", b"9" * 30])
def test_other_messages_are_refused_by_the_header_at_fault(broken: bytes | None) -> None:
    headers = [
        (name, broken if name == "schedule-due" else value)
        for name, value in firing_headers(entry([]), AT, b"commands")
    ]
    with pytest.raises(FormatError, match="schedule-due"):
        parse_firing(message(headers))
