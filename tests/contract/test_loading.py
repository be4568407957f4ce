"""Filling a table from its changelog: in memory and in RocksDB, the same as applying it record by record."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.counting import check_counts
from support.tables import by_due, by_id
from support.tries import tries

from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.model import NEVER, Awaited, Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import BulkLoad, MemoryStore, Overlay, ScheduleTable, Store, layout, loading
from light_scheduler.tables.cell_changes import CellChanges
from light_scheduler.tables.count_rows import CHANGES
from light_scheduler.tables.counts import GROUPS
from light_scheduler.tables.placing import Placing
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.store import Changes, Loaded
from light_scheduler.wire.state import (
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    decode_standing,
    encode_entry,
    encode_position,
    encode_progress,
    identity,
    identity_of,
)

AT = 1_767_225_600_000


class Record(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


def entry(id: str, due: int = AT, *, priority: int = 100, wake: int | None = None, **fields: Any) -> Entry:
    schedule = Schedule(
        "acme", id, 1, Once(due), Target("t"), b"x", [("h", None)], 0, 7, AT, priority=priority, **fields
    )
    return Entry(schedule, Progress(due, 7, wake=wake))


def key_of(id: str) -> bytes:
    return SCHEDULE_KIND + identity("acme", id)


def numbered(log: Sequence[tuple[bytes | None, bytes | None]]) -> list[Record]:
    return [Record(offset, key, value) for offset, (key, value) in enumerate(log)]


@pytest.fixture(params=[False, True], ids=["in steps", "by files"])
def may_block(request: pytest.FixtureRequest) -> bool:
    """Whether a load may block, which both are held to the same by these tests."""
    return bool(request.param)


def load(table: ScheduleTable, records: Sequence[Record], *, may_block: bool) -> None:
    """Take all records, and write whenever enough are there."""
    bulk = BulkLoad(table, may_block=may_block)
    for record in records:
        bulk.add([record])
        if bulk.is_full:
            for _ in bulk.write(changelog_offset=record.offset + 1):
                pass
    for _ in bulk.write(changelog_offset=len(records)):
        pass


def rows(store: Store) -> dict[bytes, bytes]:
    """Return what a store has besides its checkpoint and its counts; groups may be numbered in any order."""
    found = dict(store.scan(b"", b"\xff"))
    for key, row in found.items():
        if key.startswith(layout.PRIMARY):
            found[key] = row[layout.CELL_BYTES :]
    return {key: row for key, row in found.items() if key != layout.CHECKPOINT_KEY and key[:1] not in (GROUPS, CHANGES)}


ids = st.sampled_from(["a", "a/b", "b", "ö", "zzz"])
entries = st.builds(entry, ids, st.integers(0, 3).map(lambda n: AT + n * 40_000), priority=st.sampled_from([0, 100]))
changes = st.one_of(
    entries.map(lambda each: (SCHEDULE_KIND + identity_of(each), encode_entry(each))),
    ids.map(lambda id: (key_of(id), None)),
    st.tuples(ids, st.integers(0, 3)).map(
        lambda pair: (PROGRESS_KIND + identity("acme", pair[0]), encode_progress(Progress(AT + pair[1], 9, 2)))
    ),
    ids.map(lambda id: (PROGRESS_KIND + identity("acme", id), None)),
    st.integers(0, 99).map(lambda offset: (POSITION_KEY, encode_position(offset))),
)


@pytest.mark.parametrize("kind", ["memory", "rocks"])
@pytest.mark.parametrize("chunk", [1, 3, 1_000])
@settings(max_examples=tries(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=st.lists(changes, max_size=25))
def test_a_loaded_table_is_what_replaying_record_by_record_makes(
    kind: str, chunk: int, may_block: bool, log: list[tuple[bytes, bytes | None]]
) -> None:
    replayed = ScheduleTable(MemoryStore())
    for record in numbered(log):
        overlay = Overlay(replayed)
        overlay.replay(record.key or b"", record.value)
        overlay.apply(changelog_offset=record.offset + 1, complete_at=AT)
    limits: dict[str, Any] = {"CHUNK_RECORDS": chunk, "FILES_RECORDS": chunk, "STEP_RECORDS": 2}
    with tempfile.TemporaryDirectory() as folder, patch.multiple(loading, **limits):
        table = ScheduleTable(MemoryStore() if kind == "memory" else RocksStore(Path(folder)))
        load(table, numbered(log), may_block=may_block)

        assert rows(table.store) == rows(replayed.store)
        check_counts(table)
        check_counts(replayed)
        assert table.checkpoint == msgspec.structs.replace(replayed.checkpoint, complete_at=0)
        table.close()


@pytest.mark.parametrize("wake", [None, AT - 5, AT + 90_000])
@pytest.mark.parametrize("priority", [0, 100, 255])
@pytest.mark.parametrize("labels", [None, {"team": "a"}])
def test_a_place_is_what_the_whole_record_says(wake: int | None, priority: int, labels: dict[str, str] | None) -> None:
    each = entry("a", AT + 1, priority=priority, wake=wake, labels=labels)
    standing = decode_standing(encode_entry(each))
    assert standing == (each.progress.wakes_at, priority, 7, each.schedule.target.topic, each.progress.state)
    counted = CellChanges(ScheduleTable(MemoryStore()).counts)
    index_key, cell = Placing(counted).place(identity_of(each), encode_entry(each))
    assert index_key == layout.index_key(each, identity_of(each))
    assert cell == counted.cell(each, index_key)


def test_a_record_from_before_there_were_priorities_stands_in_the_middle() -> None:
    head = list(msgspec.to_builtins(entry("a").schedule, builtin_types=(bytes,)))[:10]
    standing = decode_standing(b"\x01" + msgspec.msgpack.encode([head, [AT, 3]]))
    assert standing == (AT, 100, 3, entry("a").schedule.target.topic, "pending")


@pytest.mark.parametrize("due", [AT, NEVER])
@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("awaited", [(), (Awaited(AT, 1, 1, AT + 1, AT),)])
def test_the_state_of_a_record_is_that_of_its_progress(due: int, paused: bool, awaited: tuple[Awaited, ...]) -> None:
    progress = Progress(due, 3, wake=AT + 1, paused=paused, awaited=awaited)
    *_, state = decode_standing(encode_entry(Entry(entry("a").schedule, progress)))
    assert state == progress.state


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (key_of("a"), b"\x63later", FormatTooNew),
        (key_of("a"), b"\x01\xc1", FormatError),
        (b"\x07?", b"\x01", FormatError),
        (None, b"", FormatError),
        (POSITION_KEY, b"\x01?", FormatError),
    ],
)
def test_what_cannot_be_read_is_refused(
    key: bytes | None, value: bytes, error: type[FormatError], may_block: bool
) -> None:
    with pytest.raises(error):
        load(ScheduleTable(MemoryStore()), [Record(0, key, value)], may_block=may_block)


def opened_after_a_crash(path: Path, copy: Path) -> ScheduleTable:
    """Open what a process that ended at this moment would leave."""
    shutil.copytree(path, copy)
    return ScheduleTable(RocksStore(copy))


async def test_nothing_counts_before_a_load_is_finished_and_everything_after_it(
    tmp_path: Path, may_block: bool
) -> None:
    log = numbered([(key_of(f"{number:05}"), encode_entry(entry(f"{number:05}"))) for number in range(2_000)])
    table = ScheduleTable(RocksStore(tmp_path / "store"))
    assert table.is_new
    assert not table.is_cut_short
    bulk = BulkLoad(table, may_block=may_block)
    bulk.add(log)
    for _ in bulk.write(changelog_offset=2_000):
        pass
    await table.store.flush()  # as RocksDB does by itself when its memory is full

    half = opened_after_a_crash(tmp_path / "store", tmp_path / "half")
    assert half.is_cut_short
    half.close()

    await bulk.finish(complete_at=AT)
    whole = opened_after_a_crash(tmp_path / "store", tmp_path / "whole")
    assert not whole.is_new
    assert not whole.is_cut_short
    assert whole.checkpoint == table.checkpoint
    assert whole.pending == 2_000
    assert len(list(by_due(whole, "acme"))) == 2_000
    whole.close()
    table.close()


async def test_a_load_that_was_broken_off_within_a_chunk_can_be_done_again(tmp_path: Path, may_block: bool) -> None:
    log = numbered([(key_of(str(number)), encode_entry(entry(str(number)))) for number in range(10)])
    table = ScheduleTable(RocksStore(tmp_path))
    with patch.object(loading, "STEP_RECORDS", 2):
        for steps in range(1, 20):
            bulk = BulkLoad(table, may_block=may_block)
            bulk.add(log)
            writing = bulk.write(changelog_offset=10)
            for _ in range(steps):
                next(writing, None)
            del writing  # it ends where it is
    assert table.pending == 10
    check_counts(table)
    await bulk.finish(complete_at=AT)
    assert len(list(by_due(table, "acme"))) == len(list(by_id(table, "acme"))) == 10
    table.close()


async def test_a_load_goes_on_where_another_one_stopped(tmp_path: Path, may_block: bool) -> None:
    log = numbered([(key_of(str(number)), encode_entry(entry(str(number)))) for number in range(10)])
    table = ScheduleTable(RocksStore(tmp_path))
    first = BulkLoad(table, may_block=may_block)
    first.add(log[:4])
    for _ in first.write(changelog_offset=4):
        pass
    first.add(log[4:6])  # gathered, never written

    assert table.is_new
    second = BulkLoad(table, may_block=may_block)
    second.add(log[table.checkpoint.changelog_offset :])
    for _ in second.write(changelog_offset=10):
        pass
    await second.finish(complete_at=AT)
    assert table.pending == len(list(by_due(table, "acme"))) == 10
    table.close()


def test_a_load_that_may_not_block_makes_no_files_and_writes_no_more_than_a_step_at_a_time() -> None:
    class Watched(MemoryStore):
        written: ClassVar[list[int]] = []

        def write(self, changes: Changes) -> None:
            self.written.append(sum(key.startswith(layout.PRIMARY) for key in changes))
            super().write(changes)

        def load(self, families: Sequence[Loaded]) -> Iterator[None]:
            raise AssertionError("this may block")

    log = numbered([(key_of(str(number)), encode_entry(entry(str(number)))) for number in range(10)])
    table = ScheduleTable(Watched())
    with patch.object(loading, "STEP_RECORDS", 3):
        load(table, log, may_block=False)
    assert Watched.written == [3, 3, 3, 1]
    assert table.pending == 10
