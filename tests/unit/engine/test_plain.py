from __future__ import annotations

import re
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from hypothesis import event, given
from hypothesis import strategies as st
from support.foreign import FOREIGN, etf1_headers, karafka_headers, skyuk_avro, skyuk_json

from light_scheduler.engine import Limits, decide, plain_id
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Entry, EventType, Headers, Outcome
from light_scheduler.wire.dialect import Dialect
from light_scheduler.wire.dialects.named import dialect_named
from light_scheduler.wire.native import NATIVE
from light_scheduler.wire.plain import IDENTITY, new_state
from light_scheduler.wire.state import encode_entry, identity_of

AT = 1_767_225_600_000
LIMITS = Limits(
    max_payload_bytes=20, max_id_bytes=9, internal_topics=frozenset({"history"}), answers_only=frozenset({"answers"})
)

PLAIN: Headers = [("schedule-at", b"%d" % AT), ("schedule-target-topic", b"out")]

instants = st.one_of(
    st.integers(0, 3 * 10**14).map(lambda number: b"%d" % number),
    st.sampled_from([b"0767225600000", b"1767225600000", b"2026-01-01T00:00:00Z", b"1767225600_00", b"\xff", b""]),
    st.none(),
)
topics = st.sampled_from([b"out", b"history", b"answers", b"..", b"", b"\xff", None])
user_headers = st.sampled_from(
    [
        ("trace", b"1"),
        ("trace", None),
        ("content-type", b"text/plain"),
        ("content-type", None),
        ("content-type", b" Application/vnd.light-scheduler.command+JSON ; v=1"),
        ("schedule-ttl", b"5m"),
        ("schedule-tenant", b"acme"),
        ("schedule-command", b"cancel"),
        ("schedule-typo", b""),
    ]
)
headers = st.lists(
    st.one_of(
        st.tuples(st.just("schedule-at"), instants), st.tuples(st.just("schedule-target-topic"), topics), user_headers
    ),
    max_size=5,
)
texts = st.one_of(st.text(max_size=5).map(str.encode), st.binary(max_size=10), st.none())
payloads = st.one_of(st.binary(max_size=24), st.none())


def record_of(key: bytes | None, value: bytes | None, headers: Headers, offset: int = 42) -> ConsumerRecord:
    return ConsumerRecord("commands", 3, offset, AT, 0, key, value, None, -1, -1, tuple(headers))


def short(
    record: ConsumerRecord, now: int, dialect: Dialect = NATIVE, limits: Limits = LIMITS
) -> tuple[str, bytes] | None:
    """Return the id and the state record that the short way makes of a command, if it takes it."""
    try:
        given = dialect.plain(record)
    except InvalidCommand as error:
        with pytest.raises(InvalidCommand, match=re.escape(str(error))):
            dialect.decode(record)
        return None
    if given is None or (id := plain_id(record, given, limits)) is None:
        return None
    return id, new_state(record, id, given, now)


def general(record: ConsumerRecord, now: int, dialect: Dialect = NATIVE) -> Entry | None:
    """Return what the general way makes of a command whose id is new, if that is an accepted schedule."""
    try:
        decision = decide(dialect.decode(record), None, now, LIMITS)
    except InvalidCommand:
        return None
    if decision.outcome is not Outcome.SCHEDULED:
        return None
    assert decision.event is EventType.SCHEDULED
    assert decision.subject is decision.entry
    assert decision.reason is None
    return decision.entry


@given(st.booleans(), headers, texts, payloads, st.integers(0, 2**40))
def test_a_plain_command_is_decided_as_the_general_way_decides_it(
    is_complete: bool, more: Headers, key: bytes | None, payload: bytes | None, offset: int
) -> None:
    record = record_of(key, payload, [*PLAIN, *more] if is_complete else more, offset)
    plain = short(record, AT + 7)
    event("plain" if plain is not None else "not plain")
    if plain is not None:
        expected = general(record, AT + 7)
        assert expected is not None
        assert plain == (expected.schedule.id, encode_entry(expected))
        assert identity_of(expected) == IDENTITY + (key or b"")


