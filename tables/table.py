"""The table of a partition's pending schedules, in an ordered store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from light_scheduler.errors import FormatError, FormatTooNew, FormatTooOld
from light_scheduler.model import Entry
from light_scheduler.model.place import Place
from light_scheduler.wire.state import CommandsLog, decode_entry, decode_progress, identity

from . import layout
from .cell_changes import CellChanges
from .counts import Counts, Step
from .floors import Floors
from .held import Held
from .store import Changes, Loaded, MemoryStore, Store

CHECKPOINT_VERSION = 9
"""2: one time index for each tenant. 3: arrivals in it may be negative. 4: records in format 2.
5: records in format 3. 6: in format 4. 7: in format 5. 8: schedules are counted. 9: runs of counts are split into rows.

A table of an older version that is not in `RECORDS_IN` is rebuilt from its changelog.
"""

RECORDS_IN = {3: 1, 4: 2, 5: 3, 6: 4, 7: 5, 8: 5, 9: 5}
"""Readable table versions -> the newest format of state records (`wire.state_format.FORMAT_VERSION`) in them.

Opening a table does not read its records, so the checkpoint must keep older workers from opening a table with newer
records. Therefore, a new record format needs a new version here.
"""

IN_LATER_LOG = 0x80
"""Added to the version of a checkpoint whose position is not in the first log (`model.arrival`). Versions of this
project that number no logs refuse it.
"""

COUNTED_SINCE = 8
MOST_COUNTED = 50_000
"""A table of a version before `COUNTED_SINCE` is counted when it is opened, if it has at most this many schedules: this
takes about 0.3 s. A larger one is rebuilt, which does not block the lanes.
"""


class Checkpoint(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The progress of a table, written together with its data as `version u8 | MessagePack array`.

    `changelog_offset` is the first changelog record not yet in the table, `position` the next command to read,
    `changelog_id` the id of the changelog topic, and `complete_at` the last time (UTC epoch ms) at which the table
    is known to have had all committed records. `commands_log` identifies the log of the position; None if unknown.
    """

    changelog_offset: int = 0
    position: int = 0
    pending: int = 0
    changelog_id: str = ""
    complete_at: int = 0
    commands_log: CommandsLog | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode


def _encoded(checkpoint: Checkpoint) -> bytes:
    log = checkpoint.commands_log
    if log is None:
        return bytes([CHECKPOINT_VERSION]) + _encode(checkpoint)
    version = CHECKPOINT_VERSION | IN_LATER_LOG if log.number else CHECKPOINT_VERSION
    return bytes([version]) + _encode((*msgspec.structs.astuple(checkpoint)[:-1], log.stored))


def stored_entry(index_key: bytes, value: bytes, get: Callable[[bytes], bytes | None]) -> Entry:
    """Return the schedule for a time-index key and its value. If it is split, `get` looks up its definition.

    Raises FormatTooNew or FormatError.
    """
    if not value.startswith(layout.PROGRESS_ONLY):
        return decode_entry(value)
    definition = get(layout.DEFINITION + layout.identity_in(index_key))
    if definition is None:
        raise FormatError(f"there is no definition for {layout.identity_in(index_key)!r}")
    return Entry(decode_entry(definition).schedule, decode_progress(value[1:]))


