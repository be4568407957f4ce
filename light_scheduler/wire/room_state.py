"""State records of lending: a tenant's room for pending schedules that a partition has lent and borrowed.

Changelog key     kind u8 | rest
    0x09  the room of a tenant      rest: tenant   (UTF-8)

Changelog value   version u8 | body
    room       version 5: MessagePack of an array of the fields of `model.room_lending.Lending`, in order
"""

from __future__ import annotations

import msgspec

from light_scheduler.model.room_lending import Lending

from .state_format import VERSION, decoded

ROOM_KIND = b"\x09"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Lending).decode


def room_key(tenant: str) -> bytes:
    """Return the changelog key of a tenant's room."""
    return ROOM_KIND + tenant.encode()


def room_of(room_key: bytes) -> str:
    """Return the tenant in the changelog key of a room."""
    return room_key[len(ROOM_KIND) :].decode()


def encode_room(lending: Lending) -> bytes:
    """Encode the room of a tenant."""
    return VERSION + _encode(lending)


def decode_room(value: bytes) -> Lending:
    """Decode the room of a tenant. Raises FormatTooNew or FormatError."""
    return decoded(_decode, value, "a record of room that was lent")
