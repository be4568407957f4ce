"""Delivered messages, for the history view of etf1's admin: firings among the newest records of the history topic.

The history has no payloads, message keys or commands topics, so these fields are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from light_scheduler.clock import Clock
from light_scheduler.errors import FormatError
from light_scheduler.model import DEFAULT_TENANT, EventType, HistoryEvent
from light_scheduler.web.limits.slices import LoopTime, pieces
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.looking_back import (
    MOST_RECORDS,
    MOST_TIME_S,
    Match,
    OpenLog,
    SearchPosition,
    look_back,
    opened,
)
from light_scheduler.web.records.history import events_of
from light_scheduler.wire import CommandRecord, decode_history, history_key
from light_scheduler.wire.dialects.reading import SECOND_MS

from .documents import Planned
from .search import MOST, Row, Search

AHEAD_MS = SECOND_MS
"""How long before its due time a firing may be recorded, since firings are staged ahead of time (`stage_ahead`)."""

_ANY_ID = history_key(DEFAULT_TENANT, None)

_encode = msgspec.json.Encoder().encode


class Delivered:
    """Searches the history topic, as far back as one request may. It can find very many firings: they are sorted in
    pieces, and only the rows of the answer are encoded."""

    def __init__(self, logs: OpenLog, topic: str, searches: Turns, clock: Clock) -> None:
        self._logs = logs
        self._topic = topic
        self._searches = searches
        self._clock = clock

    async def search(self, search: Search) -> tuple[int, list[Row]]:
        """Return how many firings a search finds, and the first ones in its order. Raises ProblemError."""
        since = 0 if search.start is None else max(0, search.start - AHEAD_MS)
        async with self._searches.turn():
            found = await self._found(since, MOST_RECORDS, _firings_of(search))
            async with LoopTime() as time:
                return len(found), await _rows(await _first(found, search, time), time)

    async def named(self, id: str) -> list[Row]:
        """Return the firings of an id, the newest first. Raises ProblemError."""
        async with self._searches.turn():
            found = await self._found(0, MOST, events_of(DEFAULT_TENANT, id, {EventType.FIRED}))
            async with LoopTime() as time:
                return await _rows([_firing(match) for match in found], time)

    async def _found(
        self, since: int, limit: int, select: Callable[[CommandRecord], HistoryEvent | None]
    ) -> Sequence[Match[HistoryEvent]]:
        async with opened(self._logs, self._topic) as log:
            now = self._clock.now()
            found = await look_back(log, SearchPosition(since), now=now, limit=limit, select=select, most_s=MOST_TIME_S)
        return found.matches


class _Firing(NamedTuple):
    """A firing by its sort keys."""

    id: str
    epoch: int
    timestamp: int
    event: HistoryEvent


async def _first(found: Sequence[Match[HistoryEvent]], search: Search, time: LoopTime) -> list[_Firing]:
    """Return the first firings, in the order of a search."""
    most = MOST if search.most is None else min(MOST, search.most)
    first: list[_Firing] = []
    for piece in pieces(iter(found)):
        first = search.order.first([*first, *map(_firing, piece)], most)
        if time.slice_is_over():
            await time.rest()
    return first


async def _rows(firings: Sequence[_Firing], time: LoopTime) -> list[Row]:
    rows: list[Row] = []
    for piece in pieces(iter(firings)):
        rows += map(_row, piece)
        if time.slice_is_over():
            await time.rest()
    return rows


def _firings_of(search: Search) -> Callable[[CommandRecord], HistoryEvent | None]:
    """Return a function from a record of the history to its firing if the search matches it, otherwise to None."""

    def select(record: CommandRecord) -> HistoryEvent | None:
        if record.key is None or not record.key.startswith(_ANY_ID):
            return None
        try:
            event = decode_history(record.value)
        except FormatError:
            return None  # written by another program
        return event if event.event is EventType.FIRED and _fits(event, search) else None

    return select


def _fits(event: HistoryEvent, search: Search) -> bool:
    due = event.due or 0
    is_early = search.start is not None and due < search.start
    is_late = search.end is not None and due >= search.end
    return not is_early and not is_late and search.fits(event.id or "")


def _firing(match: Match[HistoryEvent]) -> _Firing:
    event = match.value
    return _Firing(event.id or "", (event.due or 0) // SECOND_MS, event.at // SECOND_MS, event)


def _row(firing: _Firing) -> Row:
    document = Planned(
        epoch=firing.epoch,
        id=firing.id,
        target_key="",
        target_topic=firing.event.target_topic or "",
        timestamp=firing.timestamp,
        topic="",
        value=None,
    )
    return Row(document.id, document.epoch, document.timestamp, _encode(document))
