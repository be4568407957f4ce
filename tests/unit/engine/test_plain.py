from __future__ import annotations

from aiokafka.structs import ConsumerRecord
from hypothesis import event, given
from hypothesis import strategies as st

from light_scheduler.engine import Limits, decide, plain_entry
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Entry, EventType, Headers, Outcome
from light_scheduler.wire.native import NATIVE
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


def general(record: ConsumerRecord, now: int) -> Entry | None:
    """Return what the general way makes of a command whose id is new, if that is an accepted schedule."""
    try:
        decision = decide(NATIVE.decode(record), None, now, LIMITS)
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
    plain = plain_entry(record, AT + 7, LIMITS)
    event("plain" if plain is not None else "not plain")
    if plain is not None:
        name, entry = plain
        expected = general(record, AT + 7)
        assert expected is not None
        assert name == identity_of(expected)
        assert entry == expected
        assert encode_entry(entry) == encode_entry(expected)


def test_a_new_schedule_of_an_instant_and_a_target_is_plain() -> None:
    user: Headers = [("content-type", b"text/plain"), ("trace", b"1"), ("trace", None)]
    record = record_of(b"a", b"payload", [*PLAIN, *user])
    expected = general(record, AT)
    assert expected is not None
    assert plain_entry(record, AT, LIMITS) == (identity_of(expected), expected)
