"""Step 1: which commands and firings are taken, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.lanes.input.incoming import Incoming
from light_scheduler.lanes.input.intake import Intake

from .planting import mutant, replaced


@mutant(1, "What is due is fired before the commands that waited were read.")
def _fire_before_the_backlog() -> Iterator[Any]:
    def never(_: Incoming) -> bool:
        return False

    with replaced(Incoming, "is_behind", property(never)):
        yield None


@mutant(1, "The backlog counts as taken when its first commands have been.")
def _backlog_ends_too_soon() -> Iterator[Any]:
    def opened(self: Intake, position: int, backlog_end: int) -> None:
        begin(self, position, min(backlog_end, position + 1))

    begin = Intake.open
    with replaced(Intake, "open", opened):
        yield None


@mutant(1, "A batch is taken wherever it begins.")
def _gaps_are_taken() -> Iterator[Any]:
    offer = Intake.offer

    def anywhere(self: Intake, epoch: int, first: int, records: Any) -> None:
        offer(self, epoch, self.next_offset, records)

    with replaced(Intake, "offer", anywhere):
        yield None


@mutant(1, "Batches from before the lane started again are taken.")
def _void_batches_are_taken() -> Iterator[Any]:
    offer = Intake.offer

    def ever(self: Intake, epoch: int, first: int, records: Any) -> None:
        offer(self, self.epoch, self.next_offset, records)

    with replaced(Intake, "offer", ever):
        yield None
