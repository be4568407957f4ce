"""The RocksDB store: what outlives its process, loads, scans, and what it keeps in memory."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from rocksdict import Options
from support.waiting import eventually

from light_scheduler.tables import rocks
from light_scheduler.tables.rocks import RocksStore

from .test_rocks_trouble import rows


def test_contents_outlive_the_store(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "deep" / "down")
    store.write({b"a": b"1", b"b": b"2"})
    store.write({b"a": None, b"c": b""})
    store.close()
    again = RocksStore(tmp_path / "deep" / "down")
    assert list(again.scan(b"", b"\xff")) == [(b"b", b"2"), (b"c", b"")]
    assert (again.get(b"a"), again.get(b"b"), again.get(b"c")) == (None, b"2", b"")
    again.close()


def after_a_crash(folder: Path, copy: Path) -> dict[bytes, bytes]:
    """Return what a process that ended at this moment would leave in a folder."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    store = RocksStore(copy)
    try:
        return dict(store.scan(b"", b"\xff"))
    finally:
        store.close()


async def test_what_is_flushed_survives_a_crash_and_nothing_else_is_written_to_a_log(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    store.write({b"a": b"1"})
    assert after_a_crash(tmp_path / "store", tmp_path / "copy") == {}
    await store.flush()
    store.write({b"a": None, b"b": b"2"})
    assert after_a_crash(tmp_path / "store", tmp_path / "copy") == {b"a": b"1"}
    store.close()
    assert after_a_crash(tmp_path / "store", tmp_path / "copy") == {b"b": b"2"}


async def test_a_write_long_after_the_last_flush_is_flushed_with_all_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(rocks, "time", SimpleNamespace(monotonic=lambda: now))
    store = RocksStore(tmp_path / "store")
    store.write({b"a": b"1"})
    now = rocks.FLUSH_S + 1
    store.write({b"b": b"2"})
    await eventually(store._db.live_files)
    store.write({b"c": b"3"})
    assert after_a_crash(tmp_path / "store", tmp_path / "copy") == {b"a": b"1", b"b": b"2"}
    store.close()


async def test_no_flush_begins_because_of_the_time_where_it_would_wait_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(rocks, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(rocks, "MOST_FILES", 2)
    store = RocksStore(tmp_path / "store")
    for number in range(rocks.MOST_FILES):
        store.write({b"%d" % number: b""})
        await store.flush()
    now = rocks.FLUSH_S + 1
    store.write({b"a": b"1"})
    await store.flush()  # had one begun, there would be nothing left to flush but a file more for it
    assert store._db.property_int_value("rocksdb.num-entries-active-mem-table") == 0
    assert len(store._db.live_files()) == rocks.MOST_FILES + 1
    now += rocks.FLUSH_S + 1
    store.write({b"b": b"2"})
    assert store._db.property_int_value("rocksdb.num-entries-active-mem-table") == 1
    store._db.compact_range(None, None)
    store.write({b"c": b"3"})
    await eventually(lambda: store._db.property_int_value("rocksdb.num-entries-active-mem-table") == 0)
    store.close()


async def test_no_flush_begins_because_of_the_time_while_a_full_table_in_memory_is_still_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RocksDB would have the write wait, on the event loop, until it has room for one more table in memory."""
    now, options = 0.0, rocks._options()
    monkeypatch.setattr(rocks, "time", SimpleNamespace(monotonic=lambda: now))
    options.set_write_buffer_size(1 << 20)
    options.set_max_write_buffer_number(4)
    options.set_min_write_buffer_number_to_merge(3)  # so a full one stays in memory
    monkeypatch.setattr(rocks, "_options", lambda: options)
    store = RocksStore(tmp_path / "store")

    def full_tables() -> int | None:
        return store._db.property_int_value("rocksdb.num-immutable-mem-table")

    while not full_tables():
        store.write({os.urandom(8): os.urandom(1 << 15)})
    now = rocks.FLUSH_S + 1
    for _ in range(3):
        store.write({os.urandom(8): b"late"})
        await asyncio.sleep(0.05)
    assert (full_tables(), store._db.live_files()) == (1, [])
    await store.flush()
    assert full_tables() == 0
    now += rocks.FLUSH_S + 1
    store.write({b"a": b"1"})
    await eventually(lambda: store._db.property_int_value("rocksdb.num-entries-active-mem-table") == 0)
    store.close()


def test_loaded_rows_are_there_together_after_the_last_step_and_survive_a_crash(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    store.write({b"a": b"lost", b"z": b"lost"})
    families = [[(b"q%05d" % n, b"1") for n in range(20_000, 0, -1)], [], [(b"r", b"2")]]
    for _ in store.load(families):
        assert store.get(b"q00001") is None
        assert store.get(b"r") is None
    loaded = dict(families[0] + families[2])
    assert dict(store.scan(b"q", b"s")) == loaded
    assert after_a_crash(tmp_path / "store", tmp_path / "copy") == loaded
    assert not list((tmp_path / "store").glob("*.load")), "RocksDB has them by other names"
    store.close()


def test_rows_that_are_loaded_replace_those_that_were_there(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write({b"a": b"1", b"b": b"1"})
    for value in (b"2", b"3"):
        for _ in store.load([[(b"a", value)]]):
            pass
    assert list(store.scan(b"", b"\xff")) == [(b"a", b"3"), (b"b", b"1")]
    store.write({b"a": None})
    assert store.get(b"a") is None
    store.close()


def test_a_load_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    loading = store.load([[(b"a", b"1")], [(b"b", b"2")]])
    next(loading)
    next(loading)
    assert list(tmp_path.glob("*.load"))
    loading.close()  # type: ignore[attr-defined]  # a generator's
    assert not list(tmp_path.glob("*.load"))
    for _ in store.load([[]]):
        pass
    assert list(store.scan(b"", b"\xff")) == []
    store.close()


def with_waiting_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> RocksStore:
    """Return a store with files that are to be merged, and are not."""
    options = rocks._options()
    options.set_disable_auto_compactions(True)
    monkeypatch.setattr(rocks, "_options", lambda: options)
    store = RocksStore(path)
    for number in range(3 * rocks.MOST_FILES):
        for _ in store.load([[(b"a", b"%d" % number), (b"z", b"%d" % number)]]):
            pass
    return store


async def test_a_store_is_settled_when_no_more_files_wait_than_a_flush_may_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = with_waiting_files(tmp_path, monkeypatch)
    settling = asyncio.create_task(store.settle())
    await asyncio.sleep(3 * rocks.SETTLE_POLL_S)
    assert not settling.done()
    store._db.set_options({"disable_auto_compactions": "false"})
    await settling
    assert (store._db.property_int_value("rocksdb.num-files-at-level0") or 0) < rocks.MOST_FILES
    assert store.get(b"a") == store.get(b"z") == b"%d" % (3 * rocks.MOST_FILES - 1)
    store.close()


@pytest.mark.parametrize("errors", [0, 1])
async def test_a_store_whose_files_are_not_merged_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, errors: int
) -> None:
    """As on a full disk: the flush that comes then says what is wrong."""
    now, looked = 0.0, 0
    monkeypatch.setattr(rocks, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(rocks, "SETTLE_POLL_S", 0)
    store = RocksStore(tmp_path)

    def count(name: str) -> int:
        nonlocal now, looked
        if name == "rocksdb.num-files-at-level0":
            looked += 1
            now += 10.0
            return max(rocks.MOST_FILES + 5, rocks.MOST_FILES + 10 - looked)  # fewer with each look, then no more
        return {"rocksdb.background-errors": errors, "rocksdb.compaction-pending": 1}.get(name, 0)

    monkeypatch.setattr(store, "_count", count)
    async with asyncio.timeout(60):
        await store.settle()
    assert looked == (2 if errors else 9), "30 s since the last one was merged"
    assert "files to merge" in caplog.text
    store.close()


WRITER = """
import os, sys
from pathlib import Path
from light_scheduler.tables import rocks
rocks.WRITE_BUFFER_BYTES = 4 << 20
store, number = rocks.RocksStore(Path(sys.argv[1])), int(sys.argv[2])
while True:
    number += 1
    store.write({b"m": b"%d" % number, b"a%d" % number: os.urandom(300), b"z%d" % number: os.urandom(300)})
    if number % 1_000 == 0:
        print(number, flush=True)
"""


def test_what_is_left_of_a_process_that_was_killed_are_all_its_writes_up_to_one_of_them(tmp_path: Path) -> None:
    last = 0
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(20):
                assert process.stdout.readline(), "it writes on"
            process.send_signal(signal.SIGKILL)
        store = RocksStore(tmp_path)
        begun, last = last, int(store.get(b"m") or b"0")
        assert begun < last
        expected = {kind + b"%d" % number for kind in (b"a", b"z") for number in range(1, last + 1)}
        assert {key for key, _ in store.scan(b"", b"\xff")} == {b"m", *expected}
        store.close()


def test_a_store_that_was_there_before_has_the_filter_and_the_cache_of_all(tmp_path: Path) -> None:
    for _ in range(3):
        store = RocksStore(tmp_path)
        assert store._db.property_int_value("rocksdb.block-cache-capacity") == rocks.MEMORY_BYTES
        store.write({b"a": b"1"})
        store.close()
        newest = max(tmp_path.glob("OPTIONS-*"))
        assert "filter_policy=bloomfilter" in newest.read_text()


def test_a_scan_ends_at_its_bound_whatever_memory_is_freed_meanwhile(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    keys = [b"%06d" % number for number in range(2_000)]
    store.write(dict.fromkeys(keys, b"x"))
    found = []
    for key, _ in store.scan(keys[10], keys[1_990]):
        found.append(key)
        store.get(key)
        if len(found) % 500 == 0:
            gc.collect()
    assert found == keys[10:1_990]
    store.close()


def test_scans_that_run_together_end_at_their_own_bounds_which_nobody_else_holds(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    keys = [b"%06d" % number for number in range(2_000)]
    store.write(dict.fromkeys(keys, b"x"))
    scans = [store.scan(keys[first], bytes(bytearray(keys[first + 1_000]))) for first in range(500)]
    found = [[key for key, _ in batch] for batch in zip(*scans, strict=True)]
    assert [list(each) for each in zip(*found, strict=True)] == [keys[first : first + 1_000] for first in range(500)]
    store.close()


def test_a_scan_steps_over_nothing_that_was_deleted_behind_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = rocks._options()
    options.enable_statistics()
    monkeypatch.setattr(rocks, "_options", lambda: options)
    store = RocksStore(tmp_path)
    behind = [b"b%06d" % number for number in range(20_000)]
    store.write(dict.fromkeys([b"a", *behind, b"c"], b"x"))
    store.write(dict.fromkeys(behind))
    assert list(store.scan(b"a", b"b")) == [(b"a", b"x")]
    assert _ticker(options, "rocksdb.number.iter.skip") < 10
    store.close()


def _ticker(options: Options, name: str) -> int:
    line = next(line for line in (options.get_statistics() or "").splitlines() if line.startswith(name + " "))
    return int(line.rpartition(" ")[2])


async def test_filters_and_indexes_stay_in_memory_whatever_else_is_read(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write(rows(20_000))
    await store.flush()
    filters_bytes = 20_000 * 10 // 8
    assert (store._db.property_int_value("rocksdb.estimate-table-readers-mem") or 0) > filters_bytes
    store.close()


async def test_all_stores_of_a_process_share_one_bound_on_what_they_keep_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = 48 << 20
    monkeypatch.setattr(rocks, "MEMORY_BYTES", 2 * bound)
    monkeypatch.setattr(rocks, "MEMTABLE_BYTES", bound)
    for shared in (rocks._block_cache, rocks._memtables):
        monkeypatch.setattr(rocks, shared.__name__, cache(shared.__wrapped__))
    stores = [RocksStore(tmp_path / str(number)) for number in range(8)]
    changes = rows(20_000)
    for _ in range(4):
        for store in stores:
            store.write(changes)
    async with asyncio.timeout(60):
        while rocks._memtables().get_usage() > 1.5 * bound:  # without a bound: 180 MB, for as long as little comes
            for store in stores:
                store.write({b"little": b""})
            await asyncio.sleep(0.05)
    for store in stores:
        store.close()
