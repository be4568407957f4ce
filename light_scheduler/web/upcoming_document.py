"""The JSON of counts of upcoming firings."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.model import State

By = Literal["minute", "hour", "day"]

_INSTANT = "UTC epoch ms, or RFC 3339 with an offset."


class UpcomingParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a count ahead."""

    by: Annotated[By, Meta(description="Length of the intervals. Days are UTC.")] = "hour"
    due_from: (
        Annotated[str, Meta(description=f"The first of them has this instant; default: now. {_INSTANT}")] | UnsetType
    ) = UNSET
    due_to: (
        Annotated[
            str,
            Meta(description=f"None begins at or after it; default: 60 minutes, 24 hours or 30 days on. {_INSTANT}"),
        ]
        | UnsetType
    ) = UNSET


class UpcomingCount(msgspec.Struct, frozen=True):
    """How many schedules of one kind are due in one interval."""

    due_from: Annotated[int, Meta(description="When the minute, hour or day begins, UTC epoch ms.")]
    target_topic: str
    state: State
    count: int


class PendingCount(msgspec.Struct, frozen=True):
    """How many schedules of one kind are pending, whenever they are due."""

    target_topic: str
    state: State
    count: int


class UpcomingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How many schedules of a tenant are due when. An interval without any has no count."""

    by: By
    due_from: Annotated[int, Meta(description="Where the first interval begins, UTC epoch ms.")]
    due_to: Annotated[int, Meta(description="Where the last interval ends, UTC epoch ms.")]
    counts: list[UpcomingCount]
    pending: Annotated[list[PendingCount], Meta(description="All pending schedules, those without a due time too.")]
