"""A table's columns as the parts of command records.

Columns are named like control headers without their prefix (`at`, `target-topic` or `target_topic`, ...). Others are:

    key  key-base64            the entity key; default: the id
    payload  payload-base64    the message's value: text, bytes, or base64; null is a tombstone
    headers                    the message's headers: a map, structs of key and value, or text that is a JSON object

Whatever type a column has, each value is converted to the text of its header. The codecs and the engine interpret and
check that text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from light_scheduler.errors import InvalidCommand, JobError
from light_scheduler.model import Headers
from light_scheduler.wire.fields import CONTROL_PREFIX, RULES, closest, parse_base64
from light_scheduler.wire.native import header_name

Cell = bytes | InvalidCommand | None
"""The bytes of a header, key or payload, or the error of the cell."""

_NOT_OF_SCHEDULES = {"command", "firing-id", "attempt", "completion"}
FIELDS = tuple(field for field in RULES if field not in _NOT_OF_SCHEDULES)
CONTENT = ("key", "key-base64", "payload", "payload-base64", "headers")
COLUMNS = (*FIELDS, *CONTENT)

_INSTANTS = {"at", "start", "end"}
_BYTES = {"key", "payload", "correlation-id"}
_US_PER_MS = 1_000


T = TypeVar("T")


class Column(NamedTuple):
    """A column of the table (`name`) and its meaning: one of COLUMNS."""

    name: str
    meaning: str


def columns_of(schema: StructType, constants: Collection[str], ignored: Collection[str]) -> tuple[Column, ...]:
    """Return the meaning of a table's columns. Raises JobError for an unknown column, or one of a wrong type."""
    columns: dict[str, Column] = {}
    if missing := sorted(set(ignored) - set(schema.fieldNames())):
        raise JobError(f"there is no column {missing[0]} to ignore; there are {', '.join(schema.fieldNames())}")
    for field in schema.fields:
        if field.name in ignored:
            continue
        meaning = field.name.replace("_", "-")
        if meaning not in COLUMNS:
            raise JobError(f"column {field.name} {_why_unknown(meaning)}. To leave it out, ignore it")
        if meaning in columns:
            raise JobError(f"columns {columns[meaning].name} and {field.name} are the same")
        if meaning in constants:
            raise JobError(
                f"column {field.name} is in the table and set with --set: ignore the column, or do not set it"
            )
        if not _is_readable(meaning, field.dataType):
            kind = field.dataType.simpleString()
            raise JobError(f"column {field.name} cannot be {kind}{_instead(meaning, field.dataType)}")
        columns[meaning] = Column(field.name, meaning)
    for one, other in (("key", "key-base64"), ("payload", "payload-base64")):
        if one in columns and other in columns:
            raise JobError(f"there are both columns {one} and {other}: give one of them")
    return tuple(columns.values())


def check_constants(constants: Mapping[str, str]) -> None:
    """Raise JobError if a value for all rows has an unknown name."""
    for name in constants:
        if name not in FIELDS:
            raise JobError(f"{name} {_why_unknown(name, FIELDS)}")


class Rows(NamedTuple):
    """Rows, column by column. `fields` has the cells of each control header, by its name."""

    keys: Sequence[Cell]
    payloads: Sequence[Cell]
    headers: Sequence[Headers | InvalidCommand]
    fields: Sequence[tuple[str, Sequence[Cell]]]


def good(cell: T | InvalidCommand) -> T:
    """Return the value of a cell. Raises the InvalidCommand in its place if the cell could not be read."""
    if isinstance(cell, InvalidCommand):
        raise cell
    return cell


def read_rows(batch: pa.RecordBatch, columns: Iterable[Column]) -> Rows:
    """Return the rows of a batch."""
    cells = {column.meaning: _read(column.meaning, batch.column(column.name)) for column in columns}
    nothing: list[Any] = [None] * batch.num_rows
    return Rows(
        cells.get("key", cells.get("key-base64", nothing)),
        cells.get("payload", cells.get("payload-base64", nothing)),
        cells.get("headers") or [[]] * batch.num_rows,
        [(header_name(field), cells[field]) for field in FIELDS if field in cells],
    )


