"""The order of the steps in a cycle, whoever runs it: a lane, the scheduler in memory, or a test.

    take   executes what has waited, commands, and bulk commands
    fire   executes due schedules, then answers

Between the two, the caller scans for due schedules and resolves the topics that they and the answers go to. A schedule
that a command of the same cycle cancels is no longer due then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from light_scheduler.engine import FairQueue
from light_scheduler.engine.command_rates import CommandRates
from light_scheduler.lanes.context.lane_context import Refusals
from light_scheduler.lanes.failures.failing_work_search import EVERYTHING, Kind, Work
from light_scheduler.lanes.failures.held_firings import Holding
from light_scheduler.model.tenant_rules import TenantBook
from light_scheduler.tables import DueScan
from light_scheduler.tables.due_scan import Waits
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.record import arrived

from .budget import TurnBudget
from .cycle import Cycle
from .removal import Removal

MAX_FIRING_BYTES = 8 << 20
MAX_BULK = 500
"""Limits of a cycle: bytes of firings, and schedules changed by bulk commands. For other limits, see `budget`."""


class CommandSource(Protocol):
    """The commands of a partition, in order."""

    @property
    def is_behind(self) -> bool:
        """Whether there are commands that must be executed before anything fires."""

    @property
    def is_held(self) -> bool:
        """Whether the next command has to wait, for example for its schema."""

    def take(self, most: int) -> list[CommandRecord]:
        """Take up to `most` of the next commands."""


@dataclass(frozen=True, slots=True)
class CycleSize:
    """The limits of a cycle: `most` pieces, or `max_bytes`, of each of these `kinds` of work.

    `most_bulk` limits the schedules that bulk commands change. To isolate failing work, `works` collects what the cycle
    executes, and waiting records count as delayed commands.
    """

    most: int
    max_bytes: int = MAX_FIRING_BYTES
    most_bulk: int = MAX_BULK
    kinds: frozenset[Kind] = EVERYTHING
    works: list[Work] | None = None


class Taken(NamedTuple):
    """What `take` has executed: `read` commands, of which the last new one ends before `position`.

    It `is_caught_up` if no delayed command is left that can be executed. Due schedules `may_fire` unless other work
    comes first.
    """

    read: int
    position: int | None
    is_bulk_at_work: bool
    is_caught_up: bool
    may_fire: bool


class CycleSteps:
    """The steps of one partition's cycles, and who comes first in the next cycle.

    It `is_catching_up` after a backlog, while older delayed commands are left.
    """

    def __init__(self) -> None:
        self.is_catching_up = False
        self._delayed_turns = FairQueue()
        self._bulk_turn = 0
        self._removal = Removal()

    def begin(self, commands: CommandSource) -> None:
        """Begin a cycle. What an uncommitted cycle did does not count."""
        self._delayed_turns.begin()
        self.is_catching_up |= commands.is_behind

    def take(
        self,
        cycle: Cycle,
        commands: CommandSource,
        size: CycleSize,
        unread_since: Callable[[str], int | None] = lambda _: None,
    ) -> Taken:
        """Execute what has waited, new commands, and bulk commands. Raises WorkFailedError as `Cycle.take_all` does.

        `unread_since` returns when the first unread command of a tenant was recorded (UTC epoch ms), or None.
        """
        most, max_bytes, kinds, works = size.most, size.max_bytes, size.kinds, size.works
        is_behind = commands.is_behind
        cycle.moving.note_waits()
        cycle.rate_lending.receive()
        sent = cycle.send_waiting(most, max_bytes) if Kind.DELAYED in kinds else 0
        if works is not None:
            works += cycle.stranded.works
        left = most if works is None else most - sent
        is_caught_up = not is_behind and Kind.DELAYED in kinds and self._take_delayed(cycle, size, left)
        records = commands.take(most) if Kind.COMMAND in kinds else []
        read, position = len(records), records[-1].offset + 1 if records else None
        if (log := cycle.transaction.overlay.log_number) > 0:
            records = [arrived(record, log) for record in records]
        if works is not None:
            works += [Work(Kind.COMMAND, record.offset) for record in records]
        records.reverse()
        cycle.take_all(records, most if is_behind and works is None else 0, max_bytes)
        read += cycle.delaying.taken + sent
        is_held_up = self.is_catching_up and not is_caught_up  # also while there is a backlog
        if not is_held_up or commands.is_held:
            cycle.rate_lending.answer(unread_since)
        most_bulk = min(most, size.most_bulk)
        is_bulk_at_work = Kind.BULK in kinds and cycle.advance_bulk(most_bulk, max_bytes, self._bulk_turn)
        if Kind.BULK in kinds and cycle.transaction.tenants.deleted:
            self._removal.advance(cycle.transaction, most_bulk, max_bytes)
        may_fire = Kind.FIRING in kinds and not is_held_up  # an older command may cancel a due schedule
        return Taken(read, position, is_bulk_at_work, is_caught_up, may_fire)

    def fire(
        self,
        cycle: Cycle,
        due: DueScan,
        turns: TurnBudget,
        *,
        held: dict[str, float] | None = None,
        refusals: Refusals | None = None,
        waits: Waits | None = None,
        holding: Holding | None = None,
        traced: bool = False,
    ) -> int:
        """Execute due schedules, then answer. Return how many answers cannot be delivered.

        `held` has the tenants that have to wait for a cap, with the cap. For the rest see `Cycle.fire_due` and
        `Cycle.answer`.
        """
        refusals = {} if refusals is None else refusals
        cycle.rate_lending.hold_firings(held or {})
        cycle.rate_lending.ask()
        cycle.fire_due(due, refusals, turns, traced=traced, waits=waits)
        return cycle.answer(refusals, holding)

    def rested(self, taken: Taken) -> None:
        """Note that a cycle had nothing to commit."""
        self.is_catching_up &= not taken.is_caught_up

    def commit(self, cycle: Cycle, taken: Taken, command_rates: CommandRates) -> None:
        """Count what a committed cycle did."""
        self.rested(taken)
        self._delayed_turns.commit()
        self._bulk_turn += taken.is_bulk_at_work
        command_rates.commit()
        cycle.rate_lending.commit()

    def has_removed(self, tenants: TenantBook) -> bool:
        """Return whether nothing is left of the tenants that are deleted."""
        return self._removal.is_over(tenants)

    def _take_delayed(self, cycle: Cycle, size: CycleSize, left: int) -> bool:
        """Execute up to `left` delayed commands. Return whether none is left that can be executed."""
        works = cycle.take_delayed(left, size.max_bytes, self._delayed_turns, catches_up=self.is_catching_up)
        if size.works is not None:
            size.works.extend(works)
        return len(works) < left and cycle.delaying.taken_bytes <= size.max_bytes
