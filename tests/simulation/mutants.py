"""Planted bugs: what the commit protocol would be with one step wrong. Each must be caught by the model.

A mutant is the real lane with one thing replaced, for as long as its context lasts.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import msgspec
from aiokafka.errors import KafkaError

from light_scheduler.engine import Decision, concerns, decide_bulk
from light_scheduler.errors import InvalidCommand, SchedulerError
from light_scheduler.kafka import batches as batches_module
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.continuity import Continuity
from light_scheduler.kafka.producer import LaneProducer
from light_scheduler.lanes import bulk as bulk_module
from light_scheduler.lanes import commands as commands_module
from light_scheduler.lanes import firings as firings_module
from light_scheduler.lanes import quotas as quotas_module
from light_scheduler.lanes import work as work_module
from light_scheduler.lanes.budget import Budget
from light_scheduler.lanes.bulk import BulkCommands
from light_scheduler.lanes.delayed_commands import Delaying
from light_scheduler.lanes.forwarding import Forwarding
from light_scheduler.lanes.handover import Sweep
from light_scheduler.lanes.intake import Intake
from light_scheduler.lanes.lane import Lane
from light_scheduler.lanes.moving import Moving
from light_scheduler.lanes.quotas import Quotas
from light_scheduler.lanes.removal import Removal
from light_scheduler.lanes.staged_commit import StagedCommit
from light_scheduler.lanes.transaction import Transaction
from light_scheduler.model import BulkPart, Entry
from light_scheduler.model.tenant_rules import TenantBook
from light_scheduler.tables import Overlay, ScheduleTable, layout
from light_scheduler.tables import local_copy as local_copy_module
from light_scheduler.tables import recovery as recovery_module
from light_scheduler.tables import standby as standby_module
from light_scheduler.tables.counts import Tally
from light_scheduler.tables.recovery import Restored, restore
from light_scheduler.wire.relay import Count

from .history import History, draw, draw_frozen_owner, draw_frozen_standby, draw_growth, draw_tenants
from .kafka import Log, Reader, Record
from .node import Node

replace = msgspec.structs.replace

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


def _mutant(
    step: int, what: str, within: int = 2_000, draw: Callable[[int], History] = draw
) -> Callable[[Callable[[], Iterator[Any]]], None]:
    def register(plant: Callable[[], Iterator[Any]]) -> None:
        @contextmanager
        def planted() -> Iterator[type[Lane]]:
            with contextmanager(plant)() as lane_type:
                yield lane_type or Lane

        MUTANTS[plant.__name__.strip("_").replace("_", "-")] = Mutant(step, what, planted, within, draw)

    return register


def _replaced(owner: Any, name: str, value: Any) -> Any:
    return patch.object(owner, name, value)


def _nobody_looks() -> AbstractContextManager[Any]:
    """Have no transaction look what its records follow on: that makes up for much of what fencing is for."""

    async def look_at_nothing(*_: Any) -> None: ...

    return _replaced(Continuity, "check", look_at_nothing)  # type: ignore[no-any-return]


UNUSED = b"\x7f", b""
"""Key and value of a changelog record that means nothing."""


@contextmanager
def _unused_records_are_skipped() -> Iterator[None]:
    replay = Overlay.replay
    with _replaced(Overlay, "replay", lambda self, key, value: key == UNUSED[0] or replay(self, key, value)):
        yield


@contextmanager
def _known_overlays() -> Iterator[tuple[type[Lane], Callable[[LaneProducer], Overlay]]]:
    """Provide lanes of which the overlay that a producer is about to commit can be found."""
    latest: dict[Any, Overlay] = {}
    lanes: dict[LaneProducer | None, Lane] = {}

    class Remembered(Overlay):
        def __init__(self, table: Any) -> None:
            super().__init__(table)
            latest[table] = self

    class Known(Lane):
        async def _take_over(self) -> None:
            await super()._take_over()
            lanes[self._producer] = self

    with _replaced(work_module, "Overlay", Remembered):
        yield Known, lambda producer: latest[lanes[producer].copy.table]


def _apply(overlay: Overlay) -> None:
    checkpoint = overlay._table.checkpoint
    overlay.apply(changelog_offset=checkpoint.changelog_offset, complete_at=checkpoint.complete_at)


@_mutant(0, "The table is restored before the former owner is fenced.")
def _read_before_fencing() -> Iterator[Any]:
    fence, take_over = LaneProducer.fence, Lane._take_over

    async def not_yet(_: LaneProducer) -> None:
        """Nobody is fenced."""

    class Hasty(Lane):
        async def _take_over(self) -> None:
            bring_up = self.copy.bring_up

            async def and_then_fence(**markers: bool) -> Any:
                brought_up = await bring_up(**markers)
                assert self._producer is not None
                await fence(self._producer)
                return brought_up

            with _replaced(self.copy, "bring_up", and_then_fence):
                await take_over(self)

    with _replaced(LaneProducer, "fence", not_yet):
        yield Hasty


@_mutant(0, "A restore ends when a fetch brings nothing, instead of at the end offset.")
def _restore_to_last_record() -> Iterator[Any]:
    getmany = Reader.getmany

    async def all_there_is(self: Reader, *, timeout_ms: int) -> Any:
        fetched = await getmany(self, timeout_ms=timeout_ms)
        if not fetched:
            self._at = dict.fromkeys(self._at, 1 << 40)
        return fetched

    with _replaced(Reader, "getmany", all_there_is):
        yield None


@_mutant(0, "A restore waits for a record at the end offset, where there may be a marker.")
def _restore_waits_for_the_last_record() -> Iterator[Any]:
    async def after_the_last_record(self: Reader, tp: Any) -> int:
        seen = self._kafka.log((tp.topic, tp.partition)).committed(0, self._at[tp])
        return seen[-1].offset + 1 if seen else 0

    with _replaced(Reader, "position", after_the_last_record):
        yield None


@_mutant(0, "A restore reads what was aborted, too.")
def _restore_uncommitted() -> Iterator[Any]:
    def everything(log: Log, start: int, end: int) -> list[Record]:
        return [log.entries[offset][1] for offset in range(start, end) if offset in log.entries]

    with _replaced(Reader, "visible", staticmethod(everything)):
        yield None


@_mutant(0, "A restore does not wait for markers, and no transaction looks what its records follow on.")
def _markers_are_not_waited_for() -> Iterator[Any]:
    async def what_can_be_read(reader: Any, changelog: Any, at: int, **_: bool) -> int:
        return max(at, int((await reader.end_offsets([changelog]))[changelog]))

    with _replaced(local_copy_module, "decided_end", what_can_be_read), _nobody_looks():
        yield None


@_mutant(0, "What was committed but not applied is not applied when the lane starts again.")
def _no_replay() -> Iterator[Any]:
    replay, passed_over = Overlay.replay, set()

    async def only_into_empty_tables(table: Any, *args: Any, **named: Any) -> Restored:
        if table.checkpoint.changelog_offset:
            passed_over.add(table)
        restored = await restore(table, *args, **named)
        passed_over.discard(table)
        return restored

    def replay_unless_passed_over(self: Overlay, key: bytes, value: bytes | None) -> None:
        if self._table not in passed_over:
            replay(self, key, value)

    with (
        _replaced(local_copy_module, "restore", only_into_empty_tables),
        _replaced(Overlay, "replay", replay_unless_passed_over),
    ):
        yield None


@_mutant(0, "The lane reads on from the group's offset, looked up before it fenced, instead of the restored one.")
def _seek_to_the_groups_offset() -> Iterator[Any]:
    take_over, open_intake = Lane._take_over, Intake.open

    class Misled(Lane):
        async def _take_over(self) -> None:
            services: Any = self._services
            offset = services.clients.node.world.kafka.group_offsets.get(self.tp, 0)
            with _replaced(self.intake, "open", lambda _, end: open_intake(self.intake, offset, end)):
                await take_over(self)

    yield Misled


@_mutant(0, "A local copy is used however old it is.", within=100, draw=draw_frozen_owner)
def _stale_table() -> Iterator[Any]:
    def no_flaw(*_: Any) -> None:
        """It is as good as ever."""

    with _replaced(recovery_module, "flaw_of", no_flaw), _replaced(local_copy_module, "flaw_of", no_flaw):
        yield None


@_mutant(
    0, "A copy is brought up to date although tombstones may be gone by now.", within=100, draw=draw_frozen_standby
)
def _stale_standby() -> Iterator[Any]:
    with (
        _replaced(standby_module, "check_fresh", lambda *_: None),
        _replaced(recovery_module, "check_fresh", lambda *_: None),
    ):
        yield None


@_mutant(0, "Lanes have transactional ids of their process, so nobody is fenced; and nobody looks for others' records.")
def _nobody_is_fenced() -> Iterator[Any]:
    make = LaneProducer.__init__

    def own_id(self: LaneProducer, clients: Any, transactional_id: str) -> None:
        make(self, clients, f"{id(clients.node)}-{transactional_id}")

    with _replaced(LaneProducer, "__init__", own_id), _nobody_looks():
        yield None


@_mutant(1, "What is due is fired before the commands that waited were read.")
def _fire_before_the_backlog() -> Iterator[Any]:
    take_due = Budget.take_due

    def hasty(self: Budget, overlay: Overlay, now: int, turns: int, max_bytes: int) -> Any:
        self._intake.backlog_taken = True
        return take_due(self, overlay, now, turns, max_bytes)

    with _replaced(Budget, "take_due", hasty):
        yield None


@_mutant(1, "The backlog counts as taken when its first commands have been.")
def _backlog_ends_too_soon() -> Iterator[Any]:
    def opened(self: Intake, position: int, backlog_end: int) -> None:
        begin(self, position, min(backlog_end, position + 1))

    begin = Intake.open
    with _replaced(Intake, "open", opened):
        yield None


@_mutant(1, "A batch is taken wherever it begins.")
def _gaps_are_taken() -> Iterator[Any]:
    offer = Intake.offer

    def anywhere(self: Intake, epoch: int, first: int, records: Any) -> None:
        offer(self, epoch, self.next_offset, records)

    with _replaced(Intake, "offer", anywhere):
        yield None


@_mutant(1, "Batches from before the lane started again are taken.")
def _void_batches_are_taken() -> Iterator[Any]:
    offer = Intake.offer

    def ever(self: Intake, epoch: int, first: int, records: Any) -> None:
        offer(self, self.epoch, self.next_offset, records)

    with _replaced(Intake, "offer", ever):
        yield None


@_mutant(2, "An update leaves the old time in the index.")
def _update_keeps_the_old_time() -> Iterator[Any]:
    put = Overlay.put

    def beside_the_old(self: Overlay, *args: Any) -> None:
        before = dict(self._changes)
        put(self, *args)
        for key in [key for key, value in self._changes.items() if value is None and before.get(key, b"") is not None]:
            if key in before:
                self._changes[key] = before[key]
                self._fresh[layout.tenant_in(key)].add(key)
            else:
                del self._changes[key]

    with _replaced(Overlay, "put", beside_the_old):
        yield None


@_mutant(2, "Floors move up to now, past what is put in the same cycle.")
def _floors_overtake() -> Iterator[Any]:
    apply = Overlay.apply

    def past_now(self: Overlay, *, changelog_offset: int, complete_at: int) -> None:
        for tenant in self._fresh:
            now = layout.index_from(tenant, complete_at)
            self._floors[tenant] = max(self._floors.get(tenant) or now, now)
        self._fresh.clear()
        apply(self, changelog_offset=changelog_offset, complete_at=complete_at)

    with _replaced(Overlay, "apply", past_now):
        yield None


@_mutant(2, "A firing does not remove its schedule from the changelog.")
def _no_tombstone() -> Iterator[Any]:
    add = RecordBatches.add

    def silent(self: RecordBatches, target: Any, key: Any, value: Any, *args: Any, **options: Any) -> None:
        if value is None and target[0].endswith("changelog"):
            key, value = UNUSED
        add(self, target, key, value, *args, **options)

    with _replaced(RecordBatches, "add", silent), _unused_records_are_skipped():
        yield None


@_mutant(2, "A bulk command is not carried out first on what something else happens to.")
def _nothing_catches_up() -> Iterator[Any]:
    with _replaced(BulkCommands, "catch_up", lambda _self, _name, entry: entry):
        yield None


@_mutant(2, "A schedule does not remember that a bulk command has dealt with it out of turn.")
def _swept_is_forgotten() -> Iterator[Any]:
    def unmarked(*args: Any) -> Decision:
        decision = decide_bulk(*args)
        if decision.entry is None:
            return decision
        progress = replace(decision.entry.progress, swept=0)
        return replace(decision, entry=replace(decision.entry, progress=progress))

    with _replaced(bulk_module, "decide_bulk", unmarked):
        yield None


@_mutant(2, "A bulk command is carried out on what arrived after it, too.")
def _sweeps_touch_what_came_later() -> Iterator[Any]:
    def anything(part: BulkPart, entry: Entry) -> bool:
        return concerns(part, replace(entry, progress=replace(entry.progress, arrival=0)))

    with _replaced(bulk_module, "concerns", anything):
        yield None


@_mutant(2, "A bulk command is answered when the first partition has reported.")
def _tally_is_answered_too_soon() -> Iterator[Any]:
    hear = BulkCommands.add_count

    def first_is_enough(self: BulkCommands, count: Count) -> None:
        total = self._overlay.bulk_total(count.offset)
        if total is not None and count.offset not in self._totals:
            self._totals[count.offset] = replace(total, awaited=(count.partition,))
        hear(self, count)

    with _replaced(BulkCommands, "add_count", first_is_enough):
        yield None


@_mutant(3, "What a partition has counted is reported in a transaction before that of the state.")
def _counts_before_their_state() -> Iterator[Any]:
    commit = LaneProducer.commit

    async def twice(self: LaneProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any) -> Any:
        counts = RecordBatches(batches.timestamp)
        for target in [target for target in batches._open if target[0] == "app-commands" and not offsets]:
            counts._open[target] = batches._open.pop(target)
        if counts._open:
            counts.add(next(target for target in batches._open if target[0].endswith("changelog")), *UNUSED)
            await commit(self, counts, group, {})
        return await commit(self, batches, group, offsets, **checks)

    with _replaced(LaneProducer, "commit", twice), _unused_records_are_skipped():
        yield None


@_mutant(3, "The answer to one batch of each transaction is not awaited.")
def _one_future_is_skipped() -> Iterator[Any]:
    async def all_but_the_last(producer: Any, target: Any, batches: Any) -> Any:
        if target[0] != "targets":
            return await send_in_order(producer, target, batches)
        for builder, _ in batches:
            future = await producer.send_batch(builder, target[0], partition=target[1])
            future.exception()
        return batches_module._Taken(0, 0, None)

    send_in_order = batches_module._send_in_order
    with _replaced(batches_module, "_send_in_order", all_but_the_last):
        yield None


@_mutant(3, "The state does not say how far commands have been read.")
def _no_position_in_the_state() -> Iterator[Any]:
    def forgotten(self: Transaction, position: int) -> None:
        self.batches.add(self._changelog, b"\x00", b"\x01" + bytes(8))

    with _replaced(Transaction, "moved_to", forgotten):
        yield None


@_mutant(3, "The input offsets are left out of the transaction.")
def _commit_without_offsets() -> Iterator[Any]:
    commit = LaneProducer.commit

    async def without(self: LaneProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any) -> Any:
        return await commit(self, batches, group, {}, **checks)

    with _replaced(LaneProducer, "commit", without):
        yield None


@_mutant(3, "A commit that failed is taken for done.")
def _failed_commit_is_done() -> Iterator[Any]:
    commit = LaneProducer.commit

    async def shrug(self: LaneProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any) -> Any:
        try:
            return await commit(self, batches, group, offsets, **checks)
        except (KafkaError, SchedulerError):
            return {("app-schedules-changelog", partition): 1 << 40 for partition in range(2)}

    with _replaced(LaneProducer, "commit", shrug):
        yield None


@_mutant(3, "Firings, with their history, are delivered in a transaction before that of the state.")
def _firings_before_their_state() -> Iterator[Any]:
    commit = LaneProducer.commit

    async def twice(self: LaneProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any) -> Any:
        firings = RecordBatches(batches.timestamp)
        for target in [target for target in batches._open if target[0] in ("targets", "app-history")]:
            firings._open[target] = batches._open.pop(target)
        if firings._open:
            firings.add(next(target for target in batches._open if target[0].endswith("changelog")), *UNUSED)
            await commit(self, firings, group, {})
        return await commit(self, batches, group, offsets, **checks)

    with _replaced(LaneProducer, "commit", twice), _unused_records_are_skipped():
        yield None


@_mutant(3, "What was prepared ahead of its time is committed at once.")
def _staged_is_committed_early() -> Iterator[Any]:
    async def at_once(self: StagedCommit, instant: int, staged: Any) -> bool:
        await asyncio.sleep(0)
        return True

    with _replaced(StagedCommit, "may_commit", at_once):
        yield None


@_mutant(3, "What was prepared ahead of its time is dropped for a command, but not aborted.")
def _dropped_but_not_aborted() -> Iterator[Any]:
    async def kept(self: LaneProducer, batches: RecordBatches, may_commit: Any) -> Any:
        async with self._transaction(batches.topics):
            ends = await batches.send(self._kafka)
            wanted = await may_commit()
            await self._kafka.commit_transaction()
        return ends if wanted else None

    with _replaced(LaneProducer, "commit_when", kept):
        yield None


@_mutant(4, "The table is written before the commit.")
def _apply_before_commit() -> Iterator[Any]:
    commit = LaneProducer.commit

    async def early(self: LaneProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any) -> Any:
        _apply(overlay_of(self))
        return await commit(self, batches, group, offsets, **checks)

    with _known_overlays() as (lane_type, overlay_of), _replaced(LaneProducer, "commit", early):
        yield lane_type


@_mutant(4, "The table notes a changelog offset that it has not reached.")
def _checkpoint_too_far() -> Iterator[Any]:
    apply = Overlay.apply

    def too_far(self: Overlay, *, changelog_offset: int, complete_at: int) -> None:
        apply(self, changelog_offset=changelog_offset + 3, complete_at=complete_at)

    with _replaced(Overlay, "apply", too_far):
        yield None


@_mutant(5, "What a failed cycle would have changed is kept in the table.")
def _overlay_survives_an_abort() -> Iterator[Any]:
    commit = LaneProducer.commit

    async def kept(self: LaneProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any) -> Any:
        try:
            return await commit(self, batches, group, offsets, **checks)
        except (KafkaError, SchedulerError):
            _apply(overlay_of(self))
            raise

    with _known_overlays() as (lane_type, overlay_of), _replaced(LaneProducer, "commit", kept):
        yield lane_type


@_mutant(5, "A fenced lane goes straight back to fencing, without asking whether the partition is still its own.")
def _zombie_without_confirmation() -> Iterator[Any]:
    async def unasked(self: Node, tp: Any) -> bool:
        await asyncio.sleep(0)
        return True

    with _replaced(Node, "_confirm", unasked):
        yield None


@_mutant(5, "After an error the lane goes on with what it has, without fencing and restoring.")
def _no_return_to_zero() -> Iterator[Any]:
    take_over, recover = Lane._take_over, Lane._recover

    class Careless(Lane):
        async def _take_over(self) -> None:
            if self.copy.table is None or self._producer is None:
                await take_over(self)

        async def _recover(self, error: BaseException) -> None:
            if self.copy.table is None or self._producer is None:
                await recover(self, error)
            else:
                self._producer._in_transaction = False

    yield Careless


@_mutant(6, "A lane that went elsewhere is left running; and nobody looks for others' records.")
def _lost_lanes_go_on() -> Iterator[Any]:
    make = LaneProducer.__init__

    def own_id(self: LaneProducer, clients: Any, transactional_id: str) -> None:
        make(self, clients, f"{id(clients)}-{transactional_id}")

    async def deaf(self: Lane) -> None:
        await asyncio.sleep(0)

    with _replaced(Lane, "close", deaf), _replaced(LaneProducer, "__init__", own_id), _nobody_looks():
        yield None


@_mutant(2, "Commands are not held to the rules of their tenant.", draw=draw_tenants)
def _commands_against_rules() -> Iterator[Any]:
    with _replaced(commands_module, "check_tenant", lambda *_: None):
        yield None


@_mutant(1, "What is due of a tenant that is paused is taken.", draw=draw_tenants)
def _paused_tenants_fire() -> Iterator[Any]:
    with _replaced(TenantBook, "stopped", frozenset()):
        yield None


@_mutant(2, "A firing goes to a target that its tenant may no longer use.", draw=draw_tenants)
def _firings_against_rules() -> Iterator[Any]:
    with _replaced(firings_module, "refusal_of", lambda *_: None):
        yield None


@_mutant(2, "What a failed cycle removed of a deleted tenant is not looked for again.", draw=draw_tenants)
def _a_failed_removal_is_forgotten() -> Iterator[Any]:
    stored = Overlay.stored

    def once_from_the_start(self: Overlay, prefix: bytes, after: bytes) -> Iterator[bytes]:
        if prefix in seen and not after:
            return iter(())
        seen.add(prefix)
        return stored(self, prefix, after)

    seen: set[bytes] = set()
    with _replaced(Overlay, "stored", once_from_the_start):
        yield None


@_mutant(2, "Of a deleted tenant one schedule is left.", draw=draw_tenants)
def _removal_ends_too_soon() -> Iterator[Any]:
    advance = Removal._advance

    def once(self: Removal, transaction: Transaction, tenant: str, limit: int, max_bytes: int) -> tuple[int, int]:
        removed = advance(self, transaction, tenant, limit, max_bytes)
        self._done.add(tenant)
        return removed

    with _replaced(Removal, "_advance", once):
        yield None


@_mutant(4, "Schedules stay counted when they have fired.", draw=draw_tenants)
def _counts_that_only_grow() -> Iterator[Any]:
    with _replaced(Tally, "changes", lambda tally: dict(Counter(tally.added))):
        yield None


@_mutant(4, "What a failed cycle would have added counts as pending.", draw=draw_tenants)
def _counts_survive_an_abort() -> Iterator[Any]:
    added: defaultdict[Any, defaultdict[bytes, int]] = defaultdict(lambda: defaultdict(int))
    apply = Overlay.apply

    def go_on(self: Overlay) -> None:
        self._counted = added[self._table]

    def applied(self: Overlay, **reached: Any) -> None:
        apply(self, **reached)
        added.pop(self._table, None)

    with _replaced(Overlay, "count_tenants", go_on), _replaced(Overlay, "apply", applied):
        yield None


@_mutant(4, "Counts are stored in a write of their own.")
def _counts_apart() -> Iterator[Any]:
    write = ScheduleTable.write

    def apart(self: ScheduleTable, changes: Any, checkpoint: Any, tally: Any = None) -> None:
        step = None if tally is None else self.counts.step(tally)
        if step is not None:
            self.store.write(step.rows)
            self.counts.take(step)
        write(self, changes, checkpoint)

    with _replaced(ScheduleTable, "write", apart):
        yield None


@_mutant(0, "What a changelog record takes away stays counted.")
def _replays_only_add() -> Iterator[Any]:
    replay = Overlay.replay

    def adding(self: Overlay, key: bytes, value: bytes | None) -> None:
        replay(self, key, value)
        self._tally.removed.clear()

    with _replaced(Overlay, "replay", adding):
        yield None


@_mutant(2, "Every partition has the whole quota.", draw=draw_tenants)
def _quotas_are_not_shared() -> Iterator[Any]:
    with _replaced(quotas_module, "share_of", lambda quota, *_: quota):
        yield None


@_mutant(2, "A tenant's messages go where their keys say, whatever its rules say.", draw=draw_tenants)
def _distribution_by_key_only() -> Iterator[Any]:
    with _replaced(commands_module, "distributed", lambda command, _: command):
        yield None


@_mutant(2, "While a command of a tenant waits, others overtake it.", draw=draw_tenants)
def _delayed_commands_are_overtaken() -> Iterator[Any]:
    takes, take = Delaying.takes, Quotas.take

    def unless_one_waits(self: Delaying, record: Any, command: Any, origin: Any) -> bool:
        return command.tenant not in self._queues and takes(self, record, command, origin)

    def without_a_word(self: Quotas, *command: Any) -> None:
        with suppress(InvalidCommand):
            take(self, *command)

    with _replaced(Delaying, "takes", unless_one_waits), _replaced(Quotas, "take", without_a_word):
        yield None


@_mutant(2, "A delayed command stays in the changelog when it has been carried out.", draw=draw_tenants)
def _delayed_commands_stay() -> Iterator[Any]:
    with _replaced(Delaying, "_keep", lambda self, name, queue: self._queues.update({name: queue})):
        yield None


@_mutant(2, "A schedule is handed over, and kept.", 300, draw_growth)
def _moved_and_kept() -> Iterator[Any]:
    move = Moving.move

    def kept(self: Moving, name: bytes, entry: Entry, key: bytes) -> bool:
        with _replaced(Transaction, "remove", lambda *_: None):
            return move(self, name, entry, key)

    with _replaced(Moving, "move", kept):
        yield None


@_mutant(2, "A schedule is handed over in the transaction after the one that removes it.", 600, draw_growth)
def _handed_over_later() -> Iterator[Any]:
    begin, hand_over = Forwarding.__init__, Forwarding.hand_over
    late: dict[Any, list[tuple[bytes, bytes, int]]] = {}

    def and_what_was_left(self: Forwarding, transaction: Transaction) -> None:
        begin(self, transaction)
        for schedule in late.pop(transaction.context, []):
            hand_over(self, *schedule)
        self.lane = transaction.context  # type: ignore[attr-defined]

    def not_yet(self: Forwarding, *schedule: Any) -> None:
        late.setdefault(self.lane, []).append(schedule)  # type: ignore[attr-defined]

    with _replaced(Forwarding, "__init__", and_what_was_left), _replaced(Forwarding, "hand_over", not_yet):
        yield None


@_mutant(2, "The partition that a key belongs to asks nobody whether its schedule is there yet.", 300, draw_growth)
def _nobody_is_asked() -> Iterator[Any]:
    pass_on = Moving.pass_on

    def alone(self: Moving, record: Any, command: Any, name: bytes, current: Any, origin: Any) -> bool:
        key = self._key_of(record, command, current)
        is_here = origin is None and key is not None and not self.belongs_elsewhere(key)
        return not is_here and pass_on(self, record, command, name, current, origin)

    with _replaced(Moving, "pass_on", alone):
        yield None


@_mutant(2, "The former partition carries commands out that are not its own any more.", 300, draw_growth)
def _former_partition_goes_on() -> Iterator[Any]:
    with _replaced(Moving, "_pass_home", lambda *_: False):
        yield None


@_mutant(2, "The former partition passes a command on, and leaves its schedule where it is.", 300, draw_growth)
def _command_without_its_schedule() -> Iterator[Any]:
    pass_home = Moving._pass_home

    def alone(self: Moving, *arguments: Any) -> bool:
        with _replaced(Moving, "move", lambda *_: True):
            return pass_home(self, *arguments)

    with _replaced(Moving, "_pass_home", alone):
        yield None


@_mutant(2, "Commands that are not back yet are overtaken.", 3_000, draw_growth)
def _questions_forgotten() -> Iterator[Any]:
    with _replaced(Moving, "_lend", lambda *_: None):
        yield None


@_mutant(2, "A partition says that it has handed over everything when it has looked at some.", 300, draw_growth)
def _done_too_soon() -> Iterator[Any]:
    advance = Sweep.advance

    def at_once(self: Sweep, moving: Moving, *rest: Any) -> Any:
        slice = advance(self, moving, *rest)
        if not slice.is_last:
            moving.finish()
        return slice._replace(is_last=True)

    with _replaced(Sweep, "advance", at_once):
        yield None


@_mutant(2, "A record that moves a schedule counts as often as it comes.", 600, draw_growth)
def _adopted_twice() -> Iterator[Any]:
    hand_over = Forwarding.hand_over

    def twice(self: Forwarding, *schedule: Any) -> None:
        hand_over(self, *schedule)
        hand_over(self, *schedule)

    with _replaced(Forwarding, "hand_over", twice):
        yield None
