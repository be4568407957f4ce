"""Bulk commands of all partitions: which parts they have, what these have changed, and who has reported.

While the topic grows, a bulk command is copied in two steps: to the partitions that there were before, and by each of
those to all that its schedules may move to. A lane that has not heard of the growth, or has heard that it is over,
copies it as ever. Whatever they know, each schedule that was there before is met once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any, NamedTuple

from light_scheduler.model.bulk import SUB_TOTAL
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import BULK_REACH, FLAT_REACH

from .log import Record
from .records import Sent, header, place, sent
from .violation import Violation

CHANGES = {"cancel": "cancelled", "pause": "paused", "resume": "resumed"}
"""What commands that a bulk command may be do to a schedule."""

Part = tuple[int, int | None]
"""The partition of a part, and the former one whose schedules it is for; None: for all that are there."""


class Sizes(NamedTuple):
    """How many partitions a topic has at first and at last."""

    first: int
    last: int

    def former_of(self, id: str, number: int) -> int:
        """Return which former partition speaks for a schedule of a partition."""
        if partition_for(id.encode(), self.last) == number:
            return partition_for(id.encode(), self.first)
        return number % self.first

    def homes(self, number: int) -> set[int]:
        """Return where schedules of a partition may move to."""
        step = gcd(self.first, self.last)
        return {each for each in range(self.last) if each % step == number % step and each != number}


class Begun(NamedTuple):
    """A part, which may be `former`'s."""

    former: int | None


class Owed(NamedTuple):
    """An event that history is to tell of, for a schedule that a part of a bulk command has changed."""

    event: str
    id: str
    origin: Sent
    former: int | None


