"""The schemas that senders wrote Avro with, by their ids in a schema registry, and how records name them.

A framed value (Confluent's wire format):    0x00 | id u32 big-endian | Avro

Nothing here asks a registry: a worker does, and notes the answers before the records that need them are read.
"""

from __future__ import annotations

import struct
from typing import Any

FRAME = struct.Struct(">BI")
MAGIC = 0
LAST_ID = 2**31 - 1
"""Registries number schemas by Java's integers: what is above need not be asked for."""


class Schemas:
    """What a schema registry is known to hold: schemas as their JSON has them, and why others cannot be had."""

    def __init__(self) -> None:
        self._found: dict[int, Any] = {}
        self._refused: dict[int, str] = {}

    def note(self, id: int, schema: Any) -> None:
        """Note a schema; what an id stands for never changes."""
        self._found[id] = schema

    def refuse(self, id: int, reason: str) -> None:
        """Note that an id stands for no schema that Avro can be read with."""
        self._refused[id] = reason

    def __contains__(self, id: int) -> bool:
        return id > LAST_ID or id in self._found or id in self._refused

    def get(self, id: int) -> Any:
        """Return a schema. Raises ValueError, saying why, if there is none."""
        if id > LAST_ID:
            raise ValueError(f"no schema registry has the id {id}")
        try:
            return self._found[id]
        except KeyError:
            raise ValueError(self._refused.get(id, f"the schema of id {id} is not known yet")) from None


def schema_id(data: bytes | None) -> int | None:
    """Return the id of the schema that framed data names; None: it is not framed."""
    if data is None or len(data) < FRAME.size or data[0] != MAGIC:
        return None
    id: int = FRAME.unpack_from(data)[1]
    return id
