"""The HTTP handler of the history of one id."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.clock import Clock
from light_scheduler.errors import FormatError
from light_scheduler.model import SCHEDULE_EVENTS, EventType, HistoryEvent
from light_scheduler.tables.views import DEFAULT_LIMIT, MAX_LIMIT, QueryError
from light_scheduler.web.forms.cursors import Cursors
from light_scheduler.web.forms.parameters import checked, read_parameters
from light_scheduler.web.forms.text_forms import LOWER_BOUND, described
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.looking_back import OpenLog, SearchPosition, look_back, opened
from light_scheduler.wire import CommandRecord, decode_history, history_key
from light_scheduler.wire.fields import closest, parse_id, parse_tenant
from light_scheduler.wire.instants import parse_lower_bound

from .history_page import HistoryPage

DAY_MS = 86_400_000


class HistoryParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a history."""

    since: (
        Annotated[
            str, described("Only events since this instant: UTC epoch ms, or RFC 3339; default: a day.", LOWER_BOUND)
        ]
        | UnsetType
    ) = UNSET
    event: Annotated[
        list[str],
        Meta(description="Only these events: `scheduled,updated` are the versions. Can be repeated."),
    ] = []
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="Maximum number of events in a page.")] = DEFAULT_LIMIT
    cursor: (
        Annotated[
            str, Meta(description="`next_cursor` of the page before. Keep the other parameters; `since` is in it.")
        ]
        | UnsetType
    ) = UNSET

    def events(self) -> frozenset[EventType]:
        """The kinds of events to find. Raises QueryError."""
        named = [name for text in self.event for name in text.split(",") if name]
        for name in named:
            if name not in SCHEDULE_EVENTS:
                raise QueryError("event", f"{name!r} is not known{closest(name, sorted(SCHEDULE_EVENTS)) or '.'}")
        return frozenset(map(EventType, named)) or SCHEDULE_EVENTS


class HistoryHandlers:
    """One method per operation."""

    def __init__(self, logs: OpenLog, topic: str, searches: Turns, clock: Clock, cursors: Cursors) -> None:
        self._logs = logs
        self._topic = topic
        self._searches = searches
        self._clock = clock
        self._cursors = cursors

    async def schedule_history(self, request: web.Request) -> web.Response:
        tenant = checked("tenant", parse_tenant, request.match_info["tenant"])
        id = checked("id", parse_id, request.match_info["id"])
        parameters = read_parameters(HistoryParameters, request.query)
        select = events_of(tenant, id, parameters.events())
        cursor = self._cursors.opened("history", parameters.cursor)
        place = place_of(parameters.since, cursor, self._clock.now() - DAY_MS)
        async with self._searches.turn(), opened(self._logs, self._topic) as log:
            found = await look_back(log, place, now=self._clock.now(), limit=parameters.limit, select=select)
        page = HistoryPage(
            events=[match.value for match in found.matches],
            searched_from=found.searched_from,
            next_cursor=self._cursors.sealed("history", found.next_cursor),
        )
        return web.Response(body=msgspec.json.encode(page), content_type="application/json")


def events_of(
    tenant: str, id: str, kinds: Collection[EventType] = SCHEDULE_EVENTS
) -> Callable[[CommandRecord], HistoryEvent | None]:
    """Return a function from a record of the history to its event if it is one of this id, otherwise to None."""
    key = history_key(tenant, id)

    def select(record: CommandRecord) -> HistoryEvent | None:
        if record.key != key:
            return None
        try:
            event = decode_history(record.value)
        except FormatError:
            return None  # written by another program
        return event if event.event in kinds else None

    return select


def place_of(since: str | UnsetType, cursor: str | UnsetType, default: int) -> SearchPosition:
    """Return the position at which a search begins. `default` is the instant at which it ends unless `since` is given.
    Raises QueryError."""
    if cursor is not UNSET:
        return SearchPosition.of(cursor)
    return SearchPosition(default if since is UNSET else checked("since", parse_lower_bound, since))
