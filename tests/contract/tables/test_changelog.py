"""What the changelog holds beside schedules, and records that are refused."""

from __future__ import annotations

import msgspec
import pytest
from support.tables import AT, Tables, entry, key_of, put

from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.model import (
    BulkPart,
    BulkTotal,
    ControlCommand,
    Selection,
)
from light_scheduler.wire.state import (
    POSITION_KEY,
    bulk_part_key,
    bulk_total_key,
    encode_bulk_part,
    encode_bulk_total,
    id_in,
    identity,
)
from light_scheduler.wire.state_format import FORMAT_VERSION

replace = msgspec.structs.replace


# -- bulk commands ------------------------------------------------------------------------------------------------


def for_many(offset: int) -> ControlCommand:
    return ControlCommand("cancel", "acme", "*", None, 0, offset, AT, selection=Selection())


def test_bulk_commands_at_work_are_found_in_the_order_in_which_they_arrived(tables: Tables) -> None:
    parts = [BulkPart(for_many(offset), 1, 2, "a", offset) for offset in (3, 200, 70_000)]
    overlay = tables.overlay()
    for part in reversed(parts):
        overlay.others.put(bulk_part_key(part.command.offset), encode_bulk_part(part))
    assert overlay.others.bulk_parts() == []  # they were not there before the cycle
    tables.commit(overlay)
    tables.reopen()
    assert tables.overlay().others.bulk_parts() == parts

    overlay = tables.overlay()
    overlay.others.put(bulk_part_key(200), None)
    tables.commit(overlay)
    assert [part.command.offset for part in tables.overlay().others.bulk_parts()] == [3, 70_000]


def test_a_tally_is_found_by_the_offset_of_its_command(tables: Tables) -> None:
    total = BulkTotal(for_many(7), (0, 1), 5)
    overlay = tables.overlay()
    overlay.others.put(bulk_total_key(7), encode_bulk_total(total))
    tables.commit(overlay)
    tables.reopen()
    assert (tables.overlay().others.bulk_total(7), tables.overlay().others.bulk_total(8)) == (total, None)
    assert tables.overlay().others.bulk_parts() == []

    overlay = tables.overlay()
    overlay.others.put(bulk_total_key(7), None)
    tables.commit(overlay)
    assert tables.overlay().others.bulk_total(7) is None


def test_bulk_commands_come_back_from_the_changelog(tables: Tables) -> None:
    part, total = BulkPart(for_many(3), 1, 2), BulkTotal(for_many(7), (0,))
    overlay = tables.overlay()
    overlay.replay(bulk_part_key(3), encode_bulk_part(replace(part, changed=1)))
    overlay.replay(bulk_part_key(3), encode_bulk_part(part))
    overlay.replay(bulk_part_key(4), None)
    overlay.replay(bulk_total_key(7), encode_bulk_total(total))
    tables.commit(overlay)
    assert (tables.overlay().others.bulk_parts(), tables.overlay().others.bulk_total(7)) == ([part], total)


@pytest.mark.parametrize(
    ("prefix", "after", "found"),
    [
        (("acme", ""), ("acme", ""), ["a", "a/b", "b", "ö"]),
        (("acme", "a"), ("acme", ""), ["a", "a/b"]),
        (("acme", "a"), ("acme", "a"), ["a/b"]),
        (("acme", ""), ("acme", "a/c"), ["b", "ö"]),
        (("acme", "ö"), ("acme", "b"), ["ö"]),
        (("acme", "c"), ("acme", ""), []),
        (("acme", ""), ("acme", "ö"), []),
        (("acm", ""), ("acm", ""), []),
        (("other", ""), ("other", ""), ["b"]),
    ],
)
def test_identities_are_gone_through_in_order_from_any_place(
    tables: Tables, prefix: tuple[str, str], after: tuple[str, str], found: list[str]
) -> None:
    tables.put(*(entry(id) for id in ("b", "ö", "a", "a/b")), entry("b", tenant="other"))
    overlay = tables.overlay()
    put(overlay, entry("new"))
    overlay.remove(identity("acme", "a"))
    assert [id_in(name) for name in overlay.stored(identity(*prefix), identity(*after))] == found


# -- the changelog ----------------------------------------------------------------------------------------------------


def test_a_changelog_record_of_an_unknown_kind_is_refused(tables: Tables) -> None:
    with pytest.raises(FormatError, match="unknown kind"):
        tables.overlay().replay(b"\x7fx", b"\x01")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (POSITION_KEY, b"\x01x"),
        (POSITION_KEY, None),
        (key_of("a", "b"), b"\x01"),
        (bulk_part_key(1), b"\x01"),
        (bulk_total_key(1), b"\x01"),
    ],
)
def test_a_changelog_record_that_cannot_be_read_is_refused(tables: Tables, key: bytes, value: bytes | None) -> None:
    with pytest.raises(FormatError):
        tables.overlay().replay(key, value)


@pytest.mark.parametrize("key", [POSITION_KEY, key_of("a", "b"), bulk_part_key(1), bulk_total_key(1)])
def test_a_changelog_record_of_a_newer_format_is_refused_as_such(tables: Tables, key: bytes) -> None:
    with pytest.raises(FormatTooNew):
        tables.overlay().replay(key, bytes([FORMAT_VERSION + 1]) + b"whatever")


def test_a_tombstone_of_what_is_not_there_is_nothing(tables: Tables) -> None:
    overlay = tables.overlay()
    overlay.replay(key_of("acme", "a"), None)
    tables.commit(overlay)
    assert tables.table.pending == 0
