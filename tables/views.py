"""Views: queries for pending schedules, read from tables while their lanes run.

A list is read page by page, in one order over all partitions: `(sort key, commands topic, partition)`. That triple is
the `Mark` of a row. A cursor is the mark that the previous page reached, so a page does not depend on who owned a
partition when another page was read. A scan stops when its budget is spent: a filter with few matches gives short or
even empty pages, which still have a cursor.

Pure: reads tables, without clock and network. Times are UTC epoch ms.
"""

from __future__ import annotations

import heapq
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, Protocol, get_args

import msgspec

from light_scheduler.errors import FieldError
from light_scheduler.model import NEVER, Entry, State

from . import layout
from .counts import Counts
from .matching import Traits

DEFAULT_LIMIT = 300
MAX_LIMIT = 1_000

Lane = tuple[str, int]
"""(commands topic, partition)."""

Sort = Literal["id", "due"]
"""`id`: by id in UTF-8 byte order. `due`: by (wake time, priority, arrival).

A schedule wakes at its due time, or at the time of its retry. Schedules that wait for a completion or are paused come
last. Tables only support these two orders, ascending.
"""

_BYTES_PER_ROW = 4_096
"""Reading this many bytes costs about as much as reading one more row."""


class ReadableTable(Protocol):
    """The table of one partition, as views read it."""

    @property
    def pending(self) -> int:
        """Number of schedules of all tenants."""
        ...

    @property
    def counts(self) -> Counts:
        """Counts of schedules by kind and wake time."""
        ...

    def get(self, tenant: str, id: str) -> Entry | None:
        """Return one schedule; None if it does not exist."""
        ...

    def positions_by_id(self, tenant: str, after: str, prefix: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield a tenant's (id, position) with an id prefix, by id in UTF-8 byte order, strictly after `after`."""
        ...

    def rows_by_due(self, tenant: str, after: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield a tenant's (position, stored value) by (due, priority, arrival), strictly after a position."""
        ...

    def position_of(self, tenant: str, id: str) -> bytes | None:
        """Return the position of a schedule; None if it does not exist."""
        ...

    def value_at(self, position: bytes) -> bytes | None:
        """Return the value stored at a position; None if there is none."""
        ...

    def entry_of(self, position: bytes, value: bytes) -> Entry:
        """Return the schedule for a position and the value stored there."""
        ...

    def position_at(self, tenant: str, due: int) -> bytes:
        """Return the position just before a tenant's schedules due at or after an instant."""
        ...


class QueryError(FieldError):
    """A query's parameter is unknown or has a bad value."""


class Mark(msgspec.Struct, frozen=True, array_like=True, order=True):
    """The place of a row in the order over all partitions."""

    key: bytes
    topic: str
    partition: int

    @property
    def lane(self) -> Lane:
        return self.topic, self.partition


_Row = tuple[Mark, bytes, bytes | None]
"""A row's mark, its position, and the value stored there; None if it was not read yet."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A query for schedules of one `lane` or of all lanes.

    All `labels` must match, and a label, written as `name=value`, must contain `label_contains`. `due_from` is
    inclusive, `due_to` exclusive; they apply to the wake time. A paused schedule does not wake, so it is in no range.
    Raises QueryError.
    """

    tenant: str
    id_prefix: str = ""
    id_contains: str = ""
    target_topic: str | None = None
    lane: Lane | None = None
    state: State | None = None
    labels: Mapping[str, str] = {}
    label_contains: str = ""
    due_from: int | None = None
    due_to: int | None = None
    sort: Sort = "id"
    limit: int = DEFAULT_LIMIT
    cursor: str | None = None

    def __post_init__(self) -> None:
        for field in ("tenant", "id_prefix", "id_contains", "label_contains"):
            if "\0" in getattr(self, field):
                raise QueryError(field, "must not hold the character U+0000")
        if not self.tenant:
            raise QueryError("tenant", "must not be empty")
        _one_of("sort", self.sort, get_args(Sort))
        if self.state is not None:
            _one_of("state", self.state, get_args(State))
        if not 1 <= self.limit <= MAX_LIMIT:
            raise QueryError("limit", f"must be a whole number from 1 to {MAX_LIMIT}")
        if self.due_from is not None and self.due_to is not None and self.due_from > self.due_to:
            raise QueryError("due_to", "is before due_from")
        self.start()

    def start(self) -> Mark | None:
        """Return the mark after which this query's page begins; None for the first page."""
        return None if self.cursor is None else _decode_cursor(self.cursor, self.sort)

    @property
    def is_counted(self) -> bool:
        """Whether the counts of tables give the number of matches: the query filters only by tenant, lane, target topic
        and state.
        """
        texts = self.id_prefix, self.id_contains, self.labels, self.label_contains
        return not any(texts) and self.due_from is None and self.due_to is None

    def traits(self) -> Traits | None:
        """Return bytes that each match must contain; None if there are none, so that every row must be decoded."""
        texts = [*self.labels.keys(), *self.labels.values()]
        texts += self.label_contains.split("=")  # names and values are stored separately
        texts += [] if self.target_topic is None else [self.target_topic]
        if not (any(texts) or self.id_prefix or self.id_contains):
            return None
        return Traits.of(self.tenant, self.id_prefix, self.id_contains, texts)

    def matches(self, entry: Entry) -> bool:
        """Return whether a schedule matches the query."""
        schedule = entry.schedule
        return (
            schedule.tenant == self.tenant
            and schedule.id.startswith(self.id_prefix)
            and self.id_contains in schedule.id
            and (self.target_topic is None or schedule.target.topic == self.target_topic)
            and (self.state is None or entry.progress.state == self.state)
            and (self.due_from is None or self.due_from <= entry.progress.wakes_at < NEVER)
            and (self.due_to is None or entry.progress.wakes_at < self.due_to)
            and (not self.labels or self.labels.items() <= (schedule.labels or {}).items())
            and (not self.label_contains or self._is_in_label(schedule.labels or {}))
        )

    def _is_in_label(self, labels: Mapping[str, str]) -> bool:
        return any(self.label_contains in f"{name}={value}" for name, value in labels.items())


class Slice(msgspec.Struct, frozen=True):
    """The matching rows of a scan, the mark it `reached` (None at the end), its cost, and the number of rows read."""

    rows: list[tuple[Mark, Entry]]
    reached: Mark | None
    spent: int
    read: int


def scan(
    tables: Mapping[Lane, ReadableTable],
    query: Query,
    *,
    after: Mark | None,
    limit: int,
    budget: int,
    is_over: Callable[[], bool] = lambda: False,
) -> Slice:
    """Return up to `limit` matching rows of these tables, in order, strictly after a mark.

    Reads at least one row, so that repeated scans make progress. Each row costs 1 of the budget, plus 1 for each 4 KiB
    stored, whether it matches or not. The scan also stops when `is_over` returns True.
    """
    read = _by_id if query.sort == "id" else _by_due
    asked = {lane: table for lane, table in tables.items() if query.lane in (None, lane) and _may_have(table, query)}
    merged = heapq.merge(*(read(lane, table, query, after) for lane, table in asked.items()), key=_mark_of)
    traits = query.traits()
    rows: list[tuple[Mark, Entry]] = []
    spent, number, reached = 0, 0, after
    for mark, position, value in merged:
        if len(rows) >= limit or (spent and (spent >= budget or is_over())):
            return Slice(rows, reached, spent, number)
        number += 1
        reached = mark
        if value is None and (traits is None or traits.are_in_id(position)):
            value = asked[mark.lane].value_at(position)
        if value is None:
            spent += 1
            continue
        spent += 1 + len(value) // _BYTES_PER_ROW
        if traits is None or traits.are_in(position, value):
            entry = asked[mark.lane].entry_of(position, value)
            if value.startswith(layout.PROGRESS_ONLY):  # the rest is stored elsewhere
                spent += len(entry.schedule.payload or b"") // _BYTES_PER_ROW
            if query.matches(entry):
                rows.append((mark, entry))
    return Slice(rows, None, spent, number)


def counted(tables: Mapping[Lane, ReadableTable], query: Query) -> dict[Lane, int]:
    """Return the number of matches in each table from its counts; empty unless `Query.is_counted`."""
    if not query.is_counted:
        return {}
    return {
        lane: table.counts.number_of(query.tenant, query.target_topic, query.state) if query.lane in (None, lane) else 0
        for lane, table in tables.items()
    }


def encode_cursor(sort: Sort, mark: Mark) -> str:
    """Encode a mark as an opaque text that is safe in a URL."""
    return urlsafe_b64encode(msgspec.msgpack.encode((sort, mark))).decode().rstrip("=")


def _decode_cursor(text: str, sort: Sort) -> Mark:
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor_sort, mark = msgspec.msgpack.decode(raw, type=tuple[Sort, Mark])
        if cursor_sort == "id":
            mark.key.decode()
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise QueryError("cursor", "is not a cursor of this API: pass next_cursor unchanged") from error
    if not mark.key or cursor_sort != sort:
        raise QueryError("cursor", f"belongs to a list in another order than {sort}")
    return mark


def _may_have(table: ReadableTable, query: Query) -> bool:
    """Return whether a table may have matches, from its counts of state and topic."""
    return table.counts.has_any(query.tenant, query.target_topic, query.state)


def _mark_of(row: _Row) -> Mark:
    return row[0]


def _by_id(lane: Lane, table: ReadableTable, query: Query, after: Mark | None) -> Iterator[_Row]:
    start = ""
    if after is not None:
        start = after.key.decode()
        if lane > after.lane and start.startswith(query.id_prefix):
            # The same id in a later partition comes after the mark, but not after the mark's id.
            twin = table.position_of(query.tenant, start)
            if twin is not None:
                yield Mark(after.key, *lane), twin, None
    for id, position in table.positions_by_id(query.tenant, start, query.id_prefix):
        yield Mark(id, *lane), position, None


def _by_due(lane: Lane, table: ReadableTable, query: Query, after: Mark | None) -> Iterator[_Row]:
    start = b"" if query.due_from is None else table.position_at(query.tenant, query.due_from)
    if after is not None:
        start = max(start, after.key if lane <= after.lane else _just_before(after.key))
    end = None if query.due_to is None else table.position_at(query.tenant, min(query.due_to, NEVER))
    for position, value in table.rows_by_due(query.tenant, start):
        if end is not None and position >= end:
            return
        yield Mark(position, *lane), position, value


def _just_before(position: bytes) -> bytes:
    """Return bytes that sort just before a position, after all lower positions.

    Positions end in UTF-8 or in a number of fixed length, so no position continues with 0xff where another one ends.
    """
    head, last = position[:-1], position[-1]
    return head if last == 0 else head + bytes([last - 1, 0xFF])


def _one_of(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise QueryError(field, f"must be one of {', '.join(choices)}")
