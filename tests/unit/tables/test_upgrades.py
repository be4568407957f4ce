"""State that other versions wrote: that of older ones is gone on with, that of newer ones refused and left alone."""

from __future__ import annotations

import asyncio
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from light_scheduler.errors import FormatTooNew
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable, layout
from light_scheduler.tables.loading import BulkLoad
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.store import Store
from light_scheduler.tables.table import CHECKPOINT_VERSION
from light_scheduler.tables.usable_copy import ChangelogFacts, open_table
from light_scheduler.wire.state_format import FORMAT_VERSION
from scripts.record_state import RECORDED_AT, UNTIL, bytes_of, deliveries, new_scheduler, partition_of, run_to

GOLDEN = Path(__file__).parents[2] / "golden" / "state"
FORMATS = sorted(folder.name for folder in GOLDEN.iterdir() if folder.name.isdigit())
FACTS = ChangelogFacts("recorded-changelog", 86_400_000)


class Record(NamedTuple):
    """A record of the changelog."""

    offset: int
    key: bytes
    value: bytes | None


def recorded(format: str) -> list[Record]:
    """Return the changelog as a version wrote it."""
    lines = json.loads((GOLDEN / format / "changelog.json").read_text(encoding="ascii"))
    return [Record(offset, bytes_of(key) or b"", bytes_of(value)) for offset, key, value in lines]


def copy_of(format: str, folder: Path) -> Path:
    """Unpack the local copy that a version left."""
    with tarfile.open(GOLDEN / format / "copy.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "copy"


def replay(table: ScheduleTable, log: list[Record]) -> None:
    for record in log:
        overlay = Overlay(table)
        overlay.replay(record.key, record.value)
        overlay.apply(changelog_offset=record.offset + 1, complete_at=RECORDED_AT)


def load(table: ScheduleTable, log: list[Record]) -> None:
    bulk = BulkLoad(table)
    bulk.add(log)
    for _ in bulk.write(changelog_offset=len(log)):
        pass
    asyncio.run(bulk.finish(complete_at=RECORDED_AT))


def go_on(store: Store) -> list[Any]:
    """Carry out what is left to do, from a store on; return what is delivered."""
    scheduler: MemoryScheduler = new_scheduler(store)
    scheduler.clock.set(RECORDED_AT)
    partition = partition_of(scheduler)
    table = partition._table
    partition._position = table.checkpoint.position
    for _ in range(table.checkpoint.position):  # the commands that were carried out before
        scheduler.broker.append((scheduler.commands_topic, 0), None, None, [], RECORDED_AT)
    partition._is_bulk_at_work = bool(Overlay(table).others.bulk_parts())
    partition.next_due = Overlay(table).due(-1, 0, 1).next_due
    run_to(scheduler, UNTIL)
    return deliveries(scheduler)


def expected(format: str) -> list[Any]:
    """Return what the version that wrote the state delivers from there on."""
    found: list[Any] = json.loads((GOLDEN / format / "expected.json").read_text(encoding="ascii"))
    assert len({dict(headers)["schedule-id"] for *_, headers in found}) > 15
    return found


def test_there_is_a_recording_of_each_format() -> None:
    """A new format wants one: scripts/record_state.py, in a checkout of the version before the change."""
    assert [str(version) for version in range(1, FORMAT_VERSION + 1)] == FORMATS


@pytest.mark.parametrize("format", FORMATS)
def test_a_local_copy_of_each_format_is_gone_on_with_as_its_own_version_would(format: str, tmp_path: Path) -> None:
    path = copy_of(format, tmp_path)
    discarded: list[str] = []
    table = open_table(RocksStore, path, FACTS, RECORDED_AT, lambda: discarded.append("copy"))
    assert discarded == []
    assert table.pending == 23
    assert go_on(table.store) == expected(format)
    table.close()


@pytest.mark.parametrize("fill", [replay, load])
@pytest.mark.parametrize("format", FORMATS)
def test_a_changelog_of_each_format_is_gone_on_with_as_its_own_version_would(
    format: str, fill: Callable[[ScheduleTable, list[Record]], None]
) -> None:
    table = ScheduleTable(MemoryStore())
    fill(table, recorded(format))
    assert go_on(table.store) == expected(format)


def newer(value: bytes) -> bytes:
    """Return a record as a later version would write it: in its format, with a field more at its end."""
    return bytes([FORMAT_VERSION + 1]) + value[1:] + b"\xc0"


LIVE = {record.key: record for record in recorded(FORMATS[-1]) if record.value is not None}
KINDS = {key[0]: record for key, record in LIVE.items()}


@pytest.mark.parametrize("fill", [replay, load])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_changelog_with_one_record_of_a_newer_format_is_refused(
    kind: int, fill: Callable[[ScheduleTable, list[Record]], None]
) -> None:
    one = KINDS[kind]
    log = [
        record._replace(value=newer(record.value or b"")) if record.offset == one.offset else record
        for record in recorded(FORMATS[-1])
    ]
    with pytest.raises(FormatTooNew, match=f"format {FORMAT_VERSION + 1}.*run the newer version"):
        fill(ScheduleTable(MemoryStore()), log)


@pytest.mark.parametrize("fill", [replay, load])
def test_a_changelog_with_a_kind_of_records_that_is_not_known_is_refused(
    fill: Callable[[ScheduleTable, list[Record]], None],
) -> None:
    with pytest.raises(FormatTooNew, match=r"unknown kind, b'\\x0e': run the newer version"):
        fill(ScheduleTable(MemoryStore()), [*recorded(FORMATS[-1]), Record(10_000, b"\x0enew", b"\x01")])


def test_a_local_copy_of_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = copy_of(FORMATS[-1], tmp_path)
    store = RocksStore(path)
    checkpoint = store.get(layout.CHECKPOINT_KEY) or b""
    later = [*msgspec.msgpack.decode(checkpoint[1:]), "a new field"]
    store.write({layout.CHECKPOINT_KEY: bytes([CHECKPOINT_VERSION + 1]) + msgspec.msgpack.encode(later)})
    before = list(store.scan(b"", b"\xff"))
    store.close()
    discarded: list[str] = []
    with pytest.raises(FormatTooNew, match=f"format {CHECKPOINT_VERSION + 1}.*run the newer version"):
        open_table(RocksStore, path, FACTS, RECORDED_AT, lambda: discarded.append("copy"))
    store = RocksStore(path)
    assert list(store.scan(b"", b"\xff")) == before
    assert discarded == []
    store.close()


def test_a_local_copy_that_holds_a_newer_record_than_its_own_format_does_is_not_written_over() -> None:
    """The checkpoint keeps such a copy from being opened; a record that came by another way is still no prey."""
    table = ScheduleTable(MemoryStore())
    replay(table, recorded(FORMATS[-1]))
    index_key, value = next(table.store.scan(layout.INDEX_START, layout.INDEX_END))
    table.store.write({index_key: newer(value)})
    with pytest.raises(FormatTooNew):
        go_on(table.store)
    assert table.store.get(index_key) == newer(value)
