"""Schedules that move since the commands topic has grown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.lanes.growing.handover import HandoverPass
from light_scheduler.lanes.growing.moving import Moving
from light_scheduler.lanes.writes.partitions import PartitionWrites
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import Entry
from simulation.drawing_growth import draw_growth

from .planting import mutant, replaced


@mutant(2, "A schedule is handed over, and kept.", 300, draw_growth)
def _moved_and_kept() -> Iterator[Any]:
    move = Moving.move

    def kept(self: Moving, name: bytes, entry: Entry, key: bytes) -> bool:
        with replaced(Transaction, "remove", lambda *_: None):
            return move(self, name, entry, key)

    with replaced(Moving, "move", kept):
        yield None


@mutant(2, "A schedule is handed over in the transaction after the one that removes it.", 600, draw_growth)
def _handed_over_later() -> Iterator[Any]:
    begin, hand_over = PartitionWrites.__init__, PartitionWrites.hand_over
    late: dict[Any, list[tuple[bytes, bytes, int]]] = {}

    def and_what_was_left(self: PartitionWrites, transaction: Transaction, *rest: Any) -> None:
        begin(self, transaction, *rest)
        for schedule in late.pop(transaction.context, []):
            hand_over(self, *schedule)
        self.lane = transaction.context  # type: ignore[attr-defined]

    def not_yet(self: PartitionWrites, *schedule: Any) -> None:
        late.setdefault(self.lane, []).append(schedule)  # type: ignore[attr-defined]

    with replaced(PartitionWrites, "__init__", and_what_was_left), replaced(PartitionWrites, "hand_over", not_yet):
        yield None


@mutant(2, "The partition that a key belongs to asks nobody whether its schedule is there yet.", 300, draw_growth)
def _nobody_is_asked() -> Iterator[Any]:
    pass_on = Moving.pass_on

    def alone(self: Moving, record: Any, command: Any, name: bytes, current: Any, origin: Any) -> bool:
        key = self._key_of(record, command, current)
        is_here = origin is None and key is not None and not self.belongs_elsewhere(key)
        return not is_here and pass_on(self, record, command, name, current, origin)

    with replaced(Moving, "pass_on", alone):
        yield None


@mutant(2, "The former partition carries commands out that are not its own any more.", 300, draw_growth)
def _former_partition_goes_on() -> Iterator[Any]:
    with replaced(Moving, "_pass_home", lambda *_: False):
        yield None


@mutant(2, "The former partition passes a command on, and leaves its schedule where it is.", 300, draw_growth)
def _command_without_its_schedule() -> Iterator[Any]:
    pass_home = Moving._pass_home

    def alone(self: Moving, *arguments: Any) -> bool:
        with replaced(Moving, "move", lambda *_: True):
            return pass_home(self, *arguments)

    with replaced(Moving, "_pass_home", alone):
        yield None


@mutant(2, "Commands that are not back yet are overtaken.", 3_000, draw_growth)
def _questions_forgotten() -> Iterator[Any]:
    with replaced(Moving, "_lend", lambda *_: None):
        yield None


@mutant(2, "A partition says that it has handed over everything when it has looked at some.", 300, draw_growth)
def _done_too_soon() -> Iterator[Any]:
    advance = HandoverPass.advance

    def at_once(self: HandoverPass, moving: Moving, *rest: Any) -> Any:
        slice = advance(self, moving, *rest)
        if not slice.is_last:
            moving.finish()
        return slice._replace(is_last=True)

    with replaced(HandoverPass, "advance", at_once):
        yield None


@mutant(2, "A record that moves a schedule counts as often as it comes.", 600, draw_growth)
def _adopted_twice() -> Iterator[Any]:
    hand_over = PartitionWrites.hand_over

    def twice(self: PartitionWrites, *schedule: Any) -> None:
        hand_over(self, *schedule)
        hand_over(self, *schedule)

    with replaced(PartitionWrites, "hand_over", twice):
        yield None
