"""The schemas that senders wrote Avro with, by their ids in a schema registry, and how records name them.

A framed value (Confluent's wire format):    0x00 | id u32 big-endian | Avro

Nothing here asks a registry: a worker does, and notes the answers before the records that need them are read.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

FRAME = struct.Struct(">BI")
MAGIC = 0
LAST_ID = 2**31 - 1
"""Registries number schemas by Java's integers: what is above need not be asked for."""
MOST_KEPT = 1_000
"""Schemas, and refusals: ids come from whoever sends commands."""
REFUSED_S = 60.0
"""A schema that was missing may have been registered since."""


class Schemas:
    """A cache of a schema registry: schemas as in their JSON, and for others the reason why they are not available.

    Beyond MOST_KEPT the oldest are dropped; they are requested again when needed.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._found: dict[int, Any] = {}
        self._refused: dict[int, tuple[str, float]] = {}  # why, and until when that is believed (s)

    def note(self, id: int, schema: Any) -> None:
        """Note a schema; what an id stands for never changes."""
        keep(self._found, id, schema)

    def refuse(self, id: int, reason: str) -> None:
        """Note that an id stands for no schema that Avro can be read with; it is asked for again later."""
        keep(self._refused, id, (reason, self._monotonic() + REFUSED_S))

    def __contains__(self, id: int) -> bool:
        """Tell whether an id need not be asked for."""
        if id > LAST_ID or id in self._found:
            return True
        return id in self._refused and self._monotonic() < self._refused[id][1]

    def get(self, id: int) -> Any:
        """Return a schema. Raises ValueError, saying why, if there is none.

        A refusal is good for what was let through while it was believed.
        """
        if id > LAST_ID:
            raise ValueError(f"no schema registry has the id {id}")
        try:
            return self._found[id]
        except KeyError:
            reason, _ = self._refused.get(id, (f"the schema of id {id} is not known yet", 0))
            raise ValueError(reason) from None


def keep(kept: dict[int, Any], id: int, value: Any) -> None:
    """Put a value in as the newest, and drop the oldest of too many."""
    kept.pop(id, None)
    kept[id] = value
    if len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]


def schema_id(data: bytes | None) -> int | None:
    """Return the id of the schema that framed data names; None: it is not framed."""
    if data is None or len(data) < FRAME.size or data[0] != MAGIC:
        return None
    id: int = FRAME.unpack_from(data)[1]
    return id
