"""Steps 4 to 6: what is applied, what an error leaves behind, and who goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from aiokafka.errors import KafkaError

from light_scheduler.errors import SchedulerError
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.lanes.lane import Lane
from light_scheduler.tables import Overlay, layout
from simulation.disk import Disk, Store
from simulation.node import Node

from .overlays import apply_at_once, known_overlays
from .planting import mutant, nobody_looks, replaced


@mutant(4, "The table is written before the commit.")
def _apply_before_commit() -> Iterator[Any]:
    commit = TransactionalProducer.commit

    async def early(
        self: TransactionalProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any
    ) -> Any:
        apply_at_once(overlay_of(self))
        return await commit(self, batches, group, offsets, **checks)

    with known_overlays() as (lane_type, overlay_of), replaced(TransactionalProducer, "commit", early):
        yield lane_type


@mutant(4, "The table notes a changelog offset that it has not reached.")
def _checkpoint_too_far() -> Iterator[Any]:
    apply = Overlay.apply

    def too_far(self: Overlay, *, changelog_offset: int, complete_at: int) -> None:
        apply(self, changelog_offset=changelog_offset + 3, complete_at=complete_at)

    with replaced(Overlay, "apply", too_far):
        yield None


@mutant(4, "The checkpoint is written before what it speaks of, by itself.")
def _checkpoint_in_a_write_of_its_own() -> Iterator[Any]:
    write = Store.write

    def first(self: Store, changes: Any) -> None:
        checkpoint = {key: changes[key] for key in changes.keys() & {layout.CHECKPOINT_KEY}}
        for part in (checkpoint, {key: value for key, value in changes.items() if key not in checkpoint}):
            if part:
                write(self, part)

    with replaced(Store, "write", first):
        yield None


@mutant(4, "The checkpoint is kept apart from the rows, and survives a crash that the last of them do not.")
def _checkpoint_survives_its_rows() -> Iterator[Any]:
    lose = Disk.lose_unflushed

    def lose_rows_only(self: Disk, random: Any, *, all_of_it: bool) -> None:
        checkpoints = {path: store.get(layout.CHECKPOINT_KEY) for path, store in self.stores.items()}
        lose(self, random, all_of_it=all_of_it)
        for path, checkpoint in checkpoints.items():
            if checkpoint is not None:
                self.write(path, {layout.CHECKPOINT_KEY: checkpoint})
                self.flush(path)

    with replaced(Disk, "lose_unflushed", lose_rows_only):
        yield None


@mutant(5, "What a failed cycle would have changed is kept in the table.")
def _overlay_survives_an_abort() -> Iterator[Any]:
    commit = TransactionalProducer.commit

    async def kept(self: TransactionalProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any) -> Any:
        try:
            return await commit(self, batches, group, offsets, **checks)
        except (KafkaError, SchedulerError):
            apply_at_once(overlay_of(self))
            raise

    with known_overlays() as (lane_type, overlay_of), replaced(TransactionalProducer, "commit", kept):
        yield lane_type


@mutant(5, "A fenced lane goes straight back to fencing, without asking whether the partition is still its own.")
def _zombie_without_confirmation() -> Iterator[Any]:
    async def unasked(self: Node, tp: Any) -> bool:
        await asyncio.sleep(0)
        return True

    with replaced(Node, "_confirm", unasked):
        yield None


@mutant(5, "After an error the lane goes on with what it has, without fencing and restoring.")
def _no_return_to_zero() -> Iterator[Any]:
    take_over, recover = Lane._take_over, Lane._recover

    class Careless(Lane):
        async def _take_over(self) -> None:
            if self.copy.table is None or self._producer is None:
                await take_over(self)

        async def _recover(self, error: BaseException) -> None:
            if self.copy.table is None or self._producer is None:
                await recover(self, error)
            else:
                self._producer._in_transaction = False

    yield Careless


@mutant(6, "A lane that went elsewhere is left running; and nobody looks for others' records.")
def _lost_lanes_go_on() -> Iterator[Any]:
    make = TransactionalProducer.__init__

    def own_id(self: TransactionalProducer, clients: Any, transactional_id: str) -> None:
        make(self, clients, f"{id(clients)}-{transactional_id}")

    async def deaf(self: Lane) -> None:
        await asyncio.sleep(0)

    with replaced(Lane, "close", deaf), replaced(TransactionalProducer, "__init__", own_id), nobody_looks():
        yield None
