"""The HTTP handler of changes of tenants (rules and states), tokens and delay rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.access import Identity
from light_scheduler.clock import Clock
from light_scheduler.errors import FormatError
from light_scheduler.kafka.log_reader import Span
from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.tables.views import DEFAULT_LIMIT, MAX_LIMIT
from light_scheduler.web.access.guard import IDENTITY, refuse_hidden
from light_scheduler.web.forms.cursors import Cursors
from light_scheduler.web.forms.parameters import checked, read_parameters
from light_scheduler.web.forms.text_forms import LOWER_BOUND, TENANT, described
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.looking_back import Log, OpenLog, Waiting, look_back, opened
from light_scheduler.wire import CommandRecord, decode_history, history_key
from light_scheduler.wire.events import CHANGES_PARTITION
from light_scheduler.wire.fields import parse_tenant

from .change_page import ChangePage
from .history import DAY_MS, place_of

_OF_NO_ID = history_key("", None)
"""End of the key of every history record without an id."""


class ChangeParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a list of changes."""

    tenant: Annotated[str, described("Only changes that are about this tenant alone.", TENANT)] | UnsetType = UNSET
    since: (
        Annotated[
            str, described("Only changes since this instant: UTC epoch ms, or RFC 3339; default: a day.", LOWER_BOUND)
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="Maximum number of changes in a page.")] = DEFAULT_LIMIT
    cursor: (
        Annotated[
            str, Meta(description="`next_cursor` of the page before. Keep the other parameters; `since` is in it.")
        ]
        | UnsetType
    ) = UNSET


class ChangeHandlers:
    """One method per operation. Changes of a hidden tenant are left out, as if the tenant did not exist."""

    def __init__(self, logs: OpenLog, topic: str, searches: Turns, clock: Clock, cursors: Cursors) -> None:
        self._logs = logs
        self._topic = topic
        self._searches = searches
        self._clock = clock
        self._cursors = cursors

    async def list_changes(self, request: web.Request) -> web.Response:
        parameters = read_parameters(ChangeParameters, request.query)
        tenant = None
        if parameters.tenant is not UNSET:
            refuse_hidden(request, tenant := checked("tenant", parse_tenant, parameters.tenant))
        select = changes_of(tenant, request[IDENTITY])
        cursor = self._cursors.opened("changes", parameters.cursor)
        place = place_of(parameters.since, cursor, self._clock.now() - DAY_MS)
        async with self._searches.turn(), opened(self._logs, self._topic) as log:
            found = await look_back(_Changes(log), place, now=self._clock.now(), limit=parameters.limit, select=select)
        page = ChangePage(
            changes=[match.value for match in found.matches],
            searched_from=found.searched_from,
            next_cursor=self._cursors.sealed("changes", found.next_cursor),
        )
        return web.Response(body=msgspec.json.encode(page), content_type="application/json")


def changes_of(tenant: str | None, identity: Identity) -> Callable[[CommandRecord], HistoryEvent | None]:
    """Return a function from a record of the history to its change, or None.

    It finds changes of one tenant or, with None, of all tenants that the identity sees. Changes with an empty tenant,
    which stands for none or for several, need an identity that sees all tenants.
    """

    def is_seen(changed: str) -> bool:
        return identity.tenants is None or (changed != "" and identity.sees(changed))

    def select(record: CommandRecord) -> HistoryEvent | None:
        if record.key is None or not record.key.endswith(_OF_NO_ID):
            return None
        try:
            event = decode_history(record.value)
        except FormatError:
            return None
        is_asked_for = event.event is EventType.CHANGED and tenant in (None, event.tenant) and is_seen(event.tenant)
        return event if is_asked_for else None

    return select


class _Changes:
    """The partition of the history that contains the changes."""

    def __init__(self, history: Log) -> None:
        self._history = history

    async def extents(self, since: int) -> Mapping[int, Span]:
        extents = await self._history.extents(since)
        return {partition: span for partition, span in extents.items() if partition == CHANGES_PARTITION}

    def read(self, spans: Mapping[int, Span], waiting: Waiting = nullcontext) -> AsyncIterator[Sequence[CommandRecord]]:
        return self._history.read(spans, waiting)
