"""This worker's share of a list of tasks: all are read for it, so it has a bound, beyond which it is refused."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from light_scheduler.model import Entry
from light_scheduler.tables.views import Lane, Mark, Query, QueryError, ReadableTable, scan
from light_scheduler.web.cluster import Tables
from light_scheduler.web.own import REQUEST_BUDGET, REQUEST_TIME_S, SLICE_BUDGET
from light_scheduler.web.slices import LoopTime

from .documents import ReadTask, TimeUnit, definition

MOST_BYTES = 32 << 20
"""Of the tasks that a worker sends in one answer, in JSON."""

_encode = msgspec.json.Encoder().encode


class Wanted(msgspec.Struct, frozen=True):
    """Which tasks are listed; None: all."""

    host: str | None
    name: str | None
    unit: TimeUnit | None


class Row(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A task, and its `TaskDefinition` in JSON."""

    host: str
    name: str
    encoded: bytes


class LaneTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a lane."""

    lane: Lane
    rows: list[Row]


class OwnTasks(msgspec.Struct, frozen=True, kw_only=True):
    """What all lanes of a worker have. `is_refused`: there is more to read, or to send, than one request may."""

    lanes: list[Lane]
    tasks: list[LaneTasks]
    is_refused: bool = False


async def own_tasks(lanes: Tables, topics: frozenset[str], wanted: Wanted, read: ReadTask) -> OwnTasks:
    """List the tasks of this worker's running lanes; one that stops meanwhile is not among the answer's lanes."""
    own = sorted(lane for lane in lanes.tables() if lane[0] in topics)
    found: list[LaneTasks] = []
    spent = size = 0
    async with LoopTime(REQUEST_TIME_S) as time:
        for lane in own:
            reader = _Reader(lane, wanted)
            while (table := lanes.tables().get(lane)) is not None:
                entries = reader.read(table, time)
                if entries is None:
                    found.append(LaneTasks(lane=lane, rows=reader.rows))
                    break
                spent += reader.spent
                size += reader.add(entries, read)
                if spent >= REQUEST_BUDGET or size > MOST_BYTES or time.is_used_up():
                    return OwnTasks(lanes=own, tasks=[], is_refused=True)
                if time.slice_is_over():
                    await time.rest()
    return OwnTasks(lanes=[each.lane for each in found], tasks=found)


def too_much() -> QueryError:
    """Return the refusal of a list that is longer than one answer may be."""
    return QueryError(
        "host",
        f"more than a worker reads for one answer ({REQUEST_BUDGET} tasks, {REQUEST_TIME_S} s) or sends "
        f"({MOST_BYTES >> 20} MiB): name a host, or a host and a name",
    )


class _Reader:
    """Reads one lane's table, tenant by tenant and slice by slice. `spent` is what the last slice took of a budget."""

    def __init__(self, lane: Lane, wanted: Wanted) -> None:
        self._lane = lane
        self._wanted = wanted
        self._hosts: Iterator[str] | None = None
        self._host: str | None = None
        self._after: Mark | None = None
        self.rows: list[Row] = []
        self.spent = 0

    def read(self, table: ReadableTable, time: LoopTime) -> list[Entry] | None:
        """Return the schedules of the next slice; None: there are no more."""
        if self._hosts is None:
            self._hosts = iter([self._wanted.host] if self._wanted.host is not None else _hosts(table))
        if self._host is None:
            self._host, self._after = next(self._hosts, None), None
        if self._host is None:
            return None
        if self._wanted.name is not None:
            entry = table.get(self._host, self._wanted.name)
            self._host, self.spent = None, 1
            return [] if entry is None else [entry]
        part = scan(
            {self._lane: table},
            Query(tenant=self._host),
            after=self._after,
            limit=SLICE_BUDGET,
            budget=SLICE_BUDGET,
            is_over=time.slice_is_over,
        )
        self._after, self.spent = part.reached, part.spent
        if part.reached is None:
            self._host = None
        return [entry for _, entry in part.rows]

    def add(self, entries: list[Entry], read: ReadTask) -> int:
        """Keep the schedules that are wanted, and return their size in bytes."""
        size = 0
        for entry in entries:
            task = definition(entry, read)
            if task is not None and self._wanted.unit in (None, task.frequency.time_unit):
                self.rows.append(Row(task.host, task.name, _encode(task)))
                size += len(self.rows[-1].encoded)
        return size


def _hosts(table: ReadableTable) -> list[str]:
    return sorted({group.tenant for group, _ in table.counts.each_total()})