def test_a_new_schedule_of_an_instant_and_a_target_is_plain() -> None:
    user: Headers = [("content-type", b"text/plain"), ("trace", b"1"), ("trace", None)]
    record = record_of(b"a", b"payload", [*PLAIN, *user])
    expected = general(record, AT)
    assert expected is not None
    assert short(record, AT) == ("a", encode_entry(expected))


seconds = st.one_of(
    st.integers(AT // 1_000 - 20, AT // 1_000 + 20).map(lambda number: b"%d" % number),
    st.sampled_from(
        [b"0000000001", b"9999999999", b"1767225600000", b"17672256_0", b"+1767225600", b"\xff", b"", None]
    ),
)
foreign_headers = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["scheduler-epoch", "schedule_target_epoch"]), seconds),
        st.tuples(st.sampled_from(["scheduler-target-topic", "schedule_target_topic"]), topics),
        st.tuples(st.sampled_from(["scheduler-target-key", "schedule_target_key"]), texts),
        st.tuples(st.just("schedule_source_type"), st.sampled_from([b"schedule", b"cancel", b"tombstone", b"x", None])),
        st.tuples(st.just("schedule_schema_version"), st.sampled_from([b"1.0.0", b"0.9.0", b"1.10.0", b"", None])),
        st.tuples(st.just("schedule_target_partition"), st.sampled_from([b"2", b"-1", b"", None])),
        st.tuples(st.just("schedule_target_partition_key"), texts),
        user_headers,
    ),
    max_size=4,
)
keys = st.one_of(texts, st.sampled_from([b"a", b" ", b" a", b"base64:/w==", b"a*", b"\xe2\x80\x8b", b"0123456789"]))
times = st.sampled_from([-1, 0, AT - 10_001, AT - 999, AT, AT + 999, AT + 1_000, AT + 10_000, AT + 10_001, AT + 20_000])
some_topic = st.sampled_from(["out", "out", "out", "history", "..", ""])
scheduled = st.one_of(
    st.builds(skyuk_json, st.integers(AT - 9, AT + 99), st.binary(max_size=24), topic=some_topic),
    st.builds(skyuk_avro, st.integers(AT - 9, AT + 99), st.binary(max_size=24), topic=some_topic),
    payloads,
)


def foreign_record(key: bytes | None, value: bytes | None, headers: Any, timestamp: int = AT) -> ConsumerRecord:
    return ConsumerRecord("commands", 3, 42, timestamp, 0, key, value, None, -1, -1, tuple(headers))


@pytest.mark.parametrize("name", ["etf1", "karafka", "skyuk", "light4j", "json"])
@given(data=st.data())
def test_a_plain_command_of_another_scheduler_is_decided_as_the_general_way_decides_it(
    name: str, data: st.DataObject
) -> None:
    dialect = dialect_named(name)
    given = {"etf1": etf1_headers(AT, "out"), "karafka": karafka_headers(AT, topic="out")}.get(name, [])
    more = data.draw(st.just([]) | foreign_headers)
    kept = [header for header in given if header[0] not in {name for name, _ in more} or data.draw(st.booleans())]
    key, timestamp = data.draw(st.just(b"a") | keys), data.draw(st.just(AT) | times)
    record = foreign_record(key, data.draw(scheduled if name == "skyuk" else payloads), [*kept, *more], timestamp)
    plain = short(record, AT + 7, dialect)
    event(f"{name}: {'plain' if plain is not None else 'not plain'}")
    if plain is not None:
        expected = general(record, AT + 7, dialect)
        assert expected is not None
        assert plain == (expected.schedule.id, encode_entry(expected))
        assert identity_of(expected) == IDENTITY + (key or b"")


@pytest.mark.parametrize("name", ["etf1", "karafka", "skyuk, JSON", "skyuk, Avro"])
def test_what_another_scheduler_s_producers_write_is_plain(name: str) -> None:
    dialect = dialect_named(FOREIGN[name].dialect)
    record = FOREIGN[name].schedule(AT + 1_000, b"payload", 42, AT)
    limits = Limits(100, 100)
    plain = short(record, AT, dialect, limits)
    expected = decide(dialect.decode(record), None, AT, limits).entry
    assert expected is not None
    assert plain == (expected.schedule.id, encode_entry(expected))
