"""A store that is locked, damaged or full: an error that says so, and never a row too few."""

from __future__ import annotations

import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from light_scheduler.errors import StateCorrupt, StateError, StateFull, StateLocked
from light_scheduler.tables.rocks import RocksStore, _translated


def test_a_store_that_is_open_already_is_locked(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    with pytest.raises(StateLocked, match="another process"):
        RocksStore(tmp_path)
    store.close()
    RocksStore(tmp_path).close()


def test_a_store_in_a_folder_with_lock_in_its_name_is_not_taken_for_locked(tmp_path: Path) -> None:
    folder = tmp_path / "block-storage"
    RocksStore(folder).close()
    (folder / "LOCK").unlink()
    (folder / "LOCK").mkdir()
    with pytest.raises(StateError, match="Is a directory") as raised:
        RocksStore(folder)
    assert not isinstance(raised.value, StateLocked)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("IO error: While lock file: {path}/LOCK: Resource temporarily unavailable", StateLocked),
        ("IO error: lock hold by current process, acquire time 1: {path}/LOCK: No locks available", StateLocked),
        ("IO error: While open a file for random read: {path}/7.sst: Permission denied", StateError),
        ("IO error: No space left on deviceWhile appending to file: {path}/7.log", StateFull),
    ],
)
def test_what_an_error_means_is_told_by_its_words_and_not_by_the_path_in_it(text: str, kind: type[StateError]) -> None:
    path = Path("/mnt/While lock file/File too large")
    error = _translated(Exception(text.format(path=path)), path)
    assert type(error) is kind
    assert text.format(path=path) in str(error)


def test_a_folder_that_cannot_be_made_is_a_state_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot create the state folder"):
        RocksStore(tmp_path / "file" / "store")


def test_a_damaged_store_is_a_state_error_and_not_a_lock(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write({b"a": b"1"})
    store.close()
    (tmp_path / "CURRENT").write_text("nonsense")
    with pytest.raises(StateCorrupt, match="is damaged"):
        RocksStore(tmp_path)


def test_a_destroyed_store_begins_anew(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    store.write({b"a": b"1"})
    store.close()
    RocksStore.destroy(tmp_path / "store")
    RocksStore.destroy(tmp_path / "store")
    again = RocksStore(tmp_path / "store")
    assert again.get(b"a") is None
    again.close()


def test_a_store_that_cannot_be_deleted_is_an_error(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "elsewhere")
    store.close()
    (tmp_path / "store").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match=r"cannot delete the state folder .*store, .* delete it yourself"):
        RocksStore.destroy(tmp_path / "store")


def rows(count: int) -> dict[bytes, bytes | None]:
    return {b"%06d" % number: os.urandom(200) for number in range(count)}


def damage(folder: Path) -> None:
    (file,) = folder.glob("*.sst")
    with file.open("r+b") as content:
        content.seek(file.stat().st_size // 2)
        content.write(b"\xff" * 100)


@pytest.fixture
async def damaged(tmp_path: Path) -> AsyncIterator[RocksStore]:
    """A store of 20,000 rows, of which those in the middle cannot be read."""
    store = RocksStore(tmp_path)
    store.write(rows(20_000))
    await store.flush()
    store.close()
    damage(tmp_path)
    store = RocksStore(tmp_path)
    yield store
    store.close()


async def test_a_scan_does_not_take_what_it_cannot_read_for_the_end(damaged: RocksStore) -> None:
    found: list[bytes] = []
    with pytest.raises(StateCorrupt, match="checksum mismatch"):
        found.extend(key for key, _ in damaged.scan(b"", b"\xff"))
    assert 0 < len(found) < 20_000


async def test_a_row_that_cannot_be_read_is_not_taken_for_missing(damaged: RocksStore) -> None:
    keys = [b"%06d" % number for number in range(20_000)]
    with pytest.raises(StateCorrupt):
        all(damaged.get(key) is not None for key in keys)


async def test_no_room_is_an_error_of_its_own_from_the_first_flush_on(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        store.write(rows(2_000))
        with pytest.raises(StateFull, match="free some space, or move data_dir"):
            await store.flush()
        with pytest.raises(StateFull, match="free some space, or move data_dir"):
            store.write({b"a": b"1"})
        store.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    again = RocksStore(tmp_path)
    assert list(again.scan(b"", b"\xff")) == [], "all, or none"
    again.close()
