"""All workers and partitions of the application at one moment, as JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.web.worker_documents import InfoDocument


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker: its `/info`, or why it did not answer."""

    url: Annotated[str, Meta(description="Address at which other workers reach it.")]
    partitions: Annotated[
        dict[str, list[int]], Meta(description="Commands topic -> partitions that are assigned to it.")
    ]
    info: Annotated[InfoDocument | None, Meta(description="Its `/info`, of this process alone; null: no answer.")]
    reason: Annotated[str | None, Meta(description="Why there is no answer.")]


class UnownedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of a commands topic that no worker owns: its firings wait."""

    topic: str
    partition: int


class ClusterDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All workers, and the partitions that no worker has."""

    time: Annotated[int, Meta(description="Clock of the worker that was asked, UTC epoch ms.")]
    workers: Annotated[list[WorkerView], Meta(description="By address.")]
    unowned: Annotated[list[UnownedPartition], Meta(description="Partitions that are assigned to no worker.")]


class IdentityDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The identity and role of the request, and the application that answers."""

    name: str
    role: Annotated[str, Meta(description="metrics, read, write or admin.")]
    tenants: Annotated[list[str] | None, Meta(description="Tenants of the token; null: all.")]
    version: Annotated[str, Meta(description="Version of the worker.")]
    app_id: Annotated[str | None, Meta(description="Application of the worker.")] = None
    commands_topics: dict[str, Annotated[str, Meta(description="Dialect of the topic.")]] | None = None
