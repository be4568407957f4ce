"""Room for pending schedules that partitions lend to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from light_scheduler.engine import room_lending as decisions
from light_scheduler.lanes.quotas import room_lending as lanes_lending
from light_scheduler.lanes.quotas.room_lending import RoomLending
from simulation.drawing_lending import draw_lending

from .planting import mutant, replaced


@mutant(2, "A partition keeps the room that it gives away.", 300, draw_lending)
def _room_is_given_and_kept() -> Iterator[Any]:
    with replaced(lanes_lending, "less", lambda lending, _: lending):
        yield None


@mutant(2, "An answer counts as often as it comes: nobody notes whom it has asked.", 300, draw_lending)
def _answers_count_twice() -> Iterator[Any]:
    answered = decisions.answered

    def twice(lending: Any, *answer: Any) -> Any:
        once = answered(lending, *answer)
        return once and msgspec.structs.replace(once, balance=2 * once.balance - lending.balance)

    with replaced(lanes_lending, "answered", twice):
        yield None


@mutant(3, "Room that was given is in the answer, and not in the state.", 600, draw_lending)
def _room_given_is_not_kept() -> Iterator[Any]:
    answer = RoomLending.answer

    def forgotten(self: RoomLending, *ask: Any) -> None:
        with replaced(RoomLending, "_keep", lambda self, name, lending: self._known.setdefault(name, lending)):
            answer(self, *ask)

    with replaced(RoomLending, "answer", forgotten):
        yield None


@mutant(2, "A partition is never given room.", 300, draw_lending)
def _nobody_gives_room() -> Iterator[Any]:
    with replaced(lanes_lending, "given", lambda *_: 0):
        yield None


@mutant(2, "A quota that has changed leaves what was lent before.", 1_000, draw_lending)
def _room_of_another_quota_counts() -> Iterator[Any]:
    under = decisions.under
    with replaced(lanes_lending, "under", lambda lending, version: lending or under(None, version)):
        yield None
