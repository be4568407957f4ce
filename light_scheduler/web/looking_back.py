"""Searches a topic backwards for the newest records of a kind, within the limits of one request.

The topic has no index, so it is read from its end, piece by piece. Each piece reads so much of each partition that all
of them reach the same instant. A request ends after enough matches, at its limit of records, bytes or processor time,
or at the instant where the search ends. Its cursor holds the position in each partition, for the next request.
"""

from __future__ import annotations

import base64
import heapq
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice, takewhile
from math import inf
from typing import Annotated, Generic, Protocol, TypeVar

import msgspec

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.log_reader import Span
from light_scheduler.tables.views import QueryError
from light_scheduler.wire import CommandRecord

from .forms.problems import RETRY_AFTER_S, ProblemError
from .limits.slices import LoopTime
from .piece_sizes import Reached, piece_sizes

MOST_RECORDS = 20_000
MOST_BYTES = 16 << 20
MOST_TIME_S = 0.1
"""Limits of one request: records, bytes and processor time. A piece that was begun is read to its end."""

PAGE_TIME_S = 0.02
"""Processor time of a page with a cursor: the reader soon sees the first results."""

FIRST_PIECE = 64
GROWTH = 4
LARGEST_PIECE = 8_000
"""Records of a piece. Each piece is larger than the one before, so large records use up the limit of bytes early. Every
piece has a fixed cost: brokers return whole batches, which may be needed only in part."""

Waiting = Callable[[], AbstractContextManager[None]]
"""Returns a context manager that is entered while a read waits for Kafka."""

T = TypeVar("T")


class Log(Protocol):
    """A topic whose partitions can be read from any offset."""

    async def extents(self, since: int) -> Mapping[int, Span]:
        """Return the span of each partition from an instant to the end."""
        ...

    def read(self, spans: Mapping[int, Span], waiting: Waiting = nullcontext) -> AsyncIterator[Sequence[CommandRecord]]:
        """Yield the committed records of the spans, in order within each partition."""
        ...


OpenLog = Callable[[str], AbstractAsyncContextManager[Log]]
"""Opens the log of a topic; raises BrokerError."""


@asynccontextmanager
async def opened(logs: OpenLog, topic: str) -> AsyncIterator[Log]:
    """Open a log. Raises ProblemError (503) if it cannot be read."""
    try:
        async with logs(topic) as log:
            yield log
    except BrokerError as error:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE, f"{topic} cannot be read: {error}", retry_after_s=RETRY_AFTER_S
        ) from None


class SearchPosition(msgspec.Struct, frozen=True, array_like=True):
    """Where a search continues: it ends at the instant `since`, and has read each partition down to an offset."""

    since: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
    ends: dict[int, int] | None = None

    def cursor(self) -> str:
        """Return the position as text for a query string."""
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).decode().rstrip("=")

    @classmethod
    def of(cls, cursor: str) -> SearchPosition:
        """Decode a cursor. Raises QueryError."""
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            return msgspec.msgpack.decode(raw, type=SearchPosition)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            raise QueryError("cursor", "is not a cursor of this list: pass next_cursor unchanged") from None


@dataclass(frozen=True)
class Match(Generic[T]):
    """A match, and the place of its record; `timestamp` is UTC epoch ms."""

    partition: int
    offset: int
    timestamp: int
    value: T


@dataclass(frozen=True)
class Found(Generic[T]):
    """Matches, newest first. All records since `searched_from` (UTC epoch ms) have been read. `next` is where to
    continue; None: the search is complete."""

    matches: list[Match[T]]
    searched_from: int
    next: SearchPosition | None

    @property
    def next_cursor(self) -> str | None:
        """The cursor for the next page; None: the search is complete."""
        return None if self.next is None else self.next.cursor()


