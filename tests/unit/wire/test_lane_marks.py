"""Commands that are passed on to another partition: the copy, its mark, and what is read from it."""

from __future__ import annotations

import pytest
from aiokafka.structs import ConsumerRecord

from light_scheduler.errors import InvalidCommand
from light_scheduler.wire import record_id
from light_scheduler.wire.lane_marks import (
    BULK_COUNT,
    FORWARDED_FROM,
    BulkReach,
    Count,
    Grown,
    Origin,
    as_sent,
    count_headers,
    forwarded,
    mark_of,
    require_relayed,
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
    mark = dict(copy.headers)[FORWARDED_FROM]
    assert mark.rpartition(b":")[0] == f"3:42:{AT}:{token}:{reach.kind}{reach.partitions}".encode()
    assert mark_of(copy) == Origin(3, 42, AT, token, reach=reach)
    require_relayed(copy, "c", b"secret")
    with pytest.raises(InvalidCommand):
        require_relayed(copy, "c", b"another")


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
