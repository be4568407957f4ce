"""What was delivered, for the history view of etf1's admin: firings among the newest records of the history topic.

The history has no payloads, no keys of messages and no commands topics, so these fields are empty here.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from light_scheduler.clock import Clock
from light_scheduler.errors import FormatError
from light_scheduler.model import DEFAULT_TENANT, EventType, HistoryEvent
from light_scheduler.web.history import events_of
from light_scheduler.web.looking_back import MOST_RECORDS, OpenLog, Place, look_back, opened
from light_scheduler.web.turns import Turns
from light_scheduler.wire import CommandRecord, decode_history, history_key
from light_scheduler.wire.dialects.reading import SECOND_MS

from .documents import Planned
from .search import Row, Search

AHEAD_MS = SECOND_MS
"""How long before its due time a firing may be written: it is prepared ahead of time (`stage_ahead`)."""

_ANY_ID = history_key(DEFAULT_TENANT, None)

_encode = msgspec.json.Encoder().encode


class Delivered:
    """Searches the history topic, as far back as one request may."""

    def __init__(self, logs: OpenLog, topic: str, searches: Turns, clock: Clock) -> None:
        self._logs = logs
        self._topic = topic
        self._searches = searches
        self._clock = clock

    async def search(self, search: Search) -> list[Row]:
        """Return the firings that a search finds, the newest first. Raises ProblemError."""
        since = 0 if search.start is None else max(0, search.start - AHEAD_MS)
        return await self._found(since, _firings_of(search))

    async def named(self, id: str) -> list[Row]:
        """Return the firings of an id, the newest first. Raises ProblemError."""
        return await self._found(0, events_of(DEFAULT_TENANT, id, {EventType.FIRED}))

    async def _found(self, since: int, select: Callable[[CommandRecord], HistoryEvent | None]) -> list[Row]:
        async with self._searches.turn(), opened(self._logs, self._topic) as log:
            found = await look_back(log, Place(since), now=self._clock.now(), limit=MOST_RECORDS, select=select)
        return [_row(match.value) for match in found.matches]


def _firings_of(search: Search) -> Callable[[CommandRecord], HistoryEvent | None]:
    """Return what finds the firings that a search is for among the records of the history."""

    def select(record: CommandRecord) -> HistoryEvent | None:
        if record.key is None or not record.key.startswith(_ANY_ID):
            return None
        try:
            event = decode_history(record.value)
        except FormatError:
            return None  # of somebody else, who may write there
        return event if event.event is EventType.FIRED and _fits(event, search) else None

    return select


def _fits(event: HistoryEvent, search: Search) -> bool:
    due = event.due or 0
    is_early = search.start is not None and due < search.start
    is_late = search.end is not None and due >= search.end
    return not is_early and not is_late and search.fits(event.id or "")


def _row(event: HistoryEvent) -> Row:
    document = Planned(
        epoch=(event.due or 0) // SECOND_MS,
        id=event.id or "",
        target_key="",
        target_topic=event.target_topic or "",
        timestamp=event.at // SECOND_MS,
        topic="",
        value=None,
    )
    return Row(document.id, document.epoch, document.timestamp, _encode(document))
