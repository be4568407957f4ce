"""Commands topics that are created again, or take only smaller records, while something waits for a partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.lanes.bulk.commands import BulkCommands
from light_scheduler.lanes.cycle.routing import CommandRouting
from light_scheduler.lanes.cycle.stranded import StrandedWrites
from light_scheduler.lanes.cycles import LaneCycles
from light_scheduler.lanes.writes.waiting import WaitingWrites
from simulation.drawing_anew import draw_anew

from .planting import mutant, replaced


@mutant(2, "What waits for the partition of a deleted topic is sent to that of the new one.", 2_000, draw_anew)
def _waiting_writes_are_for_any_topic() -> Iterator[Any]:
    with replaced(WaitingWrites, "_is_of_another_topic", lambda *_: False):
        yield None


@mutant(2, "What waits for a partition that the topic does not have any more waits for ever.", 500, draw_anew)
def _waiting_writes_outlast_their_partition() -> Iterator[Any]:
    with replaced(
        WaitingWrites,
        "_may_send",
        lambda self, partition: partition < self._there and partition not in self._away,
    ):
        yield None


@mutant(2, "What has become too large for its topic holds up what is behind it.", 500, draw_anew)
def _too_large_writes_wait_on() -> Iterator[Any]:
    strand = StrandedWrites.strand

    def unless_too_large(self: StrandedWrites, partition: int, number: int, record: Any, refusal: Any = None) -> None:
        if refusal is None:
            strand(self, partition, number, record)
        else:
            self._waiting.write(partition, record)

    with replaced(StrandedWrites, "strand", unless_too_large):
        yield None


@mutant(2, "A command that cannot be sent any more is forgotten.", 500, draw_anew)
def _stranded_commands_are_forgotten() -> Iterator[Any]:
    with replaced(StrandedWrites, "_end_command", lambda *_: None):
        yield None


@mutant(2, "A bulk command waits for the report of a partition that has never got its copy.", 500, draw_anew)
def _missing_copies_are_waited_for() -> Iterator[Any]:
    with replaced(BulkCommands, "miss", lambda *_: None):
        yield None


@mutant(2, "A delayed command still says of partitions what held in a deleted topic.", 500, draw_anew)
def _delayed_commands_are_for_any_topic() -> Iterator[Any]:
    with replaced(CommandRouting, "lost_origin", lambda *_: None):
        yield None


@mutant(3, "A lane does not look whether its commands topic is still the same.", 500, draw_anew)
def _topics_are_taken_to_stay_the_same() -> Iterator[Any]:
    async def unlooked(*_: Any) -> None:
        pass

    with replaced(LaneCycles, "_check_input", unlooked):
        yield None
