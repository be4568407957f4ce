"""How a bug is planted, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from light_scheduler.kafka.continuity import Continuity
from light_scheduler.lanes.lane import Lane
from simulation.drawing import draw
from simulation.history import History

Plant = Callable[[], AbstractContextManager[type[Lane]]]


@dataclass(frozen=True)
class Mutant:
    """A bug. `step` of the protocol is where it is; it must be caught `within` that many of the histories that `draw`
    makes up."""

    step: int
    what: str
    plant: Plant
    within: int
    draw: Callable[[int], History] = draw


MUTANTS: dict[str, Mutant] = {}


def mutant(
    step: int, what: str, within: int = 2_000, draw: Callable[[int], History] = draw
) -> Callable[[Callable[[], Iterator[Any]]], None]:
    def register(plant: Callable[[], Iterator[Any]]) -> None:
        @contextmanager
        def planted() -> Iterator[type[Lane]]:
            with contextmanager(plant)() as lane_type:
                yield lane_type or Lane

        MUTANTS[plant.__name__.strip("_").replace("_", "-")] = Mutant(step, what, planted, within, draw)

    return register


def replaced(owner: Any, name: str, value: Any) -> Any:
    return patch.object(owner, name, value)


def nobody_looks() -> AbstractContextManager[Any]:
    """Have no transaction look what its records follow on: that makes up for much of what fencing is for."""

    async def look_at_nothing(*_: Any) -> None: ...

    return replaced(Continuity, "check", look_at_nothing)  # type: ignore[no-any-return]
