"""This worker's share of a list of tasks. A list reads all tasks of the worker, so it is limited, and refused beyond
the limit."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from light_scheduler.model import Entry
from light_scheduler.tables.cell_changes import Group
from light_scheduler.tables.views import Lane, Mark, Query, QueryError, ReadableTable, scan
from light_scheduler.web.cluster import bounded
from light_scheduler.web.cluster.tenants_asked import Tenants
from light_scheduler.web.interfaces import Tables
from light_scheduler.web.limits.slices import LoopTime, pieces

from .documents import ReadTask, TimeUnit, definition

_encode = msgspec.json.Encoder().encode


class Wanted(msgspec.Struct, frozen=True):
    """Filter of a list of tasks; None: all."""

    hosts: Tenants
    name: str | None
    unit: TimeUnit | None

    def parameters(self) -> dict[str, str]:
        """Return the query string for another worker, without the hosts."""
        given = {"name": self.name, "unit": self.unit}
        return {name: text for name, text in given.items() if text is not None}


class Row(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A task, and its `TaskDefinition` as JSON."""

    host: str
    name: str
    encoded: bytes


class LaneTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a lane. `has_name`: a schedule with the requested name is pending, whether it is a task or not.
    Workers of earlier versions do not send it."""

    lane: Lane
    rows: list[Row]
    has_name: bool = False


class OwnTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of all lanes of a worker. `is_refused`: reading or sending them exceeds the limits of one request."""

    lanes: list[Lane]
    tasks: list[LaneTasks]
    is_refused: bool = False


async def own_tasks(lanes: Tables, topics: frozenset[str], wanted: Wanted, read: ReadTask) -> OwnTasks:
    """List the tasks of this worker's running lanes. Lanes that stop meanwhile are not in the answer."""
    readers = await bounded.read_lanes(lanes, topics, lambda lane: _Reader(lane, wanted, read))
    if readers is None:
        return OwnTasks(lanes=sorted(bounded.own_lanes(lanes, topics)), tasks=[], is_refused=True)
    tasks = [LaneTasks(lane=reader.lane, rows=reader.rows, has_name=reader.has_name) for reader in readers]
    return OwnTasks(lanes=[each.lane for each in tasks], tasks=tasks)


def too_much() -> QueryError:
    """Return the error for a list that is longer than one answer may be."""
    return bounded.too_much("host", "tasks", "name a host, or a host and a name")


class _Reader:
    """Reads one lane's table, tenant by tenant and slice by slice, and keeps the matching tasks."""

    def __init__(self, lane: Lane, wanted: Wanted, definition_of: ReadTask) -> None:
        self.lane = lane
        self._wanted = wanted
        self._definition_of = definition_of
        self._groups: Iterator[list[tuple[Group, int]]] | None = None
        self._hosts: dict[str, None] = {}
        """Hosts to be read; the last one is being read."""
        self._after: Mark | None = None
        self.rows: list[Row] = []
        self.has_name = False
        self.size = 0
        self.is_done = False

    def read(self, table: ReadableTable, time: LoopTime, budget: int) -> int:
        if self._groups is None:
            self._groups = self._first_groups(table)
        for groups in self._groups:
            self._hosts.update(dict.fromkeys(group.tenant for group, _ in groups))
            if time.slice_is_over():
                return 0
        spent = self._read_host(table, next(reversed(self._hosts)), time, budget) if self._hosts else 0
        if self._hosts and self._after is None:
            self._hosts.popitem()
        self.is_done = not self._hosts
        return spent

    def _first_groups(self, table: ReadableTable) -> Iterator[list[tuple[Group, int]]]:
        """Return the groups, from which the tenants are found. There can be very many."""
        if self._wanted.hosts is None:
            return pieces(table.counts.each_total())
        self._hosts = dict.fromkeys(host for host in self._wanted.hosts if table.counts.pending_of(host))
        return iter(())

    def _read_host(self, table: ReadableTable, host: str, time: LoopTime, budget: int) -> int:
        if self._wanted.name is not None:
            entry = table.get(host, self._wanted.name)
            if entry is not None:
                self.has_name = True
                self._keep([entry])
            return 1
        part = scan(
            {self.lane: table},
            Query(tenant=host),
            after=self._after,
            limit=budget,
            budget=budget,
            is_over=time.slice_is_over,
        )
        self._keep([entry for _, entry in part.rows])
        self._after = part.reached
        return part.spent

    def _keep(self, entries: list[Entry]) -> None:
        for entry in entries:
            task = definition(entry, self._definition_of)
            if task is not None and self._wanted.unit in (None, task.frequency.time_unit):
                self.rows.append(Row(task.host, task.name, _encode(task)))
                self.size += len(self.rows[-1].encoded)
