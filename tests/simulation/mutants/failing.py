"""Step 5: how a lane that failed goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.lanes.failures.failing_work_search import FailingWorkSearch, Kind, Work
from simulation.drawing import draw_nameless

from .planting import mutant, replaced


@mutant(5, "Work that fails alone is never to blame.", 20, draw_nameless)
def _nothing_is_condemned() -> Iterator[Any]:
    with replaced(FailingWorkSearch, "_blamed", lambda _: None):
        yield None


@mutant(5, "A success of one kind of work makes room for all others, too.", 20, draw_nameless)
def _kinds_share_a_limit() -> Iterator[Any]:
    succeeded = FailingWorkSearch.succeeded

    def for_all(self: FailingWorkSearch, works: list[Work]) -> Work | None:
        is_control, blamed = self._is_control_due, succeeded(self, works)
        if self.is_active and not is_control:
            self._limits = dict.fromkeys(Kind, max(self._limits.values()))
        return blamed

    with replaced(FailingWorkSearch, "succeeded", for_all):
        yield None
