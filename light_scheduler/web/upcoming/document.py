"""The JSON of counts of upcoming firings."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.model import State
from light_scheduler.web.forms.parameters import PARTITION_EXAMPLE, PartitionName
from light_scheduler.web.forms.text_forms import INSTANT, LOWER_BOUND, TOPIC, described

By = Literal["minute", "hour", "day"]
GroupedBy = Literal["tenant", "target", "partition"]

_INSTANT = "UTC epoch ms, or RFC 3339 with an offset."


class IntervalParameters(msgspec.Struct, frozen=True, kw_only=True):
    """Minutes, hours or days, in a query string."""

    by: Annotated[By, Meta(description="Length of the intervals. Days are UTC.")] = "hour"
    due_from: (
        Annotated[str, described(f"The first of them has this instant; default: now. {_INSTANT}", LOWER_BOUND)]
        | UnsetType
    ) = UNSET
    due_to: (
        Annotated[
            str,
            described(f"None begins at or after it; default: 60 minutes, 24 hours or 30 days on. {_INSTANT}", INSTANT),
        ]
        | UnsetType
    ) = UNSET


class UpcomingParameters(IntervalParameters, frozen=True, kw_only=True):
    """The query string of a count of a tenant's schedules."""


class UpcomingCount(msgspec.Struct, frozen=True):
    """The number of schedules of one kind that are due in one interval."""

    due_from: Annotated[int, Meta(description="When the minute, hour or day begins, UTC epoch ms.")]
    target_topic: str
    state: State
    count: int


class PendingCount(msgspec.Struct, frozen=True):
    """The number of pending schedules of one kind, whenever they are due."""

    target_topic: str
    state: State
    count: int


class UpcomingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The number of a tenant's schedules by due time. Intervals without any are omitted."""

    by: By
    due_from: Annotated[int, Meta(description="Where the first interval begins, UTC epoch ms.")]
    due_to: Annotated[int, Meta(description="Where the last interval ends, UTC epoch ms.")]
    counts: list[UpcomingCount]
    pending: Annotated[list[PendingCount], Meta(description="All pending schedules, those without a due time too.")]


class UpcomingGroupsParameters(IntervalParameters, frozen=True, kw_only=True):
    """The query string of a count of all tenants' schedules."""

    group: Annotated[GroupedBy, Meta(description="What is counted together.")] = "tenant"
    top: Annotated[
        int, Meta(ge=0, le=100, description="How many groups are named, those with the most due in this time.")
    ] = 10
    target_topic: Annotated[str, described("Only schedules that deliver to this topic.", TOPIC)] | UnsetType = UNSET
    partition: PartitionName | UnsetType = UNSET


class IntervalCount(msgspec.Struct, frozen=True):
    """The number of schedules that are due in one interval."""

    due_from: Annotated[int, Meta(description="When the minute, hour or day begins, UTC epoch ms.")]
    count: int


class UpcomingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The number of a group's schedules by due time. Intervals without any are omitted."""

    name: Annotated[
        str | None,
        Meta(
            description=f"Tenant, target topic, or partition (`{PARTITION_EXAMPLE}`); null: all that are not named, "
            "together."
        ),
    ]
    due: Annotated[int, Meta(description="All that are due in this time.")]
    pending: Annotated[int, Meta(description="All that are pending, whenever they are due.")]
    counts: list[IntervalCount]


class UpcomingGroupsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The number of all tenants' schedules by due time, and by tenant, target topic or partition.

    The groups add up to all matching schedules.
    """

    by: By
    group: GroupedBy
    due_from: Annotated[int, Meta(description="Where the first interval begins, UTC epoch ms.")]
    due_to: Annotated[int, Meta(description="Where the last interval ends, UTC epoch ms.")]
    groups: Annotated[list[UpcomingGroup], Meta(description="Those with the most due first, the unnamed ones last.")]
    complete: Annotated[
        bool,
        Meta(
            description="False: a partition has more groups than it reports, so a named group may have more schedules "
            "than its counts say. The sums over all groups are exact."
        ),
    ]
