"""What a table stores: put, get, remove; all or nothing; and the checkpoint."""

from __future__ import annotations

import msgspec
import pytest
from support.tables import AT, MINUTE, MUCH, Tables, entry, put

from light_scheduler.errors import FormatError, FormatTooNew, FormatTooOld
from light_scheduler.tables import Checkpoint, ScheduleTable, layout
from light_scheduler.tables.table import CHECKPOINT_VERSION, IN_LATER_LOG
from light_scheduler.wire.state import (
    CommandsLog,
    identity,
)

replace = msgspec.structs.replace

LOG = CommandsLog("id-1", "app", "commands")


# -- put, get, remove -------------------------------------------------------------------------------------------------


def test_what_is_put_is_seen_in_the_overlay_at_once_and_in_the_table_after_it_is_applied(tables: Tables) -> None:
    overlay, a = tables.overlay(), entry("a")
    assert overlay.get(identity("acme", "a")) is None
    put(overlay, a)
    assert overlay.get(identity("acme", "a")) == a
    assert tables.table.get("acme", "a") is None
    tables.commit(overlay)
    assert tables.table.get("acme", "a") == a
    assert tables.overlay().get(identity("acme", "a")) == a
    assert tables.reopen().get("acme", "a") == a


def test_what_is_removed_is_gone_in_the_overlay_at_once_and_in_the_table_after_it_is_applied(tables: Tables) -> None:
    tables.put(entry("a"), entry("b"))
    overlay = tables.overlay()
    overlay.remove(identity("acme", "a"))
    assert overlay.get(identity("acme", "a")) is None
    assert tables.table.get("acme", "a") is not None
    tables.commit(overlay)
    assert tables.table.get("acme", "a") is None
    assert tables.table.get("acme", "b") == entry("b")
    assert tables.fire(AT) == ["b"]


def test_removing_what_is_not_there_changes_nothing(tables: Tables) -> None:
    tables.put(entry("a"))
    overlay = tables.overlay()
    overlay.remove(identity("acme", "b"))
    overlay.remove(identity("acme", "b"))
    assert overlay.pending == 1
    tables.commit(overlay)
    assert tables.table.get("acme", "a") == entry("a")
    assert tables.table.pending == 1


def test_a_removed_schedule_can_be_put_again_in_the_same_overlay(tables: Tables) -> None:
    tables.put(entry("a"))
    overlay, again = tables.overlay(), entry("a", AT, version=2, payload=b"again")
    overlay.remove(identity("acme", "a"))
    put(overlay, again)
    tables.commit(overlay)
    assert tables.table.get("acme", "a") == again
    assert tables.table.pending == 1
    assert tables.fire(AT) == ["a"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a", "b"), ("ab", "b")),
        (("a", "b"), ("a", "bb")),
        (("a", "b.c"), ("a.b", "c")),
        (("t", "\u00e9"), ("t", "e\u0301")),
    ],
)
def test_schedules_whose_names_resemble_each_other_are_apart(
    tables: Tables, first: tuple[str, str], second: tuple[str, str]
) -> None:
    one, other = (entry(id, tenant=tenant, payload=id.encode()) for tenant, id in (first, second))
    tables.put(one, other)
    assert (tables.table.get(*first), tables.table.get(*second)) == (one, other)
    overlay = tables.overlay()
    overlay.remove(identity(*first))
    tables.commit(overlay)
    assert (tables.table.get(*first), tables.table.get(*second)) == (None, other)


# -- all or nothing ---------------------------------------------------------------------------------------------------


def test_a_dropped_overlay_leaves_everything_as_it_was(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + 1), entry("c", AT + MINUTE))
    before, checkpoint = tables.everything(), tables.table.checkpoint
    overlay = tables.overlay()
    put(overlay, entry("a", AT + 5, version=2))
    put(overlay, entry("new", AT))
    overlay.remove(identity("acme", "c"))
    overlay.position = 99
    overlay.due(AT + 10, 10, MUCH)
    del overlay
    assert tables.everything() == before
    assert tables.table.checkpoint == checkpoint
    assert tables.fire(AT + 1) == ["a", "b"]


def test_what_is_applied_comes_with_the_checkpoint_it_reaches(tables: Tables) -> None:
    overlay = tables.overlay()
    put(overlay, entry("a", AT))
    put(overlay, entry("b", AT + 1))
    overlay.position = 7
    overlay.apply(changelog_offset=12, complete_at=AT + 3)
    reached = tables.table.checkpoint
    assert (reached.changelog_offset, reached.position, reached.pending, reached.complete_at) == (12, 7, 2, AT + 3)
    assert tables.reopen().checkpoint == reached
    assert tables.overlay().position == 7


def test_an_empty_store_begins_at_the_beginning(tables: Tables) -> None:
    assert tables.table.checkpoint == Checkpoint()
    assert tables.table.pending == 0
    assert tables.overlay().position == 0


def test_a_checkpoint_keeps_the_changelogs_identity(tables: Tables) -> None:
    tables.table.checkpoint = msgspec.structs.replace(tables.table.checkpoint, changelog_id="x1")
    tables.put(entry("a"))
    assert tables.reopen().checkpoint.changelog_id == "x1"


@pytest.mark.parametrize("log", [None, LOG, LOG._replace(number=3)])
def test_a_checkpoint_keeps_the_log_of_its_position(tables: Tables, log: CommandsLog | None) -> None:
    tables.table.checkpoint = msgspec.structs.replace(tables.table.checkpoint, commands_log=log)
    tables.put(entry("a"))
    checkpoint = tables.store.get(layout.CHECKPOINT_KEY) or b""
    assert checkpoint[0] == (CHECKPOINT_VERSION | IN_LATER_LOG if log and log.number else CHECKPOINT_VERSION)
    assert tables.reopen().checkpoint.commands_log == log


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(tables: Tables) -> None:
    newer = bytes([CHECKPOINT_VERSION + 1]) + msgspec.msgpack.encode(["of another", "layout"])
    tables.store.write({layout.CHECKPOINT_KEY: newer})
    with pytest.raises(FormatTooNew, match=f"format {CHECKPOINT_VERSION + 1}"):
        ScheduleTable(tables.store)
    assert tables.everything() == {layout.CHECKPOINT_KEY: newer}


def test_a_store_of_another_layout_is_refused_as_too_old_and_left_as_it_is(tables: Tables) -> None:
    older = b"\x01" + msgspec.msgpack.encode([1, 2, b"t", 3, "x", 4])
    tables.store.write({layout.CHECKPOINT_KEY: older})
    with pytest.raises(FormatTooOld, match="format 1"):
        ScheduleTable(tables.store)
    assert tables.everything() == {layout.CHECKPOINT_KEY: older}


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"\x03" + b"\xff" * 20, b"\x03\x96\x00\x00\xc4\x00\x00\xa1\xff\x00"])
def test_a_checkpoint_that_cannot_be_read_is_a_format_error(tables: Tables, garbage: bytes) -> None:
    tables.store.write({layout.CHECKPOINT_KEY: garbage})
    with pytest.raises(FormatError, match="checkpoint"):
        ScheduleTable(tables.store)
