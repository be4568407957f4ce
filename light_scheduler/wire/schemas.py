"""A cache of the schemas with which senders wrote Avro, by their ids in a schema registry, and the framing of values.

A framed value (Confluent's wire format):    0x00 | id u32 big-endian | Avro

This module does not access a registry: the worker does, and stores the answers here before it reads the records.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

FRAME = struct.Struct(">BI")
MAGIC = 0
LAST_ID = 2**31 - 1
"""Registries number schemas with Java's integers, so larger ids need not be requested."""
MOST_KEPT = 1_000
"""Maximum number of schemas, and of refusals, that are kept without recent use. Senders of commands choose the ids."""
NEEDED_S = 120.0
"""Entries that were needed within this time are not dropped. A lane's cycle is shorter, even if the process is frozen,
since its transaction times out.
"""
REFUSED_S = 60.0
"""How long a refusal counts. A missing schema may have been registered since."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Needed(Generic[K, V]):
    """A cache for commands. If it has more than MOST_KEPT entries, it drops those not needed for NEEDED_S.

    So entries that exist when a lane takes its commands stay until it has read them. `monotonic` is in seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._needed_at: dict[K, float] = {}  # the least recently needed key is first
        self.kept: dict[K, V] = {}
        """For look-ups that do not count as a need."""

    def put(self, key: K, value: V) -> None:
        """Add a value, which is needed now."""
        self.kept[key] = value
        now = self._need(key)
        while len(self.kept) > MOST_KEPT and now - self._needed_at[oldest := next(iter(self._needed_at))] > NEEDED_S:
            del self.kept[oldest], self._needed_at[oldest]

    def has(self, key: K) -> bool:
        """Return whether a key exists. If so, it counts as needed now."""
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
    """A cache of a schema registry: parsed JSON of schemas, or the reason why a schema is not available.

    Dropped entries are requested again when needed.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._found = Needed[int, Any](monotonic)
        self._refused = Needed[int, tuple[str, float]](monotonic)  # (reason, time until which it counts in s)

    def note(self, id: int, schema: Any) -> None:
        """Add a schema. The schema of an id never changes."""
        self._found.put(id, schema)

    def refuse(self, id: int, reason: str) -> None:
        """Record that an id has no usable Avro schema. It is requested again later."""
        self._refused.put(id, (reason, self.monotonic() + REFUSED_S))

    def __contains__(self, id: int) -> bool:
        """Return whether an id need not be requested. It counts as needed now."""
        if id > LAST_ID or self._found.has(id):
            return True
        return self._refused.has(id) and self.monotonic() < self._refused.kept[id][1]

    def get(self, id: int) -> Any:
        """Return a schema. Raises ValueError with the reason if there is none.

        An expired refusal still applies here, for records that were let through before.
        """
        if id > LAST_ID:
            raise ValueError(f"no schema registry has the id {id}")
        try:
            return self._found.kept[id]
        except KeyError:
            reason, _ = self._refused.kept.get(id, (f"the schema of id {id} is not known yet", 0))
            raise ValueError(reason) from None


def schema_id(data: bytes | None) -> int | None:
    """Return the schema id in framed data; None if data is not framed."""
    if data is None or len(data) < FRAME.size or data[0] != MAGIC:
        return None
    id: int = FRAME.unpack_from(data)[1]
    return id
