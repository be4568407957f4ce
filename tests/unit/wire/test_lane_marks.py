"""Commands that are passed on to another partition: the copy, its mark, and what is read from it."""

from __future__ import annotations

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord

from light_scheduler.errors import InvalidCommand
from light_scheduler.wire import record_id
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND
from light_scheduler.wire.fields import CONTROL_PREFIX
from light_scheduler.wire.lane_marks import (
    BULK_COUNT,
    BULK_MISSING,
    BULK_REACH,
    FLAT_REACH,
    FORWARDED_FROM,
    BulkReach,
    Count,
    Grown,
    Origin,
    ReachKind,
    as_sent,
    count_headers,
    forwarded,
    mark_of,
    require_spread,
    spread,
)
from light_scheduler.wire.native import NATIVE

AT = 1_767_225_600_000
HEADERS = (("schedule-command", b"cancel"), ("trace", b"\xff"), ("trace", None))


def record(*headers: tuple[str, bytes | None], partition: int = 3, timestamp: int = AT) -> ConsumerRecord:
    return ConsumerRecord("commands", partition, 42, timestamp, 0, b"k", b"\x00v", None, -1, -1, headers)


def test_a_copy_says_which_record_was_sent_and_is_otherwise_the_same() -> None:
    assert forwarded(record(*HEADERS)) == [*HEADERS, (FORWARDED_FROM, b"3:42:1767225600000")]


@pytest.mark.parametrize("timestamp", [AT, 0, -1])
def test_a_copy_reads_as_the_record_that_was_sent_at_its_own_place(timestamp: int) -> None:
    copy = record(*forwarded(record(*HEADERS, timestamp=timestamp)), partition=1)

    origin = mark_of(copy)

    assert origin == Origin(3, 42, timestamp)
    assert as_sent(copy, origin) == (b"k", b"\x00v", list(HEADERS), 1, 42, timestamp, (3, 42))


def test_a_copy_for_many_and_the_counts_that_answer_it_have_its_token() -> None:
    token = "0f" * 16

    assert mark_of(record(*forwarded(record(*HEADERS), token))) == Origin(3, 42, AT, token)
    assert mark_of(record(*count_headers(Count(42, 1, 7, token)))) == Count(42, 1, 7, token)


@pytest.mark.parametrize("reach", [BulkReach("flat", 12), BulkReach("tree", 12), BulkReach("part", 4)])
def test_a_copy_for_many_in_a_topic_that_has_grown_says_for_what_it_is(reach: BulkReach) -> None:
    token = "0f" * 16
    copy = record(*spread(record(*HEADERS), token, reach.kind, Grown("c", reach.partitions, b"secret")))
    origin = mark_of(copy)
    assert origin == Origin(3, 42, AT, token, reach=reach)
    assert as_sent(copy, origin).headers == list(HEADERS)
    require_spread(copy, "c", b"secret")
    for secret, changed in ((b"another", copy), (b"secret", another_token(copy)), (b"secret", twice(copy))):
        with pytest.raises(InvalidCommand):
            require_spread(changed, "c", secret)


def another_token(copy: ConsumerRecord) -> ConsumerRecord:
    headers = ((name, value.replace(b"0f", b"1f") if name == FORWARDED_FROM else value) for name, value in copy.headers)
    return record(*headers)


def twice(copy: ConsumerRecord) -> ConsumerRecord:
    return record(*copy.headers, copy.headers[-1])


MANY = [
    pytest.param((("schedule-command", b"cancel"), ("schedule-id", b"*")), None, id="headers"),
    pytest.param(((CONTENT_TYPE, JSON_COMMAND),), b'{"command": "cancel", "id": "*"}', id="json"),
]


