from __future__ import annotations

import gc
import struct
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.kafka import fetching
from light_scheduler.kafka.decompression import MAX_UNPACKED_BYTES
from light_scheduler.kafka.fetching import (
    HEADER_BYTES,
    MAX_AT_ONCE,
    MAX_AT_ONCE_BYTES,
    PART,
    UNREADABLE,
    BatchReader,
    CommandReader,
    StateReader,
    Unreadable,
)
from light_scheduler.model import Headers

TP = TopicPartition("commands", 2)
AT = 1_767_225_600_000
CONTROL, TRANSACTIONAL = 0x20, 0x10
ABORT, COMMIT = struct.pack(">HH", 0, 0), struct.pack(">HH", 0, 1)


def batch(first: int, *records: tuple[bytes | None, bytes | None, Headers], producer: int = 7, flags: int = 0) -> bytes:
    """Write a record batch from an offset on, as a broker has it."""
    builder = DefaultRecordBatchBuilder(2, 0, flags & TRANSACTIONAL, producer, 0, 0, 1 << 20)
    for number, (key, value, headers) in enumerate(records):
        builder.append(number, AT + number, key, value, headers)
    data = builder.build()
    struct.pack_into(">q", data, 0, first)
    (attributes,) = struct.unpack_from(">h", data, 21)
    struct.pack_into(">h", data, 21, attributes | flags)
    struct.pack_into(">I", data, 17, calc_crc32c(data[21:]))
    return bytes(data)


def fetched(data: bytes, position: int, aborted: list[tuple[int, int]]) -> PartitionRecords:
    return PartitionRecords(TP, MemoryRecords(data), aborted, position, None, None, True, READ_COMMITTED)


def fields(record: Any) -> tuple[Any, ...]:
    return record.partition, record.offset, record.timestamp, record.key, record.value, list(record.headers)


content = st.tuples(
    st.none() | st.binary(max_size=3),
    st.none() | st.binary(max_size=3),
    st.lists(st.tuples(st.text("ab", max_size=2), st.none() | st.binary(max_size=2)), max_size=2),
)
kinds = st.sampled_from(["plain", "transactional", "abort", "commit"])


logs = st.lists(st.tuples(kinds, st.integers(1, 2), st.lists(content, min_size=1, max_size=4)), max_size=6)
Log = list[tuple[str, int, list[tuple[bytes | None, bytes | None, Headers]]]]


def written_and_end(log: Log) -> tuple[bytes, int]:
    written, end = b"", 0
    for kind, producer, records in log:
        if kind in ("abort", "commit"):
            marker = ABORT if kind == "abort" else COMMIT
            written += batch(end, (marker, b"", []), producer=producer, flags=CONTROL | TRANSACTIONAL)
            end += 1
        else:
            flags = TRANSACTIONAL if kind == "transactional" else 0
            written += batch(end, *records, producer=producer, flags=flags)
            end += len(records)
    return written, end


@given(logs, st.data())
def test_commands_are_what_aiokafka_reads_less_what_it_leaves_out(log: Log, data: st.DataObject) -> None:
    written, end = written_and_end(log)
    position = data.draw(st.integers(0, end))
    aborted = data.draw(st.lists(st.tuples(st.integers(1, 2), st.integers(0, end)), max_size=2))
    theirs, reader = fetched(written, position, aborted), CommandReader(fetched(written, position, aborted))
    expected = [fields(record) for record in theirs]
    assert [fields(command) for command in reader] == expected
    assert reader.next_fetch_offset == theirs.next_fetch_offset
    ending = data.draw(st.integers(position, end))
    before = CommandReader(fetched(written, position, aborted), ending)
    taken = [fields(command) for command in before]
    assert taken == expected[: len(taken)]
    assert all(record.offset >= ending for record in list(fetched(written, position, aborted))[len(taken) :])
    assert ending <= before.next_fetch_offset <= max(theirs.next_fetch_offset, ending)


@given(logs, st.integers(1, 3), st.integers(1, 4), st.data())
def test_commands_that_are_taken_in_parts_are_the_same_as_all_at_once(
    log: Log, part: int, most: int, data: st.DataObject
) -> None:
    written, end = written_and_end(log)
    position = data.draw(st.integers(0, end))
    aborted = data.draw(st.lists(st.tuples(st.integers(1, 2), st.integers(0, end)), max_size=2))
    theirs, reader = fetched(written, position, aborted), CommandReader(fetched(written, position, aborted))
    expected = [fields(record) for record in theirs]
    commands: list[tuple[Any, ...]] = []
    with patch.object(fetching, "PART", part), patch.object(fetching, "MAX_AT_ONCE", most):
        while not reader.is_done:
            taken = reader.take()
            assert len(taken) < most + part
            if not reader.is_done:
                assert reader.next_fetch_offset == taken[-1].offset + 1
            commands += map(fields, taken)
    assert commands == expected
    assert reader.next_fetch_offset == theirs.next_fetch_offset


def test_no_batch_is_read_that_begins_at_the_end_or_after_it() -> None:
    data = b"".join(batch(2 * number, (b"a", b"", []), (b"b", b"", [])) for number in range(3))
    reader = CommandReader(fetched(data, 1, []), 3)
    assert [command.offset for command in reader] == [1, 2, 3]
    assert reader.next_fetch_offset == 4
    assert reader.is_done