@dataclass
class Many:
    """A bulk command that was sent. `due` are the schedules that it is still to change; it may meet others too."""

    origin: Sent
    verb: str
    id: str
    due: dict[str, Any] = field(default_factory=dict)
    changed: Counter[Part] = field(default_factory=Counter)
    copies: set[Sent] = field(default_factory=set)
    """Where it was read as a copy that is not for one former partition only."""
    answered: bool = False
    _is_everywhere: bool = False
    _met: set[str] = field(default_factory=set)
    _awaited: set[int] = field(default_factory=set)
    _spread: dict[int, set[int]] = field(default_factory=dict)
    _begun: set[Part] = field(default_factory=set)
    _reported: set[Part] = field(default_factory=set)

    def names(self, id: str) -> bool:
        """Return whether it is for an id."""
        return id.startswith(self.id.removesuffix("*"))

    def overtakes(self, id: str, sent: Sent) -> bool:
        """Return whether it was sent to the same partition as a command for a schedule, and after that."""
        return self.names(id) and self.origin[0] == sent[0] and self.origin[1] > sent[1]

    def has_begun(self, id: str, number: int, sizes: Sizes) -> bool:
        """Return whether a partition has begun the part that a schedule there is dealt with in.

        If it has begun one for all of its schedules, that may be for those of other former partitions too, or not.
        """
        former = sizes.former_of(id, number)
        if (number, former) in self._begun:
            return True
        if (number, None) not in self._begun:
            return False
        return former == number or self._is_everywhere

    def begin(self, command: Record, made: Sequence[Record], sizes: Sizes, number: int) -> Begun | None:
        """It is read in a partition, with the copies made of it there; return which part begins."""
        parts = {copy.partition for copy in made if kind_of(copy) == "part"}
        others = {copy.partition for copy in made if kind_of(copy) != "part"}
        if len(parts) + len(others) != len(made):
            raise Violation(f"copies of {self.origin} were made twice: {made}")
        if kind_of(command) == "part":
            former = sent(command)[0]
            if made or number not in self._spread.get(former, ()):
                raise Violation(f"{place(command)} is a part of {self.origin} for {former}: {self._spread}, {made}")
            return self._start(number, former)
        if sent(command) == place(command):
            self._copy(others, sizes, number, is_tree=any(kind_of(copy) == "tree" for copy in made))
        elif others:
            raise Violation(f"a copy of {self.origin} was copied to {others}")
        if parts:
            if parts != sizes.homes(number):
                raise Violation(f"{self.origin} was copied to {parts} by {number}")
            self._spread[number] = parts | {number}
        return self._start(number, number if parts else None) if number in self._awaited else None

    def _copy(self, others: set[int], sizes: Sizes, number: int, *, is_tree: bool) -> None:
        everywhere, before = set(range(sizes.last)), set(range(sizes.first))
        if others not in (everywhere - {number}, before - {number}) or (is_tree and others != before - {number}):
            raise Violation(f"{self.origin} was copied to {others}")
        self._is_everywhere = not is_tree and others == everywhere - {number}
        self._awaited = others | ({number} & before if is_tree else {number})

    def _start(self, number: int, former: int | None) -> Begun:
        if (number, former) in self._begun:
            raise Violation(f"{self.origin} was begun twice in {number} for {former}")
        self._begun.add((number, former))
        return Begun(former)

    def change(self, id: str, number: int, former: int | None) -> None:
        """A part has changed a schedule."""
        if id in self._met:
            raise Violation(f"{self.origin} has changed {id} twice")
        self._met.add(id)
        self.due.pop(id, None)
        self.changed[number, former] += 1

    def touched(self, id: str) -> None:
        """Another command is carried out on a schedule: what this one has to do with it is open."""
        self._met.discard(id)
        self.due.pop(id, None)

    def report(self, to: Sent, number: int, changed: int, owed: Iterable[Owed]) -> None:
        """A partition reports what it has changed: as a part of a former one, or all that it is to answer for."""
        part = (number, to[0]) if to[1] >= SUB_TOTAL else (number, None)
        expected = self.changed[part] if to[1] >= SUB_TOTAL else self._done(number, owed)
        if part in self._reported or changed != expected or owes(owed, self.origin, part[1]):
            raise Violation(f"partition {number} reports {changed} of {self}, and owes {owed}")
        self._reported.add(part)

    def answer(self, number: int, owed: Iterable[Owed]) -> None:
        """It is answered in a partition."""
        if number in self._awaited:
            self._done(number, owed)
        waiting = {each for each in self._awaited - {number} if (each, None) not in self._reported}
        if self.answered or waiting:
            raise Violation(f"{self} was answered before {waiting} reported")
        self.answered = True

    def _done(self, number: int, owed: Iterable[Owed]) -> int:
        """Return what a partition is to report of itself and of its parts, all of which have to be done."""
        if number not in self._spread:
            if owes(owed, self.origin, None):
                raise Violation(f"{number} owes {owed} of {self}")
            return self.changed[number, None]
        waiting = {each for each in self._spread[number] - {number} if (each, number) not in self._reported}
        if waiting or owes(owed, self.origin, number):
            raise Violation(f"{number} waits for {waiting} of {self}, and owes {owed}")
        return sum(self.changed[each, number] for each in self._spread[number])


def owes(owed: Iterable[Owed], origin: Sent, former: int | None) -> bool:
    """Return whether a part has changed something that history does not tell of yet."""
    return any((each.origin, each.former) == (origin, former) for each in owed)


def many_of(all: dict[Sent, Many], command: Record) -> Many:
    """Return the bulk command that a record is, or is a copy of."""
    origin = sent(command)
    if kind_of(command) == "part":
        return many_by_copy(all, origin)
    if origin == place(command):
        verb, id = header(command, "schedule-command"), header(command, "schedule-id")
        return all.setdefault(origin, Many(origin, verb, id))
    many = all[origin]
    many.copies.add(place(command))
    return many


def many_by_copy(all: Mapping[Sent, Many], to: Sent) -> Many:
    """Return the bulk command that was read at an offset of a partition, or whose sub-total has its number."""
    at = to[0], to[1] % SUB_TOTAL
    for many in all.values():
        if at == many.origin or at in many.copies:
            return many
    raise Violation(f"nobody has sent what {to} is about")


def kind_of(copy: Record) -> str:
    """Return for what a copy of a bulk command is: flat, tree or part; empty if it does not say."""
    return (header(copy, BULK_REACH) or header(copy, FLAT_REACH)).partition(":")[0].rstrip("0123456789")
