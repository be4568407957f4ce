"""State records of what waits for another partition: their bytes are on disks and in changelogs."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.wire.delayed_state import (
    DelayedQueue,
    decode_delayed,
    decode_queue,
    encode_queue,
    queue_key,
)
from light_scheduler.wire.state_format import FORMAT_VERSION, WAITING, WAITING_FOR_LOG
from light_scheduler.wire.waiting_state import (
    TenantPart,
    WaitingRecord,
    decode_tenant_part,
    decode_waiting,
    decode_waiting_queue,
    encode_tenant_part,
    encode_waiting,
    encode_waiting_queue,
    partition_of,
    tenant_part_key,
    waiting_key,
    waiting_queue_key,
)

RECORD = WaitingRecord(b"k", None, [("schedule-command", b"cancel"), ("empty", None)], "id", "acme")
RECORD_BYTES = b"\x83\x95\xc4\x01k\xc0\x92\x92\xb0schedule-command\xc4\x06cancel\x92\xa5empty\xc0\xa2id\xa4acme"
RECORD_130 = b"\x82\x93\xc4\x01k\xc0\x92\x92\xb0schedule-command\xc4\x06cancel\x92\xa5empty\xc0"
PART = TenantPart(2, 500)
PART_BYTES = b"\x83\x92\x02\xcd\x01\xf4"
QUEUE = DelayedQueue(1, 3, 500)
QUEUE_BYTES = b"\x82\x93\x01\x03\xcd\x01\xf4"


def test_the_records_of_what_waits_golden() -> None:
    assert waiting_queue_key(258) == b"\x07\0\0\0\1\2"
    assert partition_of(b"\x07\0\0\0\1\2") == 258
    assert waiting_key(258, 259) == b"\x08\0\0\0\1\2\0\0\0\0\0\0\1\3"
    assert encode_waiting_queue(QUEUE) == QUEUE_BYTES
    assert encode_waiting(RECORD) == RECORD_BYTES
    assert (decode_waiting_queue(QUEUE_BYTES), decode_waiting(RECORD_BYTES)) == (QUEUE, RECORD)
    assert tenant_part_key(258, "acme") == b"\x08\0\x80\0\1\2acme"
    assert (encode_tenant_part(PART), decode_tenant_part(PART_BYTES)) == (PART_BYTES, PART)


def test_records_of_the_version_before_name_no_log_and_no_tenant() -> None:
    assert decode_waiting(RECORD_130) == RECORD._replace(topic_id="", tenant="")


@pytest.mark.parametrize(
    ("decode", "value", "version"),
    [(decode_queue, QUEUE_BYTES, 130), (decode_delayed, RECORD_BYTES, 131), (decode_delayed, PART_BYTES, 131)],
)
def test_an_older_worker_which_takes_them_for_delayed_commands_refuses_them(
    decode: Any, value: bytes, version: int
) -> None:
    with pytest.raises(FormatTooNew, match=f"format {version}"):
        decode(value)


@pytest.mark.parametrize("decode", [decode_waiting_queue, decode_waiting, decode_tenant_part])
def test_what_is_newer_is_told_from_garbage(decode: Any) -> None:
    with pytest.raises(FormatTooNew):
        decode(bytes([WAITING_FOR_LOG[0] + 1]))
    for garbage in (b"", b"\0", bytes([FORMAT_VERSION]), RECORD_BYTES[:-1], QUEUE_BYTES[:-1], WAITING):
        with pytest.raises(FormatError):
            decode(garbage)


def test_queues_of_partitions_and_of_tenants_are_told_apart() -> None:
    overlay = Overlay(table := ScheduleTable(MemoryStore()))
    delayed = {name: DelayedQueue(0, number, 1) for number, name in enumerate(("\x01", "acme", "ÿ"), 1)}
    waiting = {partition: DelayedQueue(0, 1 + partition, 1) for partition in (0, 1, 256, (1 << 31) - 1)}
    for name, queue in delayed.items():
        overlay.replay(queue_key(name), encode_queue(queue))
    for partition, queue in waiting.items():
        overlay.replay(waiting_queue_key(partition), encode_waiting_queue(queue))
        overlay.replay(waiting_key(partition, 0), RECORD_BYTES)
        overlay.replay(waiting_key(partition, 1), RECORD_130)
        overlay.replay(tenant_part_key(partition, "a tenant"), PART_BYTES)
    with pytest.raises(FormatError):
        overlay.replay(waiting_key(0, 1), RECORD_BYTES[:-1])
    with pytest.raises(FormatError):
        overlay.replay(tenant_part_key(0, "a tenant"), PART_BYTES[:-1])
    overlay.apply(changelog_offset=1, complete_at=1)
    found = Overlay(table).others
    assert (found.delayed(), found.waiting()) == (delayed, waiting)
