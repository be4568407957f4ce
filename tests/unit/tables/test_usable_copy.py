"""Which local copies are used, and which are thrown away and built anew."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from light_scheduler.errors import FormatTooNew
from light_scheduler.tables import Checkpoint, layout
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.table import CHECKPOINT_VERSION
from light_scheduler.tables.usable_copy import MAX_AHEAD_MS, ChangelogFacts, open_table

AT = 1_767_225_600_000
DAY = 86_400_000
FACTS = ChangelogFacts("topic-1", DAY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lane"


def left_behind(folder: Path, version: int, fields: object) -> None:
    """Leave a copy of one schedule, with a checkpoint of a format version."""
    store = RocksStore(folder)
    checkpoint = bytes([version]) + msgspec.msgpack.encode(fields)
    store.write({layout.CHECKPOINT_KEY: checkpoint, layout.primary_key("acme", "a"): b"somewhere"})
    store.close()


def opened(folder: Path) -> tuple[Checkpoint, bool]:
    """Open a copy; return its checkpoint, and whether what was left behind is still there."""
    table = open_table(RocksStore, folder, FACTS, AT)
    try:
        return table.checkpoint, table.store.get(layout.primary_key("acme", "a")) is not None
    finally:
        table.close()


@pytest.mark.parametrize("complete_at", [AT - DAY, AT, AT + MAX_AHEAD_MS])
def test_a_copy_of_this_changelog_that_is_fresh_enough_is_used(folder: Path, complete_at: int) -> None:
    checkpoint = Checkpoint(7, 8, 1, "topic-1", complete_at)
    left_behind(folder, 3, checkpoint)
    assert opened(folder) == (checkpoint, True)


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        pytest.param(3, [7, 8, 1, "topic-0", AT], id="of a changelog that was deleted and made again"),
        pytest.param(3, [7, 8, 1, "topic-1", AT - DAY - 1], id="older than tombstones are kept"),
        pytest.param(3, [7, 8, 1, "topic-1", AT + MAX_AHEAD_MS + 1], id="of a time to come, so of nobody knows when"),
        pytest.param(1, [7, 8, b"t", 1, "topic-1", AT], id="laid out in another way by an older version"),
        pytest.param(2, [7, 8, 1, "topic-1", AT], id="of the version before, whose index has no negative arrivals"),
    ],
)
def test_a_copy_that_cannot_be_trusted_or_read_is_thrown_away(folder: Path, version: int, fields: object) -> None:
    left_behind(folder, version, fields)
    assert opened(folder) == (Checkpoint(changelog_id="topic-1"), False)


def test_a_copy_whose_process_ended_before_it_was_all_there_is_thrown_away(folder: Path) -> None:
    store = RocksStore(folder)
    store.write({layout.primary_key("acme", "a"): b"somewhere"})
    store.close()
    assert opened(folder) == (Checkpoint(changelog_id="topic-1"), False)


def test_a_copy_of_a_newer_version_is_left_as_it_is(folder: Path) -> None:
    left_behind(folder, CHECKPOINT_VERSION + 1, ["of another", "layout"])
    with pytest.raises(FormatTooNew):
        open_table(RocksStore, folder, FACTS, AT)
    store = RocksStore(folder)
    assert store.get(layout.primary_key("acme", "a")) == b"somewhere"
    store.close()
