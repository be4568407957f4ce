"""Commands for many schedules, as a cycle carries them out.

    1. The lane that a command for many arrives at copies it to all other partitions, begins a tally, and a sweep of its
       own partition. A lane that receives a copy begins a sweep.
    2. From the next cycle on, each deals with a slice of the selected schedules, and keeps how far it has come. What
       happens to a schedule in the meantime happens after the command: the schedule is dealt with first (`catch_up`).
    3. A sweep that is done reports its count to the partition that the command was sent to.
    4. When all have reported, the tally is the answer.

Each step is part of a lane's transaction: nothing is done or counted twice, whatever is killed in between.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from light_scheduler.engine import Decision, Limits, concerns, decide_one_of_many
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import CommandForMany, Entry, Sweep, Tally
from light_scheduler.tables import Overlay
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.relay import FORWARDED_FROM, Count, Origin
from light_scheduler.wire.state import encode_sweep, encode_tally, id_in, identity, sweep_key, tally_key

from .batches import RecordBatches, RecordTooLargeError
from .relay import Relay

replace = msgspec.structs.replace


class Sweeps:
    """The commands for many that are at work in a partition, for the length of one cycle.

    `settle` stores and tells what was decided on a schedule, and `answer` answers a tally that is complete.
    """

    def __init__(
        self,
        partition: int,
        now: int,
        limits: Limits,
        overlay: Overlay,
        relay: Relay,
        settle: Callable[[bytes, Entry, Decision], None],
        answer: Callable[[Tally], None],
    ) -> None:
        self._partition = partition
        self._now = now
        self._limits = limits
        self._overlay = overlay
        self._relay = relay
        self._settle = settle
        self._answer = answer
        self._before = overlay.sweeps()
        self._at_work = {sweep.command.offset: sweep for sweep in self._before}
        self._moved: set[int] = set()
        self._tallies: dict[int, Tally | None] = {}

    @property
    def any_at_work(self) -> bool:
        """Whether a schedule may have to catch up."""
        return bool(self._at_work)

    def begin(self, record: CommandRecord, command: CommandForMany, origin: Origin | None) -> None:
        """1. Take a command for many, or a copy of one. Raises InvalidCommand."""
        if origin is None:
            others = [partition for partition in self._relay.partitions if partition != self._partition]
            try:
                for partition in others:
                    self._relay.copy(record, partition)
            except RecordTooLargeError as error:
                raise InvalidCommand("payload", f"is too large to be passed on to all partitions: {error}") from error
            self._tallies[command.offset] = Tally(command, (self._partition, *others))
            sweep = Sweep(command, self._partition, command.offset)
        elif self._is_other(origin.partition):
            sweep = Sweep(command, origin.partition, origin.offset)
        else:
            raise InvalidCommand(FORWARDED_FROM, "names a partition from which nothing is passed on")
        self._at_work[command.offset] = sweep
        self._moved.add(command.offset)

    def decline(self, origin: Origin) -> None:
        """1. Report nothing of a copy that is not understood here, in case a tally waits for it.

        So it would be of one that a worker of another version has made.
        """
        if self._is_other(origin.partition):
            self._relay.report(Count(origin.offset, self._partition, 0), origin.partition)

    def catch_up(self, name: bytes, entry: Entry) -> Entry | None:
        """2. Deal with a schedule before something else happens to it; return how it stands then."""
        current: Entry | None = entry
        for offset, sweep in list(self._at_work.items()):
            if current is not None and concerns(sweep, current):
                current = self._deal_with(offset, name, current)
        return current

    def advance(self, limit: int, max_bytes: int) -> bool:
        """2. Deal with the next `limit` schedules, or `max_bytes` of payload; tell whether anything was at work.

        It goes through what the table had before this cycle: that is all there was when a command for many of an
        earlier cycle arrived.
        """
        for sweep in self._before:
            offset, tenant, after = sweep.command.offset, sweep.command.tenant, sweep.after
            for name in self._overlay.stored(identity(tenant, sweep.selection.id_prefix), identity(tenant, after)):
                if limit <= 0 or max_bytes < 0:
                    self._at_work[offset] = replace(self._at_work[offset], after=after)
                    self._moved.add(offset)
                    return True
                limit -= 1
                after = id_in(name)
                entry = self._overlay.get(name)
                if entry is not None:
                    max_bytes -= len(entry.schedule.payload or b"")
                    if concerns(sweep, entry):
                        self._deal_with(offset, name, entry)
            self._end(offset)
        return bool(self._before)

    def hear(self, count: Count) -> None:
        """3. Add what another partition has counted; one that nobody waits for means nothing."""
        tally = self._tallies[count.offset] if count.offset in self._tallies else self._overlay.tally(count.offset)
        if tally is None or count.partition not in tally.awaited:
            return
        awaited = tuple(partition for partition in tally.awaited if partition != count.partition)
        tally = replace(tally, awaited=awaited, changed=tally.changed + count.changed)
        self._tallies[count.offset] = tally if awaited else None
        if not awaited:
            self._answer(tally)  # 4.

    def keep(self, batches: RecordBatches, changelog: tuple[str, int]) -> None:
        """Add what has moved to the changelog and the overlay; nothing moves after that."""
        records: dict[bytes, bytes | None] = {}
        for offset in self._moved:
            sweep = self._at_work.get(offset)
            records[sweep_key(offset)] = None if sweep is None else encode_sweep(sweep)
        for offset, tally in self._tallies.items():
            records[tally_key(offset)] = None if tally is None else encode_tally(tally)
        for key, record in records.items():
            batches.add(changelog, key, record)
            self._overlay.keep(key, record)

    def _is_other(self, partition: int) -> bool:
        return partition in self._relay.partitions and partition != self._partition

    def _deal_with(self, offset: int, name: bytes, entry: Entry) -> Entry | None:
        sweep = self._at_work[offset]
        decision = decide_one_of_many(sweep.command, entry, self._now, self._limits)
        try:
            self._settle(name, entry, decision)
        except InvalidCommand:  # with its new rule it is too large to be kept: it stays as it is
            return entry
        if decision.event is not None:
            self._at_work[offset] = replace(sweep, changed=sweep.changed + 1)
            self._moved.add(offset)
        return decision.entry

    def _end(self, offset: int) -> None:
        sweep = self._at_work.pop(offset)
        self._moved.add(offset)
        count = Count(sweep.origin_offset, self._partition, sweep.changed)
        if sweep.origin_partition == self._partition:
            self.hear(count)
        else:
            self._relay.report(count, sweep.origin_partition)
