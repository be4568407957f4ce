"""Step 0: fencing, restoring, and where the lane reads on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.lanes.input.intake import Intake
from light_scheduler.lanes.lane import Lane
from light_scheduler.tables import Overlay
from light_scheduler.tables import local_copy as local_copy_module
from light_scheduler.tables import recovery as recovery_module
from light_scheduler.tables import standby as standby_module
from light_scheduler.tables import usable_copy as usable_copy_module
from light_scheduler.tables.recovery import Restored, restore
from simulation.clients import Reader
from simulation.drawing import draw_frozen_owner, draw_frozen_standby
from simulation.kafka import Kafka
from simulation.log import Log, Place, Record

from .planting import mutant, nobody_looks, replaced


@mutant(0, "The table is restored before the former owner is fenced.")
def _read_before_fencing() -> Iterator[Any]:
    fence, take_over = TransactionalProducer.fence, Lane._take_over

    async def not_yet(_: TransactionalProducer) -> None:
        """Nobody is fenced."""

    class Hasty(Lane):
        async def _take_over(self) -> None:
            bring_up = self.copy.bring_up

            async def and_then_fence(**markers: bool) -> Any:
                brought_up = await bring_up(**markers)
                assert self._producer is not None
                await fence(self._producer)
                return brought_up

            with replaced(self.copy, "bring_up", and_then_fence):
                await take_over(self)

    with replaced(TransactionalProducer, "fence", not_yet):
        yield Hasty


@mutant(0, "Nobody writes the markers that a broker has dropped in a changelog.")
def _dropped_markers_stay_away() -> Iterator[Any]:
    def not_written(_: Kafka, transactional_id: str, changelog: Place) -> None:
        """They are left out."""

    with replaced(Kafka, "write_dropped", not_written):
        yield None


@mutant(0, "A restore ends when a fetch brings nothing, instead of at the end offset.")
def _restore_to_last_record() -> Iterator[Any]:
    getmany = Reader.getmany

    async def all_there_is(self: Reader, *, timeout_ms: int) -> Any:
        fetched = await getmany(self, timeout_ms=timeout_ms)
        if not fetched:
            self._at = dict.fromkeys(self._at, 1 << 40)
        return fetched

    with replaced(Reader, "getmany", all_there_is):
        yield None


@mutant(0, "A restore waits for a record at the end offset, where there may be a marker.")
def _restore_waits_for_the_last_record() -> Iterator[Any]:
    async def after_the_last_record(self: Reader, tp: Any) -> int:
        seen = self._kafka.log((tp.topic, tp.partition)).committed(0, self._at[tp])
        return seen[-1].offset + 1 if seen else 0

    with replaced(Reader, "position", after_the_last_record):
        yield None


@mutant(0, "A restore reads what was aborted, too.")
def _restore_uncommitted() -> Iterator[Any]:
    def everything(log: Log, start: int, end: int) -> list[Record]:
        return [log.entries[offset][1] for offset in range(start, end) if offset in log.entries]

    with replaced(Reader, "visible", staticmethod(everything)):
        yield None


@mutant(0, "A restore does not wait for markers, and no transaction looks what its records follow on.")
def _markers_are_not_waited_for() -> Iterator[Any]:
    async def what_can_be_read(reader: Any, changelog: Any, at: int, **_: bool) -> int:
        return max(at, int((await reader.end_offsets([changelog]))[changelog]))

    with replaced(local_copy_module, "decided_end", what_can_be_read), nobody_looks():
        yield None


@mutant(0, "What was committed but not applied is not applied when the lane starts again.")
def _no_replay() -> Iterator[Any]:
    replay, passed_over = Overlay.replay, set()

    async def only_into_empty_tables(table: Any, *args: Any, **named: Any) -> Restored:
        if table.checkpoint.changelog_offset:
            passed_over.add(table)
        restored = await restore(table, *args, **named)
        passed_over.discard(table)
        return restored

    def replay_unless_passed_over(self: Overlay, key: bytes, value: bytes | None) -> None:
        if self._table not in passed_over:
            replay(self, key, value)

    with (
        replaced(local_copy_module, "restore", only_into_empty_tables),
        replaced(Overlay, "replay", replay_unless_passed_over),
    ):
        yield None


@mutant(0, "The lane reads on from the group's offset, looked up before it fenced, instead of the restored one.")
def _seek_to_the_groups_offset() -> Iterator[Any]:
    take_over, open_intake = Lane._take_over, Intake.open

    class Misled(Lane):
        async def _take_over(self) -> None:
            services: Any = self._services
            offset = services.clients.node.world.kafka.group_offsets.get(self.tp, 0)
            with replaced(self.intake, "open", lambda _, end: open_intake(self.intake, offset, end)):
                await take_over(self)

    yield Misled


@mutant(0, "A local copy is used however old it is.", within=100, draw=draw_frozen_owner)
def _stale_table() -> Iterator[Any]:
    def no_flaw(*_: Any) -> None:
        """It is as good as ever."""

    with replaced(usable_copy_module, "flaw_of", no_flaw), replaced(local_copy_module, "flaw_of", no_flaw):
        yield None


@mutant(0, "A copy is brought up to date although tombstones may be gone by now.", within=100, draw=draw_frozen_standby)
def _stale_standby() -> Iterator[Any]:
    with (
        replaced(standby_module, "check_fresh", lambda *_: None),
        replaced(recovery_module, "check_fresh", lambda *_: None),
    ):
        yield None


@mutant(0, "Lanes have transactional ids of their process, so nobody is fenced; and nobody looks for others' records.")
def _nobody_is_fenced() -> Iterator[Any]:
    make = TransactionalProducer.__init__

    def own_id(self: TransactionalProducer, clients: Any, transactional_id: str) -> None:
        make(self, clients, f"{id(clients.node)}-{transactional_id}")

    with replaced(TransactionalProducer, "__init__", own_id), nobody_looks():
        yield None
