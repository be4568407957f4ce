"""The JSON documents of `/live`, `/ready` and `/info`: a worker, its partitions and their probes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.delays import DelayLaneStatus
from light_scheduler.lanes.context.status import LaneStatus, TargetStatus
from light_scheduler.tables.status import StandbyStatus


class ProbeView(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the probes of a partition since this worker took it over."""

    topic: Annotated[str, Meta(description="The commands topic.")]
    partition: int
    last_success: Annotated[int | None, Meta(description="When a probe last came back, UTC epoch ms.")]
    latency_ms: Annotated[int | None, Meta(description="How long that one took, less the time that it had to wait.")]
    failures: Annotated[int, Meta(description="Probes that were not sent, or not back in time.")]


class LiveDocument(msgspec.Struct, frozen=True):
    """The process answers, even if probes of its partitions fail."""

    status: str = "live"
    probes: (
        Annotated[list[ProbeView], Meta(description="The partitions of this process that are probed.")] | UnsetType
    ) = UNSET


def live_document(lanes: Sequence[LaneStatus]) -> LiveDocument:
    """Return that the process answers, with the results of its lanes' probes."""
    views = [
        ProbeView(
            topic=lane.topic,
            partition=lane.partition,
            last_success=lane.probe.last_success,
            latency_ms=lane.probe.latency_ms,
            failures=lane.probe.failures,
        )
        for lane in lanes
        if lane.probe is not None
    ]
    return LiveDocument(probes=views or UNSET)


class ReadyDocument(msgspec.Struct, frozen=True):
    """Every partition of this worker runs."""

    status: str = "ready"


class ProcessView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker process of a node."""

    process: Annotated[int, Meta(description="Its number on the node.")]
    url: Annotated[str, Meta(description="Address at which other workers reach it.")]
    answers: Annotated[bool, Meta(description="Whether its partitions are in this answer.")]


class InfoDocument(msgspec.Struct, frozen=True, kw_only=True):
    """This worker, its partitions, and the partitions of the other workers.

    On a node with several processes, the partitions of all processes that answer.
    """

    version: str
    app_id: str
    url: Annotated[str, Meta(description="Address at which other workers reach this one.")]
    time: Annotated[int, Meta(description="This worker's clock, UTC epoch ms.")]
    commands_topics: dict[str, Annotated[str, Meta(description="Dialect of the topic.")]]
    lanes: list[LaneStatus]
    standbys: Annotated[list[StandbyStatus], Meta(description="Warm copies of other workers' partitions.")]
    targets: Annotated[list[TargetStatus], Meta(description="Target topics that are unavailable.")]
    delays: Annotated[list[DelayLaneStatus], Meta(description="Delay rules on the partitions of this worker.")]
    peers: Annotated[
        dict[str, dict[str, list[int]]], Meta(description="Worker -> commands topic -> partitions, this one included.")
    ]
    processes: Annotated[
        list[ProcessView], Meta(description="Processes of this node; empty: the worker is a single process.")
    ] = []
