"""The overview of the cluster over HTTP: what is pending, what waits, and the last hour."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from .forms.problems import MissingPartition

_OF_ALL = "null for a token for some tenants."


class TenantPending(msgspec.Struct, frozen=True):
    """A tenant and its number of schedules."""

    tenant: str
    pending: int


class TopicPending(msgspec.Struct, frozen=True):
    """A target topic and the number of schedules that deliver to it."""

    target_topic: str
    pending: int


class HourSample(msgspec.Struct, frozen=True, kw_only=True):
    """Activity of all workers in half a minute."""

    at: Annotated[int, Meta(description="When it began, UTC epoch ms.")]
    accepted: Annotated[float, Meta(description="Commands accepted a second.")]
    fired: Annotated[float, Meta(description="Firings delivered a second.")]
    p50: Annotated[int | None, Meta(description="Half of the firings were not later than this, ms; null: none fired.")]
    p90: Annotated[int | None, Meta(description="The same for 90 % of them.")]
    p99: Annotated[int | None, Meta(description="The same for 99 % of them.")]
    backlog: Annotated[int | None, Meta(description="Commands that waited to be read in the end; null: not known.")]


class OverviewDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The whole cluster, as far as the token may see it. At most one second old."""

    time: Annotated[int, Meta(description="Clock of the worker that was asked, UTC epoch ms.")]
    pending: Annotated[int, Meta(description="Schedules of the tenants of the token: pending, paused and awaiting.")]
    states: Annotated[dict[str, int], Meta(description="The same by state.")]
    tenants: Annotated[list[TenantPending], Meta(description="The 100 tenants with the most schedules, most first.")]
    targets: Annotated[list[TopicPending], Meta(description="The 100 topics with the most schedules, most first.")]
    complete: Annotated[
        bool,
        Meta(description="False: a partition has so many tenants and topics that the two lists may count too few."),
    ]
    next_due: Annotated[int | None, Meta(description="Due time of the next firing, UTC epoch ms; " + _OF_ALL)]
    backlog: Annotated[int | None, Meta(description="Commands that wait to be read; " + _OF_ALL)]
    dead_letters: Annotated[int | None, Meta(description="Since the workers took their partitions; " + _OF_ALL)]
    hour: Annotated[
        list[HourSample] | None,
        Meta(description="The last hour of the workers that answer, as far as they run; " + _OF_ALL),
    ]
    missing: Annotated[list[MissingPartition], Meta(description="Partitions that are not in the figures.")]
