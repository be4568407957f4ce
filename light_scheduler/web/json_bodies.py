"""JSON bodies as the types that the OpenAPI document describes."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


_ANY = msgspec.json.Decoder(float_hook=_number)


def read_json(body: bytes, type: type[T]) -> T:
    """Return what a body says. Raises ValueError, which says where it is wrong.

    As in JSON Schema, a number without a fraction is a whole number, however it is written: 2.0 is 2.
    """
    try:
        return msgspec.convert(_ANY.decode(body), type)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
