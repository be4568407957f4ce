"""Records about room that partitions lend to each other: in the commands topic, and in the state."""

from __future__ import annotations

import pytest
from support.partition import command

from light_scheduler.errors import FormatError, FormatTooNew, InvalidCommand
from light_scheduler.model.room_lending import Asked, Lending, QuotaVersion, RoomAsk, RoomGrant
from light_scheduler.wire.lane_marks import mark_of
from light_scheduler.wire.room_lending import ROOM_ASKED, ROOM_GIVEN, room_headers, room_in
from light_scheduler.wire.room_state import decode_room, encode_room, room_key, room_of
from light_scheduler.wire.signatures import require_signed_for
from light_scheduler.wire.state_format import FORMAT_VERSION

VERSION = QuotaVersion(1_767_225_600_000, 100, 12)
ASK = RoomAsk("acme", 3, 77, VERSION, -2, 5)
GRANT = RoomGrant("acme", 4, 77, VERSION, 3, False)
TOPIC, SECRET = "app-commands", b"of the workers"
ROOM = Lending(VERSION, -7, 78, (Asked(5, 77, 9), Asked(6, 78, 10, True)), 11, (1, 2), (0,), True, 12, 13, 14)
ROOM_BYTES = (
    b"\x05\x9b\x93\xcf\x00\x00\x01\x9bv\xda\xa8\x00d\x0c\xf9N\x92\x94\x05M\t\xc2\x94\x06N\n\xc3\x0b"
    b"\x92\x01\x02\x91\x00\xc3\x0c\r\x0e"
)


@pytest.mark.parametrize(
    ("said", "name", "text"),
    [
        (ASK, ROOM_ASKED, b"acme:3:77:1767225600000:100:12:-2:5:"),
        (GRANT, ROOM_GIVEN, b"acme:4:77:1767225600000:100:12:3:0:"),
        (GRANT._replace(amount=0, may_have_more=True), ROOM_GIVEN, b"acme:4:77:1767225600000:100:12:0:1:"),
    ],
)
def test_what_is_said_is_read_back_from_golden_headers(said: RoomAsk | RoomGrant, name: str, text: bytes) -> None:
    ((header, value),) = headers = room_headers(said, TOPIC, 9, SECRET)
    assert value is not None
    assert (header, value[:-64]) == (name, text)
    record = command(*headers, key=None, value=None, partition=9)
    assert mark_of(record) == said
    require_signed_for(record, TOPIC, SECRET)


def test_a_record_is_worth_nothing_elsewhere_or_with_another_secret_or_header() -> None:
    headers = room_headers(GRANT, TOPIC, 9, SECRET)
    here = command(*headers, key=None, value=None, partition=9)
    elsewhere = command(*headers, key=None, value=None, partition=8)
    changed = [(ROOM_GIVEN, (headers[0][1] or b"").replace(b":3:0:", b":9:0:"))]
    more = command(*headers, ("schedule-id", b"a"), partition=9)
    for record, topic, secret in (
        (elsewhere, TOPIC, SECRET),
        (here, "another", SECRET),
        (here, TOPIC, b"another"),
        (here, TOPIC, b""),
        (command(*changed, partition=9), TOPIC, SECRET),
        (more, TOPIC, SECRET),
    ):
        with pytest.raises(InvalidCommand):
            require_signed_for(record, topic, secret)


@pytest.mark.parametrize("name", [ROOM_ASKED, ROOM_GIVEN])
@pytest.mark.parametrize("value", [None, b"", b"acme:1", b"a b:3:77:1:100:12:2:5:" + b"0" * 64, b"\xff" * 90])
def test_a_header_that_says_nothing_of_the_kind_is_refused(name: str, value: bytes | None) -> None:
    with pytest.raises(InvalidCommand, match="set by workers"):
        room_in(name, value)


def test_state_records_golden() -> None:
    assert room_key("acme") == b"\x09acme"
    assert room_of(b"\x09acme") == "acme"
    assert encode_room(ROOM) == ROOM_BYTES
    assert decode_room(ROOM_BYTES) == ROOM
    assert decode_room(b"\x05\x91\x93\x05\x0a\x02") == Lending(QuotaVersion(5, 10, 2))


def test_what_is_newer_is_told_from_garbage() -> None:
    with pytest.raises(FormatTooNew):
        decode_room(bytes([FORMAT_VERSION + 1]))
    for garbage in (b"", b"\0", ROOM_BYTES[:-1], ROOM_BYTES[:1] + b"\xc0"):
        with pytest.raises(FormatError):
            decode_room(garbage)
