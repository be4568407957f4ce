"""What a simulated disk keeps when the power fails."""

from __future__ import annotations

from pathlib import Path
from random import Random

from light_scheduler.tables import MemoryStore

from .disk import Disk

PATH = Path("a")


def test_files_that_were_taken_in_are_kept_whatever_becomes_of_writes_before_them() -> None:
    disk = Disk()
    store = disk.stores[PATH] = MemoryStore()
    disk.write(PATH, {b"flushed": b"1"})
    disk.flush(PATH)
    disk.write(PATH, {b"lost": b"1"})
    disk.take_in(PATH, {b"file": b"1"})
    disk.write(PATH, {b"lost too": b"1"})
    assert len(list(store.scan(b"", b"\xff"))) == 4
    for _ in range(2):
        disk.lose_unflushed(Random(1), all_of_it=True)
        assert [key for key, _ in disk.stores[PATH].scan(b"", b"\xff")] == [b"file", b"flushed"]
        disk.write(PATH, {b"lost": b"2"})
