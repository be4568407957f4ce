"""One cycle of a lane: commands and due schedules become state changes and records.

The engine decides, and the lane sends: a cycle turns decisions into batches, in a `Transaction`. A dropped cycle leaves
no trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from light_scheduler.engine import FairQueue
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.lanes.bulk.commands import BulkCommands
from light_scheduler.lanes.context.lane_context import CycleContext, OriginKey, Refusals, origin_key
from light_scheduler.lanes.context.tracing import TracedEvent
from light_scheduler.lanes.failures.condemned_work import Condemned, blaming
from light_scheduler.lanes.failures.failing_work_search import Kind, Work
from light_scheduler.lanes.failures.held_firings import Holding
from light_scheduler.lanes.failures.restrictions import UNRESTRICTED, Restrictions
from light_scheduler.lanes.growing.moving import Moving
from light_scheduler.lanes.quotas.admission import Admission
from light_scheduler.lanes.writes.answers import Answers
from light_scheduler.lanes.writes.partitions import PartitionWrites
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.lanes.writes.waiting import WaitingWrites
from light_scheduler.model import Entry, EventType, Outcome, Result
from light_scheduler.tables import DueScan, Overlay
from light_scheduler.tables.due_scan import Waits
from light_scheduler.wire import CommandRecord

from .budget import TurnBudget
from .commands import Commands
from .firing_order import Turns
from .firings import Firings
from .routing import CommandRouting
from .stranded import StrandedWrites


class Cycle:
    """Collects the effects of commands, bulk commands and due schedules."""

    def __init__(
        self,
        context: CycleContext,
        overlay: Overlay,
        batches: RecordBatches,
        now: int,
        restrictions: Restrictions = UNRESTRICTED,
    ) -> None:
        self.transaction = transaction = Transaction(context, overlay, batches, now)
        self._condemned = Condemned(restrictions.condemned, restrictions.silenced)
        self._answers = Answers(transaction)
        self.waiting = WaitingWrites(transaction, restrictions.away)
        writes = PartitionWrites(transaction, self.waiting)
        self._bulk = BulkCommands(transaction, writes, self._answers, self._condemned)
        admission = Admission.to(transaction, restrictions)
        self.delaying = admission.delaying
        self.room_lending, self.rate_lending = admission.room_lending, admission.rate_lending
        self.moving = Moving(transaction, writes, self._bulk, self.delaying)
        routing = CommandRouting(transaction, writes, self.moving)
        self._commands = Commands(transaction, routing, admission, self._answers, self._bulk, self._condemned)
        self.stranded = StrandedWrites(
            transaction, self.waiting, self._commands, self.moving, self._bulk, self._condemned
        )
        self.tried: set[OriginKey] = set()
        """Firings that the cycle tried to deliver, if `fire_due` was called with `traced`."""

    @property
    def outcomes(self) -> Counter[Outcome]:
        """The outcomes of this cycle's commands."""
        return self.transaction.outcomes

    @property
    def events(self) -> Counter[EventType]:
        """The history events of this cycle."""
        return self.transaction.history.events

    @property
    def traced(self) -> list[TracedEvent]:
        """The events of this cycle that belong to traces, if tracing is on."""
        return self.transaction.history.traced or []

    @property
    def delivered(self) -> list[Entry]:
        """The firings of this cycle."""
        return self.transaction.delivered

    @property
    def firings(self) -> Mapping[str, Counter[int]]:
        """The number of firings of this cycle, per tenant and due time (UTC epoch ms)."""
        return self.transaction.firings

    @property
    def forwarded(self) -> int:
        """The number of commands forwarded to the partition of their key."""
        return self.transaction.forwarded

    @property
    def moves(self) -> tuple[int, int, int]:
        """Moves due to the topic's growth: (commands forwarded, schedules handed over, schedules taken over)."""
        transaction = self.transaction
        return transaction.relayed, transaction.moved, transaction.adopted

    @property
    def condemned_met(self) -> list[Work]:
        """Condemned work that this cycle has refused."""
        return self._condemned.met

    @property
    def results(self) -> list[Result]:
        """The answers of this cycle."""
        return self._answers.results

    @property
    def reply_topics(self) -> set[str]:
        """The topics that answers go to or are about. Resolve them before `answer`."""
        return self._answers.topics

    @property
    def bulk_offset(self) -> int:
        """The arrival of the bulk command that `advance_bulk` processed last."""
        return self._bulk.offset

    def send_waiting(self, limit: int, max_bytes: int) -> int:
        """Send records that have waited for other partitions. See `WaitingWrites.send`."""
        return self.waiting.send(limit, max_bytes, self.stranded.strand) if self.waiting else 0

    def take_all(self, records: list[CommandRecord], limit: int = 0, max_bytes: int = 0) -> None:
        """Execute command records. See `Commands.take_all`."""
        if records:
            self._commands.take_all(records, limit, max_bytes)

    def take_delayed(self, limit: int, max_bytes: int, fair: FairQueue, *, catches_up: bool = False) -> list[Work]:
        """Execute delayed commands. See `Commands.take_delayed`."""
        if not self.delaying.tenants:
            return []
        return self._commands.take_delayed(limit, max_bytes, fair, catches_up=catches_up)

    def advance_bulk(self, limit: int, max_bytes: int, turn: int = 0) -> bool:
        """Continue bulk commands, by `limit` schedules or `max_bytes` of payload. Return whether there were any.

        `turn` decides which tenant comes first (see `BulkCommands.advance`). If a bulk command is condemned, abandons
        only that one, so that the cause is clear if that fails as well. Raises WorkFailedError as `take_all` does.
        """
        overdue_totals = self.transaction.context.memory.overdue_totals
        for work in self._condemned:
            if work.kind is Kind.BULK and isinstance(work.key, int):
                reason = self._condemned.meet(work)
                self._bulk.give_up(work.key, None if self._condemned.is_silenced(work) else reason)
                return True
        with blaming(lambda: Work(Kind.BULK, self._bulk.offset) if self._bulk.offset >= 0 else None):
            has_ended = overdue_totals.is_due(self.transaction.now) and self._bulk.end_overdue(overdue_totals)
            return self._bulk.advance(limit, max_bytes, turn) or has_ended

    def fire_due(
        self,
        due: DueScan,
        refusals: Refusals,
        budget: TurnBudget,
        *,
        traced: bool = False,
        waits: Waits | None = None,
    ) -> None:
        """Execute the turns of waking schedules in the order of `Turns`, with the `budget` of their due scan.

        Their target topics must have been resolved. Raises WorkFailedError as `take_all` does.
        """
        if not due.entries:
            return
        transaction = self.transaction
        firings = Firings(transaction, self._bulk, self._condemned, refusals, traced=traced)
        self.tried = firings.tried
        with blaming(lambda: None if firings.current is None else Work(Kind.FIRING, origin_key(firings.current))):
            Turns(transaction, firings, due, budget, waits).take()
        firings.count()

    def answer(self, refusals: Refusals, holding: Holding | None = None) -> int:
        """Add the requested answers. Return how many cannot be delivered."""
        return self._answers.send(refusals, holding)

    def keep_bulk(self) -> None:
        """Store the progress of bulk commands. Nothing may continue them after that."""
        self._bulk.keep()

    def moved_to(self, position: int) -> None:
        """Note the position of the next command to read."""
        self.transaction.moved_to(position)
