"""JSON bodies as the types that the OpenAPI document describes."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")

_LONGER = 2**63
"""No integer of a document is this large."""


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _LONGER else number


_ANY = msgspec.json.Decoder(float_hook=_number)


def read_json(body: bytes, type: type[T]) -> T:
    """Decode a body. Raises ValueError, whose text says where the body is wrong.

    As in JSON Schema, a number without a fraction is an integer, however it is written: 2.0 is 2.
    """
    try:
        try:
            document = _ANY.decode(body)
        except msgspec.DecodeError:
            return msgspec.json.decode(body, type=type)  # which names the field
        return msgspec.convert(document, type)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
