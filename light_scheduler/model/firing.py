"""A firing: one occurrence of a schedule."""

from __future__ import annotations

import msgspec

from .schedule import Headers

RecordPlace = tuple[str, int, int]
"""(topic, partition, offset) of a record."""


def firing_id(schedule_id: str, due: int) -> str:
    """Return the id of an occurrence: `<schedule id>@<due ms>`."""
    return f"{schedule_id}@{due}"


def delivery_id(source: RecordPlace, version: int, sequence: int, due: int, attempt: int) -> str:
    """Return the unique id of a delivery. `source` is the place of the command that defined the schedule."""
    topic, partition, offset = source
    return f"{topic}:{partition}:{offset}:{version}:{sequence}:{due}:{attempt}"


class Firing(msgspec.Struct, frozen=True, gc=False):
    """A message as its consumer receives it: payload, the user's headers, and their origin. Times are UTC epoch ms.

    `original_due` is when the first attempt of a backoff series was due; None for other schedules. `delivery_id` is
    unique for each message: use it to deduplicate. `schedule_key` is the key that `complete` and `extend` need; None
    if that is the id.
    """

    tenant: str
    id: str
    due: int
    fired_at: int
    sequence: int
    attempt: int
    version: int
    source_topic: str
    source_partition: int
    source_offset: int
    key: bytes | None
    payload: bytes | None
    headers: Headers
    original_due: int | None = None
    delivery_id: str | None = None
    schedule_key: bytes | None = None

    @property
    def firing_id(self) -> str:
        return firing_id(self.id, self.due)
