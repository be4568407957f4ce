"""State records of delayed commands: their bytes are on disks and in changelogs."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.model.arrival import LOG
from light_scheduler.wire.delayed_state import (
    DelayedCommand,
    DelayedQueue,
    decode_delayed,
    decode_queue,
    delayed_key,
    encode_delayed,
    encode_queue,
    queue_key,
    tenant_of,
)
from light_scheduler.wire.record import Copy, arrived, sent_at
from light_scheduler.wire.state_format import FORMAT_VERSION

COMMAND = DelayedCommand(b"k", None, [("schedule-command", b"cancel"), ("empty", None)], 3, 42, 1_767_225_600_000)
COMMAND_BYTES = (
    b"\x05\x96\xc4\x01k\xc0\x92\x92\xb0schedule-command\xc4\x06cancel\x92\xa5empt"
    b"y\xc0\x03*\xcf\x00\x00\x01\x9bv\xda\xa8\x00"
)


def test_the_records_of_delayed_commands_golden() -> None:
    assert queue_key("acme") == b"\x07acme"
    assert tenant_of(b"\x07acme") == "acme"
    assert delayed_key("acme", 258) == b"\x08acme\0\0\0\0\0\0\0\x01\x02"
    assert encode_queue(DelayedQueue(1, 3, 500)) == b"\x05\x93\x01\x03\xcd\x01\xf4"
    assert encode_delayed(COMMAND) == COMMAND_BYTES
    assert decode_queue(encode_queue(DelayedQueue(1, 3, 500))).waiting == 2
    assert decode_delayed(COMMAND_BYTES) == COMMAND


@pytest.mark.parametrize("decode", [decode_queue, decode_delayed])
def test_what_is_newer_is_told_from_garbage(decode: Any) -> None:
    with pytest.raises(FormatTooNew):
        decode(bytes([FORMAT_VERSION + 1]))
    for garbage in (b"", b"\0", COMMAND_BYTES[:-1], COMMAND_BYTES[:1] + b"\x97" + COMMAND_BYTES[2:] + b"\xc0"):
        with pytest.raises(FormatError):
            decode(garbage)


def test_a_command_that_was_sent_to_another_partition_keeps_its_place_there() -> None:
    sent = Copy(*COMMAND[:3], 1, 7, COMMAND.timestamp, sent=(3, 42))
    assert encode_delayed(sent) == COMMAND_BYTES
    read = decode_delayed(COMMAND_BYTES).read_in(1)
    assert (read.partition, sent_at(read)) == (1, (3, 42))
    assert decode_delayed(COMMAND_BYTES).read_in(3) == COMMAND


def test_a_command_of_a_later_log_keeps_its_arrival_and_the_offset_where_it_was_sent() -> None:
    record = arrived(COMMAND, 2)
    assert (record.offset, sent_at(record)) == (2 * LOG + 42, (3, 42))
    assert decode_delayed(encode_delayed(record)).read_in(3) == record