class ScheduleTable:
    """The schedules of a partition. An `Overlay` collects changes and applies them in one write, with a checkpoint.

    Raises FormatTooNew if a newer version wrote the store, and FormatTooOld if its layout is too old to read. In both
    cases, the store is not changed.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        version, self.checkpoint = self._load_checkpoint()
        self.floors = self.find_floors()
        self.held = Held()
        if version < COUNTED_SINCE:
            self._begin_to_count(version)
        self._counts: Counts | None = None

    @property
    def counts(self) -> Counts:
        """Counts of schedules by kind and wake time."""
        if self._counts is None:
            self._counts = Counts(self.store)
        return self._counts

    def _load_checkpoint(self) -> tuple[int, Checkpoint]:
        """Return the version of the stored checkpoint and the checkpoint."""
        raw = self.store.get(layout.CHECKPOINT_KEY)
        if raw is None:
            return CHECKPOINT_VERSION, Checkpoint()
        version = raw[0] & ~IN_LATER_LOG if raw else 0
        if version > CHECKPOINT_VERSION:
            raise FormatTooNew(
                f"the local copy was written in format {raw[0]}, and this version reads formats up to "
                f"{CHECKPOINT_VERSION}: run the newer version that wrote it. Nothing was changed"
            )
        if version > 0 and version not in RECORDS_IN:
            raise FormatTooOld(f"the local copy was written in format {raw[0]}, which this version does not read")
        try:
            checkpoint = _decode(memoryview(raw)[1:])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise FormatError(f"the table's checkpoint cannot be read: {error}") from error
        return version, checkpoint

    def find_floors(self) -> Floors:
        """Find the first schedule of each tenant in the store."""
        floors = Floors()
        start = layout.INDEX_START
        while (first := next(self.store.scan(start, layout.INDEX_END), None)) is not None:
            tenant = layout.tenant_in(first[0])
            floors.move(tenant, first[0])
            start = layout.tenant_end(tenant)
        return floors

    def _begin_to_count(self, version: int) -> None:
        """Count the schedules that an older version stored. Raises FormatTooOld if there are too many."""
        if self.checkpoint.pending > MOST_COUNTED:
            raise FormatTooOld(f"the local copy was written in format {version}, in which schedules are not counted")
        changes: dict[bytes, bytes | None] = {}
        counts = Counts(MemoryStore())
        counted = CellChanges(counts)
        for index_key, value in self.store.scan(layout.INDEX_START, layout.INDEX_END):
            identity = layout.identity_in(index_key)
            is_split = value.startswith(layout.PROGRESS_ONLY)
            cell = counted.add(stored_entry(index_key, value, self.store.get), index_key)
            changes[layout.PRIMARY + identity] = cell + index_key + (layout.SPLIT if is_split else b"")
        if (step := counts.step(counted)) is not None:
            changes |= step.rows
        self.store.write({**changes, layout.CHECKPOINT_KEY: _encoded(self.checkpoint)})

    def renew(self) -> Iterator[None]:
        """Convert rows from older versions to the current layout, in steps.

        Between steps, other tasks may read, but not write. The counts stay correct after every step.
        """
        counts = self.counts
        for step in counts.renewals():
            self._counts = None
            self.store.write({**step.rows, layout.CHECKPOINT_KEY: _encoded(self.checkpoint)})
            self._taken_in(counts, step)
            yield

    @property
    def is_empty(self) -> bool:
        """Whether the store is empty: it has neither schedules nor a checkpoint."""
        return next(self.store.scan(b"", b"\xff"), None) is None

    @property
    def is_new(self) -> bool:
        """Whether no checkpoint was ever stored: the table is empty or being filled."""
        return self.store.get(layout.CHECKPOINT_KEY) is None

    @property
    def is_cut_short(self) -> bool:
        """Whether there are schedules but no checkpoint, left by an unfinished load."""
        return self.is_new and not self.is_empty

    @property
    def pending(self) -> int:
        """Number of schedules."""
        return self.checkpoint.pending

    def get(self, tenant: str, id: str) -> Entry | None:
        """Return one schedule; None if it does not exist."""
        position = self.position_of(tenant, id)
        if position is None:
            return None
        value = self.value_at(position)
        return None if value is None else self.entry_of(position, value)

    def positions_by_id(self, tenant: str, after: str = "", prefix: str = "") -> Iterator[tuple[bytes, bytes]]:
        """Yield (id, position) of a tenant's schedules whose id starts with `prefix`, by id, strictly after `after`."""
        space = layout.PRIMARY + identity(tenant, prefix)
        start = max(space, layout.primary_key(tenant, after) + b"\0") if after else space
        id_begins = len(layout.primary_key(tenant, ""))
        for key, primary in self.store.scan(start, space + b"\xff"):
            yield key[id_begins:], layout.indexed_at(primary)

    def rows_by_due(self, tenant: str, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield a tenant's (position, stored value) by (due, priority, arrival), strictly after a position."""
        firsts = (self.floors.get(tenant), self.held.first(tenant))
        start = max(after + b"\0", min(filter(None, firsts), default=layout.tenant_end(tenant)))
        return self.store.scan(start, layout.tenant_end(tenant))

    def position_of(self, tenant: str, id: str) -> bytes | None:
        """Return the position of a schedule, which is its time-index key; None if it does not exist."""
        primary = self.store.get(layout.primary_key(tenant, id))
        return None if primary is None else layout.indexed_at(primary)

    def value_at(self, position: bytes) -> bytes | None:
        """Return the value stored at a position; None if there is none."""
        return self.store.get(position)

    def entry_of(self, position: bytes, value: bytes) -> Entry:
        """Return the schedule for a position and the value stored there."""
        return stored_entry(position, value, self.store.get)

    def position_at(self, tenant: str, due: int) -> bytes:
        """Return the position in `rows_by_due` just before a tenant's schedules due at or after an instant (ms)."""
        return layout.index_from(tenant, due)

    def release(self, place: Place) -> None:
        """Make the due scan return to schedules that were passed over for a place."""
        for tenant, stretch in self.held.release(place).items():
            self.floors.lower(tenant, stretch.first)

    def write(self, changes: Changes, checkpoint: Checkpoint, counted: CellChanges | None = None) -> None:
        """Apply changes, the changes of counts and the checkpoint in one write.

        A crash can lose the last writes. The changelog is then read again from the checkpoint that is left.
        """
        counts = self.counts
        step = None if counted is None else counts.step(counted)
        rows = {} if step is None else step.rows
        self._counts = None  # a failed write may still have been applied; the counts are then read again
        self.store.write({**changes, **rows, layout.CHECKPOINT_KEY: _encoded(checkpoint)})
        self.checkpoint = checkpoint
        self._taken_in(counts, step)

    def load(self, changes: Changes, checkpoint: Checkpoint, counted: CellChanges) -> None:
        """Apply changes to a table that is being filled. The checkpoint stays in memory until the next `write`."""
        counts = self.counts
        step = counts.step(counted)
        self._counts = None
        self.store.write(changes if step is None else {**changes, **step.rows})
        self.checkpoint = checkpoint
        self._taken_in(counts, step)

    def take_in(self, families: Sequence[Loaded], checkpoint: Checkpoint, counted: CellChanges) -> Iterator[None]:
        """Like `load`, with families of rows (see `Store.load`) and in steps. The last step stores the rows."""
        yield from self.store.load(families)
        self.load({}, checkpoint, counted)

    def _taken_in(self, counts: Counts, step: Step | None) -> None:
        if step is not None:
            counts.take(step)
        self._counts = counts

    def close(self) -> None:
        """Release the store."""
        self.store.close()
