"""What is stored has the fields of its format version; newer, unknown and damaged bytes are refused."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.model import (
    DEFAULT_PRIORITY,
    Acknowledgement,
    Awaited,
    Backoff,
    Bounds,
    BulkPart,
    BulkTotal,
    ControlCommand,
    Cron,
    Entry,
    FixedDelay,
    FixedRate,
    Once,
    Progress,
    ReplyTo,
    Requester,
    RescheduleCommand,
    Schedule,
    Selection,
    Target,
)
from light_scheduler.tables.table import CHECKPOINT_VERSION, RECORDS_IN
from light_scheduler.wire.state import (
    decode_bulk_part,
    decode_bulk_total,
    decode_commands_log,
    decode_entry,
    decode_position,
    encode_entry,
    encode_position,
)
from light_scheduler.wire.state_format import FORMAT_VERSION

from .test_state import BULK_PART_BYTES, ENTRY, ENTRY_BYTES, LOG, NOW, POSITION_BYTES


def parts_of(entry: Entry) -> tuple[list[Any], list[Any]]:
    schedule, progress = msgspec.msgpack.decode(encode_entry(entry)[1:])
    return schedule, progress


def test_a_record_without_the_fields_that_came_later_reads_with_their_defaults() -> None:
    schedule, progress = parts_of(ENTRY)
    schedule[4] = ["t"]
    older = b"\x01" + msgspec.msgpack.encode([schedule[:10], progress[:2]])
    read = decode_entry(older)
    assert (read.schedule.ttl, read.schedule.priority, read.schedule.labels) == (None, DEFAULT_PRIORITY, None)
    assert read.schedule.target == Target("t", None, None, None)
    assert (read.progress.sequence, read.progress.attempt) == (1, 1)
    assert read.schedule.id == ENTRY.schedule.id


@pytest.mark.parametrize("place", ["schedule", "progress", "target", "entry"])
def test_a_record_with_a_field_that_is_not_known_is_refused_since_writing_it_again_would_drop_the_field(
    place: str,
) -> None:
    schedule, progress = parts_of(ENTRY)
    schedule += [None] * (len(Schedule.__struct_fields__) - len(schedule))
    progress += list(msgspec.to_builtins(Progress(0, 0)))[len(progress) :]
    assert decode_entry(b"\x01" + msgspec.msgpack.encode([schedule, progress])) == ENTRY
    entry: list[Any] = [schedule, progress]
    longer: dict[str, list[Any]] = {"schedule": schedule, "progress": progress, "target": schedule[4], "entry": entry}
    longer[place].append("new")
    with pytest.raises(FormatError, match="of at most length"):
        decode_entry(b"\x01" + msgspec.msgpack.encode(entry))


def test_a_bulk_command_with_a_field_that_is_not_known_is_refused() -> None:
    part = msgspec.msgpack.decode(BULK_PART_BYTES[1:])
    part[0]["new"] = 1
    with pytest.raises(FormatError, match="unknown field `new`"):
        decode_bulk_part(b"\x01" + msgspec.msgpack.encode(part))


FIELDS_OF_FORMAT_5 = {
    Entry: "schedule progress",
    Schedule: "tenant id version trigger target payload headers source_partition source_offset accepted_at ttl "
    "priority labels bounds acknowledgement home_key",
    Progress: "due arrival sequence attempt wake planned first_due refusals retry_at paused triggered queued awaited "
    "bulk_offset delivered",
    Target: "topic key partition partition_key",
    Bounds: "start end max_firings jitter window misfire misfire_grace",
    Acknowledgement: "timeout max_attempts overlap",
    Awaited: "due sequence attempt until fired_at",
    Once: "at late",
    FixedRate: "interval anchor",
    FixedDelay: "delay",
    Cron: "expression dialect timezone",
    Backoff: "intervals initial factor longest attempts spread",
    BulkPart: "command origin_partition origin_offset after changed token requester",
    BulkTotal: "command awaited changed token requester",
    Requester: "by address",
    ControlCommand: "name tenant id key partition offset recorded_at expected_version reply_to selection",
    RescheduleCommand: "tenant id key timing partition offset recorded_at on_past expected_version reply_to bounds "
    "selection",
    Selection: "id_prefix labels",
    ReplyTo: "topic correlation_id partition",
}


def test_what_is_stored_has_the_fields_of_its_format_version() -> None:
    """A field more is a format more: raise `FORMAT_VERSION` and `CHECKPOINT_VERSION`, then write the field here."""
    assert FORMAT_VERSION == 5
    assert {kind: " ".join(kind.__struct_fields__) for kind in FIELDS_OF_FORMAT_5} == FIELDS_OF_FORMAT_5


def test_a_format_of_records_has_a_version_of_the_table_that_holds_them() -> None:
    assert RECORDS_IN[CHECKPOINT_VERSION] == FORMAT_VERSION
    assert max(RECORDS_IN) == CHECKPOINT_VERSION


def test_everything_that_is_stored_refuses_fields_that_it_does_not_know() -> None:
    assert [kind for kind in FIELDS_OF_FORMAT_5 if not kind.__struct_config__.forbid_unknown_fields] == []


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, FORMAT_VERSION + 2, 255])
def test_a_newer_format_is_told_from_garbage(version: int) -> None:
    with pytest.raises(FormatTooNew, match=f"format {version}"):
        decode_entry(bytes([version]) + ENTRY_BYTES[1:])
    with pytest.raises(FormatTooNew, match=f"format {version}"):
        decode_position(bytes([version]) + POSITION_BYTES[1:])
    with pytest.raises(FormatTooNew, match=f"format {version}"):
        decode_bulk_part(bytes([version]) + BULK_PART_BYTES[1:])
    with pytest.raises(FormatTooNew, match=f"format {version}"):
        decode_bulk_total(bytes([version]))


NOT_ENTRIES = {
    "empty": b"",
    "version 0": b"\x00" + ENTRY_BYTES[1:],
    "no body": b"\x01",
    "cut short": ENTRY_BYTES[:-1],
    "something after it": ENTRY_BYTES + b"\x00",
    "another trigger": ENTRY_BYTES.replace(b"\xa4once", b"\xa4what"),
    "text that is not UTF-8": ENTRY_BYTES.replace(b"acme", b"\xff\xfe\xfd\xfc"),
    "nested without end": b"\x01\x93" + ENTRY_BYTES[2:] + b"\x91" * 100_000,
    "another type": b"\x01" + msgspec.msgpack.encode({"schedule": 1}),
}


@pytest.mark.parametrize("value", NOT_ENTRIES.values(), ids=NOT_ENTRIES)
def test_bytes_that_are_no_schedule_are_a_format_error(value: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        decode_entry(value)
    assert not isinstance(caught.value, FormatTooNew)


def damaged(value: bytes) -> st.SearchStrategy[bytes]:
    return st.tuples(st.integers(0, len(value) - 1), st.binary(min_size=1, max_size=4)).map(
        lambda change: value[: change[0]] + change[1] + value[change[0] + len(change[1]) :]
    )


@given(st.binary(max_size=80) | st.binary(max_size=80).map(lambda body: b"\x01" + body) | damaged(ENTRY_BYTES))
def test_any_bytes_are_a_schedule_or_a_format_error(value: bytes) -> None:
    with contextlib.suppress(FormatError):
        assert isinstance(decode_entry(value), Entry)


@given(st.binary(max_size=12) | damaged(POSITION_BYTES) | damaged(encode_position(4711, LOG)))
def test_any_bytes_are_a_position_or_a_format_error(value: bytes) -> None:
    with contextlib.suppress(FormatError):
        assert encode_position(decode_position(value), decode_commands_log(value)) == NOW + value[1:]
