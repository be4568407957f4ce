"""A firing: one occurrence of a schedule."""

from __future__ import annotations

import msgspec

from .schedule import Headers


def firing_id(schedule_id: str, due: int) -> str:
    """Name one occurrence: `<schedule id>@<due ms>`."""
    return f"{schedule_id}@{due}"


class Firing(msgspec.Struct, frozen=True, gc=False):
    """What a consumer receives: the payload, the user's headers, and where they come from. Times are UTC epoch ms.

    `original_due` is when the first attempt of a backoff series was due; None for other schedules.
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

    @property
    def firing_id(self) -> str:
        return firing_id(self.id, self.due)
