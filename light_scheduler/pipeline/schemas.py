"""Schemas of tables that Python makes: one text for Spark and for Arrow."""

from __future__ import annotations

import re

import pyarrow as pa

HEADERS_TYPE = "array<struct<key:string,value:binary>>"

_ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "binary": pa.binary(),
    HEADERS_TYPE: pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}
_COLUMN = re.compile(r"(\w+) (array<.+>|\w+)(?:, |$)")


def spark_types(schema: str) -> dict[str, str]:
    """Return the types of `name type, ...` by name."""
    return dict(_COLUMN.findall(schema))


def arrow_schema(schema: str) -> pa.Schema:
    """Return `name type, ...` as Arrow has it."""
    return pa.schema([(name, _ARROW[type]) for name, type in spark_types(schema).items()])
