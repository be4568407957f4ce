"""The schemas that senders wrote Avro with, by their ids in a schema registry, and how records name them.

A framed value (Confluent's wire format):    0x00 | id u32 big-endian | Avro

Nothing here asks a registry: a worker does, and notes the answers before the records that need them are read.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

FRAME = struct.Struct(">BI")
MAGIC = 0
LAST_ID = 2**31 - 1
"""Registries number schemas by Java's integers: what is above need not be asked for."""
MOST_KEPT = 1_000
"""Schemas, and refusals, that have not been needed for a while: ids come from whoever sends commands."""
NEEDED_S = 120.0
"""What was needed so recently is not dropped. No cycle of a lane takes as long, even if the process stands still: its
transaction ends before.
"""
REFUSED_S = 60.0
"""A schema that was missing may have been registered since."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Needed(Generic[K, V]):
    """A cache of what commands need. Of more than MOST_KEPT entries, those go that were not needed for NEEDED_S.

    So what was there when a lane took its commands is there until it has read them. `monotonic` is in seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._needed_at: dict[K, float] = {}  # the one that was not needed for the longest time comes first
        self.kept: dict[K, V] = {}
        """To look an entry up without needing it."""

    def put(self, key: K, value: V) -> None:
        """Keep a value; it is needed now."""
        self.kept[key] = value
        now = self._need(key)
        while len(self.kept) > MOST_KEPT and now - self._needed_at[oldest := next(iter(self._needed_at))] > NEEDED_S:
            del self.kept[oldest], self._needed_at[oldest]

    def has(self, key: K) -> bool:
        """Return whether a value is kept; it is needed now."""
        is_kept = key in self.kept
        if is_kept:
            self._need(key)
        return is_kept

    def _need(self, key: K) -> float:
        now = self._monotonic()
        self._needed_at.pop(key, None)
        self._needed_at[key] = now
        return now


class Schemas:
    """A cache of a schema registry: schemas as in their JSON, and for others the reason why they are not available.

    What is dropped is requested again when needed.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._found = Needed[int, Any](monotonic)
        self._refused = Needed[int, tuple[str, float]](monotonic)  # why, and until when that is believed (s)

    def note(self, id: int, schema: Any) -> None:
        """Note a schema; what an id stands for never changes."""
        self._found.put(id, schema)

    def refuse(self, id: int, reason: str) -> None:
        """Note that an id stands for no schema that Avro can be read with; it is asked for again later."""
        self._refused.put(id, (reason, self.monotonic() + REFUSED_S))

    def __contains__(self, id: int) -> bool:
        """Return whether an id need not be asked for; it is needed now."""
        if id > LAST_ID or self._found.has(id):
            return True
        return self._refused.has(id) and self.monotonic() < self._refused.kept[id][1]

    def get(self, id: int) -> Any:
        """Return a schema. Raises ValueError, saying why, if there is none.

        A refusal is good for what was let through while it was believed.
        """
        if id > LAST_ID:
            raise ValueError(f"no schema registry has the id {id}")
        try:
            return self._found.kept[id]
        except KeyError:
            reason, _ = self._refused.kept.get(id, (f"the schema of id {id} is not known yet", 0))
            raise ValueError(reason) from None


def schema_id(data: bytes | None) -> int | None:
    """Return the id of the schema that framed data names; None: it is not framed."""
    if data is None or len(data) < FRAME.size or data[0] != MAGIC:
        return None
    id: int = FRAME.unpack_from(data)[1]
    return id