async def look_back(
    log: Log,
    place: SearchPosition,
    *,
    now: int,
    limit: int,
    select: Callable[[CommandRecord], T | None],
    most_s: float | None = None,
) -> Found[T]:
    """Search backwards from `place`, and return the newest `limit` values that `select` makes of records. `most_s`
    limits the processor time, by default to that of a page.

    Raises BrokerError.
    """
    search: _Search[T] = _Search(await log.extents(place.since), place, now, limit)
    async with LoopTime(PAGE_TIME_S if most_s is None else most_s) as time:
        size = FIRST_PIECE
        while (spans := search.piece(size)) and not time.is_used_up():
            found: dict[int, list[Match[T]]] = {partition: [] for partition in spans}
            async for records in log.read(spans, time.waiting):
                for record in records:
                    search.count(record)
                    value = select(record)
                    if value is not None:
                        match = Match(record.partition, record.offset, record.timestamp, value)
                        found[record.partition].append(match)
                if time.slice_is_over():
                    await time.rest()
            search.add(spans, found)
            size = min(GROWTH * size, LARGEST_PIECE)
    return search.result()


class _Search(Generic[T]):
    """The progress of a search in each partition. Timestamps are assumed to grow with the offsets of a partition.

    A match is held back while another partition may have a newer unread one. Matches still held back at the end are
    read again by the next request.
    """

    def __init__(self, extents: Mapping[int, Span], place: SearchPosition, now: int, limit: int) -> None:
        known = place.ends
        self._place = place
        self._limit = limit
        self._left = {
            partition: Span(span.start, span.end if known is None else min(span.end, known.get(partition, span.end)))
            for partition, span in extents.items()
        }
        self._oldest = dict.fromkeys(extents, now)
        self._newest = 0
        self._held: dict[int, deque[Match[T]]] = {partition: deque() for partition in extents}
        self._matches: list[Match[T]] = []
        self._records: Counter[int] = Counter()
        self._bytes = 0

    def piece(self, size: int) -> dict[int, Span]:
        """Return the spans to read next, about `size` offsets in all. Empty if the search or the request is over."""
        left = self._unread()
        room = MOST_RECORDS - self._records.total()
        if not left or len(self._matches) >= self._limit or room <= 0 or self._bytes >= MOST_BYTES:
            return {}
        reached = {
            partition: Reached(
                span.end - span.start, self._records[partition], max(0, self._newest - self._oldest[partition])
            )
            for partition, span in left.items()
        }
        sizes = piece_sizes(reached, min(size, room))
        return {partition: Span(left[partition].end - part, left[partition].end) for partition, part in sizes.items()}

    def count(self, record: CommandRecord) -> None:
        """Count a record against the limits."""
        self._records[record.partition] += 1
        self._bytes += len(record.value or b"")
        self._oldest[record.partition] = min(self._oldest[record.partition], record.timestamp)
        self._newest = max(self._newest, record.timestamp)

    def add(self, spans: Mapping[int, Span], found: Mapping[int, list[Match[T]]]) -> None:
        """Add the matches of a piece. Release those that are newer than everything unread."""
        for partition, span in spans.items():
            self._left[partition] = self._left[partition]._replace(end=span.start)
            self._held[partition].extend(reversed(found[partition]))
        read_from = max((self._oldest[partition] for partition in self._unread()), default=-inf)
        certain = (takewhile(lambda match: match.timestamp >= read_from, held) for held in self._held.values())
        newest_first = heapq.merge(*certain, key=lambda match: match.timestamp, reverse=True)
        matches = [*islice(newest_first, self._limit - len(self._matches))]
        for match in matches:
            self._held[match.partition].popleft()
        self._matches += matches

    def result(self) -> Found[T]:
        """Return what was found."""
        oldest = {partition: self._oldest[partition] for partition in self._unread()}
        ends = {partition: span.end for partition, span in self._left.items()}
        for partition, held in self._held.items():
            if held:
                oldest[partition] = held[0].timestamp
                ends[partition] = held[0].offset + 1
        if not oldest:
            return Found(self._matches, self._place.since, None)
        searched_from = max(self._place.since, *oldest.values())
        return Found(self._matches, searched_from, SearchPosition(self._place.since, ends))

    def _unread(self) -> dict[int, Span]:
        return {partition: span for partition, span in self._left.items() if span.start < span.end}