def _read(meaning: str, array: pa.Array[Any]) -> Any:
    if meaning == "headers":
        return list(_each(_headers, meaning, array))
    if meaning in ("key-base64", "payload-base64"):
        return list(_each(parse_base64, meaning, array))
    if meaning == "labels" and not pa.types.is_string(array.type):
        return list(_each(_labels, meaning, array))
    if pa.types.is_timestamp(array.type):
        us = array.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        # Rounded up like text with a finer fraction: nothing happens before the requested instant.
        array = pc.divide(pc.add(us, _US_PER_MS - 1), _US_PER_MS)
    if not pa.types.is_binary(array.type):
        text = array.cast(pa.string())
        # Accept flags as programs write them: pandas writes True.
        array = (pc.utf8_lower(text) if meaning == "paused" else text).cast(pa.binary())
    return array.to_pylist()


def _each(read: Callable[[Any], Any], meaning: str, array: pa.Array[Any]) -> Iterator[Any]:
    for cell in array.to_pylist():
        try:
            yield (([] if meaning == "headers" else None) if cell is None else read(cell))
        except ValueError as error:
            yield InvalidCommand(meaning, str(error))


def _headers(cell: Any) -> Headers:
    """Read headers from a JSON object, pairs of a map, structs of key and value, or a struct."""
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except ValueError as error:
            raise ValueError(f"is not a JSON object: {error}") from None
        if not isinstance(cell, dict):
            raise ValueError("is not a JSON object")
    elif isinstance(cell, dict):
        # JSON files have one struct type for all rows, with a null for each header that a row lacks.
        cell = {name: value for name, value in cell.items() if value is not None}
    pairs = cell.items() if isinstance(cell, dict) else [_pair(pair) for pair in cell]
    return [(_header(name), _value(name, value)) for name, value in pairs]


def _pair(pair: Any) -> tuple[Any, Any]:
    return (pair["key"], pair["value"]) if isinstance(pair, dict) else pair


def _header(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError("a header has no name")
    if name.startswith(CONTROL_PREFIX):
        raise ValueError(f"{name}: names that begin with {CONTROL_PREFIX} are the scheduler's; give it as a column")
    return name


def _value(name: str, value: Any) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bytes):
        return value
    raise ValueError(f"{name} must be text, bytes or null, not {type(value).__name__}")


def _labels(cell: Any) -> bytes:
    pairs = [(name, value) for name, value in (cell.items() if isinstance(cell, dict) else cell) if value is not None]
    for name, value in pairs:
        if not isinstance(value, str) or set(",=") & set(name) or "," in value:
            raise ValueError(f"{name!r}: a label is a name without , and =, and a text without ,")
    return ",".join(f"{name}={value}" for name, value in pairs).encode()


def _is_readable(meaning: str, type: DataType) -> bool:
    if meaning == "headers":
        return isinstance(type, StringType | StructType | MapType) or (
            isinstance(type, ArrayType)
            and isinstance(type.elementType, StructType)
            and type.elementType.fieldNames() == ["key", "value"]
        )
    if isinstance(type, StringType):
        return True
    if meaning in _BYTES and isinstance(type, BinaryType):
        return True
    if meaning in CONTENT:
        return False
    if meaning == "labels":
        return isinstance(type, StructType | MapType)
    return isinstance(type, IntegralType | BooleanType) or (meaning in _INSTANTS and isinstance(type, TimestampType))


def _instead(meaning: str, type: DataType) -> str:
    if meaning in _INSTANTS and isinstance(type, TimestampNTZType):
        return (
            ", which names no instant, because it has no time zone: cast it to timestamp. If the times in Parquet are "
            "UTC, use --spark-conf spark.sql.parquet.inferTimestampNTZ.enabled=false"
        )
    if meaning == "headers":
        return ": use a map, an array of structs of key and value, or text that is a JSON object"
    if meaning in _BYTES:
        return ": use text or binary"
    if meaning == "labels":
        return ": use a map, or text such as team=billing,kind=reminder"
    return ": use text, a whole number or a timestamp" if meaning in _INSTANTS else ": use text or whole numbers"


def _why_unknown(name: str, known: Collection[str] = COLUMNS) -> str:
    if name in _NOT_OF_SCHEDULES:
        return "has no meaning here: every row is a schedule"
    return f"is not known{closest(name, known)}"
