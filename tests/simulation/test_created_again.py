"""A commands topic is deleted and created again, and the first transaction of its lane after that fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from light_scheduler.errors import CycleTimeout
from light_scheduler.lanes.lane import Lane
from light_scheduler.tables import Overlay, ScheduleTable
from simulation.history import History, Send
from simulation.node import Node
from simulation.playing import play

CREATED_AGAIN_S = 5.0
SENDS = tuple(Send(at, 0, "schedule", id, 100_000, b"x", None) for at, id in ((1.0, "a"), (6.0, "b")))


@pytest.fixture(autouse=True)
def _created_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def id_of(node: Node, _topic: str) -> str:
        return "old" if node.world.loop.time() < CREATED_AGAIN_S else "new"

    monkeypatch.setattr(Node, "commands_id", id_of)


def known_after_each_start(fail: Callable[[], None]) -> list[tuple[bool, str]]:
    """Play, and `fail` with the first cycle in the new log.

    Return whether the lane knew after each start that it is in another log, and which topic its copy on disk had.
    """
    known: list[tuple[bool, str]] = []

    class Watched(Lane):
        async def _take_over(self) -> None:
            await super()._take_over()
            assert self.copy.table is not None
            stored = ScheduleTable(self.copy.table.store).checkpoint.commands_log
            known.append((self.input.is_in_another_log, "" if stored is None else stored.topic_id))

        async def _cycle(self) -> None:
            if self.input.is_in_another_log and [is_other for is_other, _ in known].count(True) == 1:
                fail()
            await super()._cycle()

    play(History(0, 1, 1, SENDS, (), ()), lambda: nullcontext(Watched))
    return known


def test_a_lane_that_fails_before_it_has_stored_the_new_topic_finds_out_again() -> None:
    """So it would in another process: its copy must not have what the changelog does not."""

    def fail() -> None:
        raise CycleTimeout("a transaction took too long")

    assert known_after_each_start(fail) == [(False, ""), (True, "old"), (True, "old")]


def test_a_lane_that_has_stored_the_new_topic_forgets_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the transaction stored about a growth of the new topic counts, though the lane fails after it."""
    apply = Overlay.apply

    def fail() -> None:
        monkeypatch.setattr(Overlay, "apply", fails_once)

    def fails_once(*_: object, **__: object) -> None:
        monkeypatch.setattr(Overlay, "apply", apply)
        raise OSError("the table cannot be written")

    assert known_after_each_start(fail) == [(False, ""), (True, "old"), (False, "new")]
