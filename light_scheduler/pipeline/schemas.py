"""Schemas of tables that Python writes: one notation for Spark and Arrow."""

from __future__ import annotations

import re

import pyarrow as pa

HEADERS_TYPE = "array<struct<key:string,value:binary>>"

_ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    HEADERS_TYPE: pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}
_COLUMN = re.compile(r"(\w+) (array<.+>|\w+)(?:, |$)")


def spark_types(schema: str) -> dict[str, str]:
    """Return the types in `name type, ...` by name."""
    return dict(_COLUMN.findall(schema))


def arrow_schema(schema: str) -> pa.Schema:
    """Return the Arrow schema for `name type, ...`."""
    return pa.schema([(name, _ARROW[type]) for name, type in spark_types(schema).items()])
