from __future__ import annotations

import gc
from pathlib import Path

import pytest

from light_scheduler.errors import StateError, StateLocked
from light_scheduler.tables.rocks import RocksStore


def test_contents_outlive_the_store(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "deep" / "down")
    store.write({b"a": b"1", b"b": b"2"})
    store.write({b"a": None, b"c": b""})
    store.close()
    again = RocksStore(tmp_path / "deep" / "down")
    assert list(again.scan(b"", b"\xff")) == [(b"b", b"2"), (b"c", b"")]
    assert (again.get(b"a"), again.get(b"b"), again.get(b"c")) == (None, b"2", b"")
    again.close()


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


def test_a_store_that_is_open_already_is_locked(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    with pytest.raises(StateLocked, match="another process"):
        RocksStore(tmp_path)
    store.close()
    RocksStore(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_a_state_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot make the state folder"):
        RocksStore(tmp_path / "file" / "store")


def test_a_damaged_store_is_a_state_error_and_not_a_lock(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write({b"a": b"1"})
    store.close()
    (tmp_path / "CURRENT").write_text("nonsense")
    with pytest.raises(StateError) as caught:
        RocksStore(tmp_path)
    assert not isinstance(caught.value, StateLocked)


def test_a_destroyed_store_begins_anew(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    store.write({b"a": b"1"})
    store.close()
    RocksStore.destroy(tmp_path / "store")
    RocksStore.destroy(tmp_path / "store")
    again = RocksStore(tmp_path / "store")
    assert again.get(b"a") is None
    again.close()