@pytest.mark.parametrize(("headers", "value"), MANY)
@pytest.mark.parametrize(("kind", "is_read"), [("flat", True), ("tree", False), ("part", False)])
def test_a_worker_that_knows_no_reach_carries_out_what_is_for_all_and_can_report_nothing_of_the_rest(
    kind: ReachKind, is_read: bool, headers: tuple[tuple[str, bytes], ...], value: bytes | None
) -> None:
    """It reads what is left without the mark, whose form is that of a copy in a topic that has not grown."""
    sent = ConsumerRecord("c", 3, 42, AT, 0, b"k", value, None, -1, -1, headers)
    token = "0f" * 16
    copied = spread(sent, token, kind, Grown("c", 12, b"secret"))
    assert dict(copied)[FORWARDED_FROM] == f"3:42:{AT}:{token}".encode()
    rest = tuple(header for header in copied if header[0] != FORWARDED_FROM)
    copy = ConsumerRecord("c", 1, 9, AT, 0, b"k", value, None, -1, -1, rest)
    if is_read:
        assert NATIVE.decode(copy) == msgspec.structs.replace(NATIVE.decode(sent), partition=1, offset=9)
    else:
        with pytest.raises(InvalidCommand, match=BULK_REACH):
            NATIVE.decode(copy)


@pytest.mark.parametrize("has_grown", [True, False])
def test_a_reach_that_is_on_a_record_of_a_sender_is_not_copied(has_grown: bool) -> None:
    assert not FLAT_REACH.startswith(CONTROL_PREFIX)
    sent, token = record((FLAT_REACH, b"any"), *HEADERS), "0f" * 16
    copied = spread(sent, token, "flat", Grown("c", 12, b"secret")) if has_grown else forwarded(sent, token)
    assert (FLAT_REACH, b"any") not in copied
    assert isinstance(mark_of(record(*copied)), Origin)


@pytest.mark.parametrize("value", [None, b"", b"flat", b"flat12", b"all12:" + b"0" * 64, b"flat12:" + b"G" * 64])
@pytest.mark.parametrize("name", [BULK_REACH, FLAT_REACH])
def test_a_reach_that_no_lane_writes_is_refused(name: str, value: bytes | None) -> None:
    with pytest.raises(InvalidCommand, match=name):
        mark_of(record(*forwarded(record(*HEADERS), "0f" * 16), (name, value)))


def test_a_copy_has_the_generated_id_of_the_record_that_was_sent() -> None:
    target = ("schedule-target-topic", b"t")
    sent = ConsumerRecord("c", 3, 42, AT, 0, None, b"", None, -1, -1, (target,))
    copy = ConsumerRecord("c", 1, 9, AT + 5, 0, None, b"", None, -1, -1, tuple(forwarded(sent)))
    origin = mark_of(copy)

    assert isinstance(origin, Origin)
    assert NATIVE.decode(as_sent(copy, origin)).id == NATIVE.decode(sent).id == record_id(AT, 3, 42)


def test_a_record_that_was_sent_is_no_copy() -> None:
    assert mark_of(record(*HEADERS)) is None


@pytest.mark.parametrize(
    "value", [None, b"", b"3:42", b"3:42:x", b"a:b:c", b"-1:2:3", b"3:42:5:6", "³:1:1".encode(), b"\xff"]
)
def test_a_mark_that_no_lane_writes_is_refused(value: bytes | None) -> None:
    with pytest.raises(InvalidCommand, match=FORWARDED_FROM):
        mark_of(record((FORWARDED_FROM, value)))


@pytest.mark.parametrize("value", [b"1:2:3", b"1:2:3:", b"1:2:3:" + b"0" * 31, b"1:2:3:" + b"G" * 32])
def test_a_count_without_a_token_is_refused(value: bytes) -> None:
    with pytest.raises(InvalidCommand, match=BULK_COUNT):
        mark_of(record((BULK_COUNT, value)))


def test_a_count_may_name_partitions_that_are_missing() -> None:
    count = Count(7, 1, 3, "0" * 32, (2, 11))
    headers = count_headers(count)
    assert headers == [(BULK_COUNT, b"7:1:3:" + b"0" * 32), (BULK_MISSING, b"2,11")]
    assert mark_of(record(*headers)) == count
    assert not any(name.startswith(CONTROL_PREFIX) for name, _ in headers[1:]), "older workers count all the same"


@pytest.mark.parametrize("value", [None, b"", b"2,", b"-1", b"2;3", b"\xff"])
def test_missing_partitions_that_no_lane_writes_are_refused(value: bytes | None) -> None:
    with pytest.raises(InvalidCommand, match=BULK_MISSING):
        mark_of(record(*count_headers(Count(7, 1, 3, "0" * 32)), (BULK_MISSING, value)))