@pytest.mark.parametrize("part", [1, 2, PART])
def test_a_header_name_that_is_not_utf_8_hides_its_record_and_nothing_before_it(
    monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(fetching, "PART", part)
    bad = batch(4, (b"a", b"1", []), (b"b", b"2", [("name", b"")]), (b"c", b"3", []))
    data = batch(3, (b"z", b"0", [])) + resealed(bad, lambda content: content.replace(b"name", b"\xff\xffme"))
    reader = CommandReader(fetched(data, 3, []))
    assert [(command.offset, command.key, command.headers == UNREADABLE) for command in reader] == [
        (3, b"z", False),
        (4, b"a", False),
        (5, None, True),
    ]
    assert reader.next_fetch_offset == 6


def test_a_batch_with_a_wrong_checksum_is_an_error() -> None:
    good, bad = batch(0, (b"a", b"1", [])), bytearray(batch(1, (b"b", b"2", [])))
    bad[-1] ^= 1
    with pytest.raises(CorruptRecordException):
        list(CommandReader(fetched(good + bytes(bad), 0, [])))


def resealed(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change the content of a batch and give it the checksum of what it holds then."""
    content = change(data[21:])
    return data[:17] + struct.pack(">I", calc_crc32c(content)) + content


@pytest.mark.parametrize("reader", [CommandReader, StateReader, partial(CommandReader, end=5)])
def test_what_a_fetch_brought_is_let_go_of_without_the_garbage_collector(
    reader: Callable[[PartitionRecords], BatchReader],
) -> None:
    records = fetched(batch(3, (b"a", b"1", []), (b"b", b"2", [])) + batch(5, (b"c", b"3", [])), 4, [])
    kept = weakref.ref(records)
    gc.disable()
    try:
        keys = [record.key for record in reader(records)]
        assert keys in ([b"b"], [b"b", b"c"])
        del records
        assert kept() is None
    finally:
        gc.enable()


CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def packed(first: int, codec: str, *values: bytes) -> bytes:
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, 0, 1 << 30)
    for number, value in enumerate(values):
        builder.append(number, AT, b"k", value, [])
    data = bytes(builder.build())
    return struct.pack(">q", first) + data[8:]


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_unpacks_to_too_much_is_refused_by_its_offsets_and_what_follows_is_read(codec: str) -> None:
    zeros = bytes(MAX_UNPACKED_BYTES // 2)
    bomb = packed(1, codec, zeros, zeros, b"")
    data = packed(0, codec, b"before") + bomb + packed(4, codec, b"after")
    reader = CommandReader(fetched(data, 0, []))

    before, refused, after = list(reader)

    assert (before.offset, before.value) == (0, b"before")
    assert (refused.offset, refused.key, refused.value) == (3, None, None)
    ((name, reason),) = refused.headers
    assert name == "schedule-unreadable"
    assert reason.startswith(b"offsets 1 to 3: a compressed batch of ")
    assert (after.offset, after.value) == (4, b"after")
    assert reader.next_fetch_offset == 5


@pytest.mark.parametrize("codec", CODECS)
def test_a_large_batch_within_the_bound_is_read(codec: str) -> None:
    value = bytes(MAX_UNPACKED_BYTES - (1 << 20))
    (command,) = CommandReader(fetched(packed(0, codec, value), 0, []))
    assert command.value == value


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_cannot_be_unpacked_stops_nobody(codec: str) -> None:
    damaged = resealed(packed(1, codec, b"x" * 1_000), lambda content: content[:40] + b"nonsense" + content[48:])
    data = packed(0, codec, b"before") + damaged + packed(2, codec, b"after")
    offsets = [
        (command.offset, isinstance(command.headers, Unreadable)) for command in CommandReader(fetched(data, 0, []))
    ]
    assert offsets == [(0, False), (1, True), (2, False)]


def test_no_more_of_a_fetch_is_unpacked_at_a_time_than_memory_is_for() -> None:
    data = b"".join(packed(number, "zstd", bytes(MAX_AT_ONCE_BYTES // 2)) for number in range(5))
    reader = CommandReader(fetched(data, 0, []))
    assert [[command.offset for command in reader] for _ in range(4)] == [[0, 1], [2, 3], [4], []]
    assert reader.next_fetch_offset == 5


def test_no_more_commands_are_taken_at_a_time_than_memory_is_for_though_one_batch_has_them_all() -> None:
    """A command takes hundreds of bytes, however few it was compressed to."""
    count = 2 * MAX_AT_ONCE + PART // 2
    data = packed(5, "zstd", *[b""] * count) + packed(5 + count, "zstd", b"after")
    reader = CommandReader(fetched(data, 7, []))
    offsets: list[int] = []
    while not reader.is_done:
        taken = reader.take()
        assert len(taken) < MAX_AT_ONCE + PART
        offsets += [command.offset for command in taken]
        assert reader.next_fetch_offset == offsets[-1] + 1
    assert offsets == list(range(7, 5 + count + 1))


def test_headers_count_for_what_they_take_in_memory_not_for_their_few_bytes() -> None:
    builder = DefaultRecordBatchBuilder(2, CODECS["zstd"], 0, -1, -1, 0, 1 << 30)
    most = MAX_AT_ONCE_BYTES // HEADER_BYTES // PART + 1
    for number in range(2 * PART + 1):
        builder.append(number, AT, None, None, [("", None)] * most)
    reader = CommandReader(fetched(bytes(builder.build()), 0, []))
    taken = [reader.take() for _ in range(3)]
    assert [len(commands) for commands in taken] == [PART, PART, 1]
    assert [commands.size for commands in taken] == [
        PART * most * HEADER_BYTES,
        PART * most * HEADER_BYTES,
        most * HEADER_BYTES,
    ]
