"""Rows of the table of commands, in the form in which they are sent. Tables can be edited by hand, so each row is
checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Table, type_coerce
from sqlalchemy.types import NullType

from light_scheduler.model import LATEST_INSTANT, Headers

MAY_UNDO = ", so it can bring back a schedule that was cancelled since: then just delete the row"
REMEDY = (
    "Correct it and set the column refused to null, or delete the row and book the command again. Either way it is "
    f"sent after later commands of its key{MAY_UNDO}"
)
_SHOWN = 60


class BookedRow(NamedTuple):
    """A booked command. `booked_at` is UTC epoch ms."""

    seq: int
    booked_at: int
    tenant: str
    id: str
    key: bytes
    value: bytes | None
    headers: Headers


def raw_columns(commands: Table) -> list[ColumnElement[Any]]:
    """Return the columns of a command with the driver's types, since SQLite accepts any type in any column."""
    names = ("seq", "booked_at", "tenant", "schedule_id", "key", "value", "headers")
    return [type_coerce(commands.c[name], NullType()).label(name) for name in names]


def booked_row(row: Any) -> BookedRow:
    """Return a row of these columns. Raises ValueError naming the column if it is not a valid command."""
    return BookedRow(
        row.seq,
        _instant(row.booked_at),
        _text("tenant", row.tenant),
        _text("schedule_id", row.schedule_id),
        _bytes("key", row.key),
        None if row.value is None else _bytes("value", row.value),
        _headers(_bytes("headers", row.headers)),
    )


def _instant(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= LATEST_INSTANT:
        raise _wrong("booked_at", value, "UTC epoch ms")
    return value


def _text(column: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(column, value, "text")
    return value


def _bytes(column: str, value: object) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong(column, value, "bytes")
    return bytes(value)


def _headers(value: bytes) -> Headers:
    try:
        return [*msgspec.msgpack.decode(value, type=list[tuple[str, bytes | None]])]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"its column headers is not the MessagePack of headers: {error}. {REMEDY}") from None


def _wrong(column: str, value: object, expected: str) -> ValueError:
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    return ValueError(f"its column {column} is {shown}, and has to be {expected}. {REMEDY}")
