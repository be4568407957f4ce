"""Plain commands in the JSON form are read in one step to what the general way makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from hypothesis import event, given
from hypothesis import strategies as st

from light_scheduler.engine import Limits, decide, plain_id
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Headers, Outcome
from light_scheduler.wire.json_commands import JSON
from light_scheduler.wire.plain import new_state
from light_scheduler.wire.state import encode_entry

AT = 1_767_225_600_000
LIMITS = Limits(max_payload_bytes=20, max_id_bytes=9, internal_topics=frozenset({"history"}))

PLAIN: dict[str, Any] = {"trigger": {"at": AT}, "target": {"topic": "out"}}

texts = st.text(max_size=4)
instants = st.one_of(
    st.integers(0, 3 * 10**14),
    st.sampled_from([AT, str(AT), 1.8e12, True, None, "2026-01-01T00:00:00Z", -AT, "1767225600000 "]),
)
payloads = st.one_of(
    st.none(),
    st.just("text"),
    st.dictionaries(
        st.sampled_from(["text", "json", "base64", "typo"]),
        st.one_of(texts, st.sampled_from(["QQ==", "QR==", "Q Q=", None, 1, [1, {"a": None}], "\ud800"])),
        max_size=2,
    ),
)
targets = st.fixed_dictionaries(
    {"topic": st.sampled_from(["out", "out", "out", "history", "..", "", None, 7])},
    optional={
        "key": st.one_of(texts, st.none(), st.just(1)),
        "key_base64": st.just("QQ=="),
        "partition": st.just(2),
        "headers": st.one_of(
            st.none(),
            st.dictionaries(st.one_of(texts, st.just("schedule-at")), st.one_of(texts, st.none(), st.just(1))),
        ),
    },
)
commands = st.fixed_dictionaries(
    {"trigger": st.fixed_dictionaries({"at": instants}, optional={"every": st.just("5s")}), "target": targets},
    optional={
        "payload": payloads,
        "id": st.one_of(st.just("a"), texts, st.none()),
        "command": st.sampled_from(["schedule", "cancel", "pause", None, " schedule"]),
        "key": st.sampled_from(["a", None]),
        "tenant": st.just("acme"),
        "ttl": st.sampled_from(["5m", None]),
        "typo": st.just(1),
    },
)
headers = st.lists(
    st.sampled_from(
        [
            ("trace", b"1"),
            ("trace", None),
            ("content-type", b"application/json"),
            ("content-type", b"application/vnd.light-scheduler.command+json; charset=utf-8"),
            ("content-type", None),
            ("schedule-requested-by", b"{}"),
            ("schedule-ttl", b"5m"),
        ]
    ),
    max_size=2,
)
keys = st.one_of(st.just(b"a"), st.sampled_from([b"", b" a", b"a*", b"\xff", None, b"0123456789"]))


def record_of(key: bytes | None, value: bytes | None, headers: Headers = []) -> ConsumerRecord:  # noqa: B006
    return ConsumerRecord("commands", 3, 42, AT, 0, key, value, None, -1, -1, tuple(headers))


def short(record: ConsumerRecord, limits: Limits = LIMITS) -> tuple[str, bytes] | None:
    """Return the id and the state record that the short way makes of a command, if it takes it."""
    read = JSON.plain(record)
    if read is None or (id := plain_id(record, read, limits)) is None:
        return None
    return id, new_state(record, id, read, AT + 7)


def general(record: ConsumerRecord, limits: Limits = LIMITS) -> tuple[str, bytes] | None:
    """Return the same of the general way, if it accepts the command as a schedule."""
    try:
        decision = decide(JSON.decode(record), None, AT + 7, limits)
    except InvalidCommand:
        return None
    if decision.outcome is not Outcome.SCHEDULED or decision.entry is None:
        return None
    return decision.entry.schedule.id, encode_entry(decision.entry)


@given(keys, commands, headers, st.sampled_from([(", ", ": "), (",", ":")]))
def test_it_is_decided_as_the_general_way_decides_it(
    key: bytes | None, command: dict[str, Any], headers: Headers, separators: tuple[str, str]
) -> None:
    record = record_of(key, json.dumps(command, separators=separators).encode(), headers)
    plain = short(record)
    event("plain" if plain is not None else "not plain")
    if plain is not None:
        assert plain == general(record)


@given(keys, st.binary(max_size=4), st.integers(0, 200), st.integers(0, 200))
def test_damaged_json_is_never_read_otherwise(key: bytes | None, damage: bytes, begin: int, length: int) -> None:
    whole = json.dumps({**PLAIN, "payload": {"json": {"name": "caf\u00e9", "n": [1, 2.5]}}, "id": "a"}).encode()
    value = whole[:begin] + damage + whole[begin + length :]
    plain = short(record_of(key, value), Limits(100, 100))
    if plain is not None:
        assert plain == general(record_of(key, value), Limits(100, 100))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"id": "a", "command": "schedule"},
        {"payload": None},
        {"payload": {"text": "caf\u00e9"}},
        {"payload": {"json": {"a": [1, None]}}},
        {"payload": {"base64": "//79"}},
        {"target": {"topic": "out", "key": "k", "headers": {"x": "1", "y": None}}},
    ],
)
def test_what_producers_write_most_is_plain(more: dict[str, Any]) -> None:
    user: Headers = [("content-type", b"application/json"), ("trace", b"1")]
    record = record_of(b"a", json.dumps({**PLAIN, **more}).encode(), user)
    assert short(record) is not None
    assert short(record) == general(record)


@pytest.mark.parametrize(
    "payload", [b'{"json": "\xff"}', b'{"json": "\\ud800"}', b'{"json": [01]}', b'{"json": {"a": nul}}']
)
def test_json_that_is_no_json_is_left_to_be_refused(payload: bytes) -> None:
    record = record_of(b"a", b'{"trigger":{"at":%d},"target":{"topic":"out"},"payload":%b}' % (AT, payload))
    assert short(record) is None
    assert general(record) is None
