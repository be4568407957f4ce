"""Schedules as the model has them, and who has those that move since the topic has grown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from light_scheduler.model.partitioning import Partitioning
from light_scheduler.wire import partition_for

from .log import Record
from .many import Many
from .names import TARGET
from .records import Sent, header, is_for_many, place, sent, text
from .violation import Violation

if TYPE_CHECKING:
    from .model import Partition


class Pending(NamedTuple):
    """A schedule as the model has it. `accepted` is the number of the commit that accepted it, or let it go on."""

    version: int
    due: int
    payload: bytes | None
    offset: int
    accepted: int
    tenant: str
    paused: bool = False
    target: str = TARGET
    partition: int | None = None
    adopted: int = -1
    """The offset of the record that moved it here; -1: none did."""


@dataclass
class Moves:
    """Schedules that are moved since the topic has grown, and who has them; all partitions share it."""

    holders: dict[str, int | Sent] = field(default_factory=dict)
    """Id -> the partition that has its schedule, or the record that moves it."""
    moved: dict[Sent, Pending] = field(default_factory=dict)
    """Record that moves a schedule -> the schedule."""
    answered: set[Sent] = field(default_factory=set)
    last: dict[tuple[str, int], int] = field(default_factory=dict)
    """(id, partition that a command was sent to) -> offset of the command that was carried out last."""
    models: Sequence[Partition] = ()
    """All partitions."""

    def pending(self) -> dict[str, Pending]:
        """Return all schedules, wherever they are."""
        found = {text_id: pending for model in self.models for text_id, pending in model.pending.items()}
        return found | {id: self.moved[at] for id, at in self.holders.items() if not isinstance(at, int)}

    def arrive(self, arrived: Iterable[tuple[Sent, Sent]]) -> None:
        """Records that have waited for a partition are in its log: each had another place, and has this one."""
        for before, at in arrived:
            if before in self.moved:
                self.moved[at] = self.moved.pop(before)
                self.holders |= {id: at for id, holder in self.holders.items() if holder == before}

    def answer(self, command: Record, partitions: int, many: Iterable[Many] = ()) -> None:
        """A command is carried out: once, and after those that were sent before it to the partition of its key.

        So it is before those of `many` that were sent there after it.
        """
        id, origin = text(command.key), sent(command)
        if origin in self.answered:
            raise Violation(f"{origin} was carried out twice")
        self.answered.add(origin)
        if partition_for(id.encode(), partitions) == origin[0]:
            if self.last.get((id, origin[0]), -1) > origin[1]:
                raise Violation(f"{origin} of {id} was carried out after {self.last[id, origin[0]]}")
            if late := [each.origin for each in many if each.overtakes(id, origin)]:
                raise Violation(f"{origin} of {id} was carried out after {late}")
            self.last[id, origin[0]] = origin[1]

    def hold(self, id: str, number: int, pending: dict[str, Pending]) -> None:
        """A command for an id is carried out in a partition: its schedule must be nowhere else, before or after."""
        if self.holders.get(id, number) != number:
            raise Violation(f"a command for {id} was carried out in {number}; it is in {self.holders[id]}")
        if id in pending:
            self.holders[id] = number
        else:
            self.holders.pop(id, None)

    def finish(self, models: Sequence[Partition], partitioning: Partitioning) -> None:
        """At the end nothing is under way, and everything is where it belongs."""
        if self.moved:
            raise Violation(f"never taken over: {self.moved}")
        missing = {
            place(command)
            for model in models
            for command in model.commands
            if header(command, "kind") and sent(command) == place(command) and not is_for_many(command)
        } - self.answered
        if missing:
            raise Violation(f"never carried out: {missing}")
        if partitioning.partitions != len(models) or not partitioning.is_settled:
            raise Violation(f"there are {len(models)} partitions; {partitioning}")
        for model in models:
            if stray := [id for id in model.pending if partition_for(id.encode(), len(models)) != model.number]:
                raise Violation(f"{stray} are in {model.number} of {len(models)}")
