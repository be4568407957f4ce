"""Partitions of the commands topic that take nothing for a while."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.lanes.failures.markers import Markers, _Touched
from light_scheduler.lanes.failures.transactions import Failures
from light_scheduler.lanes.writes.waiting import WaitingWrites
from simulation.drawing_away import draw_away, draw_leaderless

from .planting import mutant, replaced


@mutant(2, "What is for a partition that takes nothing is sent there all the same.", 300, draw_away)
def _partitions_away_are_written_to() -> Iterator[Any]:
    with replaced(WaitingWrites, "holds", lambda *_: False):
        yield None


@mutant(2, "What comes for a partition overtakes what has waited for it.", 1_000, draw_away)
def _waiting_writes_are_overtaken() -> Iterator[Any]:
    with replaced(WaitingWrites, "holds", lambda self, partition: self.is_away(partition)):
        yield None


@mutant(2, "What has waited for a partition waits on when it is sent.", 300, draw_away)
def _waiting_writes_stay() -> Iterator[Any]:
    def kept(self: WaitingWrites, partition: int, queue: Any) -> None:
        if queue.first:
            self._queues.pop(partition, None)
        else:
            keep(self, partition, queue)

    keep = WaitingWrites._keep
    with replaced(WaitingWrites, "_keep", kept):
        yield None


@mutant(2, "What waits for a partition is not in the state of the lane.", 300, draw_away)
def _waiting_writes_are_lost() -> Iterator[Any]:
    write = WaitingWrites.write

    def unless_held(self: WaitingWrites, partition: int, record: Any) -> None:
        if not self.is_away(partition):
            write(self, partition, record)

    with replaced(WaitingWrites, "write", unless_held):
        yield None


@mutant(5, "A lane does not learn which partition has not answered it.", 300, draw_away)
def _silence_is_forgotten() -> Iterator[Any]:
    stalled = Failures.stalled

    def and_suspects_nobody(self: Failures, error: Any) -> Any:
        own = self._context.commands_topic
        return [place for place in stalled(self, error) if place[0] != own]

    with replaced(Failures, "stalled", and_suspects_nobody):
        yield None


@mutant(3, "A lane does not notice that what it passed on may lack its marker.", 300, draw_leaderless)
def _missing_markers_are_not_noticed() -> Iterator[Any]:
    with replaced(Markers, "distrust", lambda _: None):
        yield None


@mutant(3, "What was passed on and lacks its marker is aborted, although it was committed.", 300, draw_leaderless)
def _missing_markers_are_all_of_aborts() -> Iterator[Any]:
    with replaced(_Touched, "lacks_commit", lambda *_: False):
        yield None
