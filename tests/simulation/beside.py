"""Stands in for the processes that fill lost tables for a worker, and end with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError

from light_scheduler.errors import SchedulerError
from light_scheduler.tables.changelog import reading
from light_scheduler.tables.recovery import Following, PartitionState, Restoration, restore
from light_scheduler.tables.store import Stores
from light_scheduler.tables.usable_copy import open_table

if TYPE_CHECKING:
    from .node import Node


class Beside:
    """As `tables.rebuilding.Rebuilding`, with what `tables.rebuild_process` does."""

    def __init__(self, node: Node, clients: Any, stores: Stores) -> None:
        self._node = node
        self._clients = clients
        self._stores = stores

    async def rebuild(self, path: Path, state: PartitionState, following: Following) -> Restoration | None:
        found: list[Restoration] = []
        own = Following(following.stopping, found.append, may_block=True)
        try:
            table = open_table(self._stores, path, state.facts, self._node.clock.now())
            try:
                async with reading(self._clients) as reader:
                    await restore(table, PartitionState(state.facts, state.logs), reader, self._node.clock, own)
            finally:
                table.close()
        except (SchedulerError, KafkaError, OSError):
            return None
        following.watch(found[0])
        return found[0]
