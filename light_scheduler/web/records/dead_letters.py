"""The HTTP handlers of dead letters. Each is named like its operation (see `operations`)."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.access import Identity
from light_scheduler.clock import Clock
from light_scheduler.errors import FormatError
from light_scheduler.kafka.log_reader import Span
from light_scheduler.tables.views import DEFAULT_LIMIT, MAX_LIMIT, QueryError
from light_scheduler.web.access.guard import IDENTITY, refuse_hidden
from light_scheduler.web.forms.cursors import Cursors
from light_scheduler.web.forms.documents import DetailParameters
from light_scheduler.web.forms.parameters import checked, read_parameters
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.forms.text_forms import ID, LOWER_BOUND, TENANT, described
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.looking_back import OpenLog, look_back, opened
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.fields import parse_id, parse_tenant

from .dead_letter_documents import DeadLetterPage, DeadLetterSummary, FoundLetter
from .decoding import Decoding
from .history import place_of
from .redrive import Redrive

Cause = Literal["rejected", "refused", "missed", "unacknowledged"]

_NAME = re.compile(r"(\d{1,9})-(\d{1,18})", re.ASCII)


class DeadLetterParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a list of dead letters."""

    tenant: Annotated[str, described("Only those of this tenant.", TENANT)] | UnsetType = UNSET
    id: Annotated[str, described("Only those of this schedule.", ID)] | UnsetType = UNSET
    cause: Annotated[Cause, Meta(description="Only those with this cause.")] | UnsetType = UNSET
    since: (
        Annotated[
            str,
            described("Only those since this instant: UTC epoch ms, or RFC 3339; default: the beginning.", LOWER_BOUND),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="Maximum number in a page.")] = DEFAULT_LIMIT
    cursor: (
        Annotated[
            str, Meta(description="`next_cursor` of the page before. Keep the other parameters; `since` is in it.")
        ]
        | UnsetType
    ) = UNSET

    def select(self, found: FoundLetter) -> bool:
        """Return whether a dead letter matches."""
        letter = found.letter
        return (
            self.tenant in (UNSET, letter.tenant)
            and self.id in (UNSET, letter.id)
            and self.cause in (UNSET, letter.cause)
        )


class DeadLetterHandlers:
    """One method per operation. Letters of a hidden tenant are treated as if they did not exist."""

    def __init__(
        self,
        logs: OpenLog,
        topic: str,
        searches: Turns,
        clock: Clock,
        cursors: Cursors,
        redrive: Redrive,
        decoding: Decoding,
    ) -> None:
        self._logs = logs
        self._topic = topic
        self._searches = searches
        self._clock = clock
        self._cursors = cursors
        self._redrive = redrive
        self._decoding = decoding

    async def list_dead_letters(self, request: web.Request) -> web.Response:
        parameters = read_parameters(DeadLetterParameters, request.query)
        if parameters.tenant is not UNSET:
            refuse_hidden(request, checked("tenant", parse_tenant, parameters.tenant))
        if parameters.id is not UNSET:
            checked("id", parse_id, parameters.id)
        identity = request[IDENTITY]

        def select(record: CommandRecord) -> DeadLetterSummary | None:
            found = _read(record)
            is_asked_for = found is not None and _may_see(identity, found) and parameters.select(found)
            return found.summary() if found is not None and is_asked_for else None

        place = place_of(parameters.since, self._cursors.opened("dead-letters", parameters.cursor), 0)
        async with self._searches.turn(), opened(self._logs, self._topic) as log:
            found = await look_back(log, place, now=self._clock.now(), limit=parameters.limit, select=select)
        return _json(
            DeadLetterPage(
                dead_letters=[match.value for match in found.matches],
                searched_from=found.searched_from,
                next_cursor=self._cursors.sealed("dead-letters", found.next_cursor),
            )
        )

    async def get_dead_letter(self, request: web.Request) -> web.Response:
        is_asked = read_parameters(DetailParameters, request.query).decoded
        found = await self._found(request)
        topic = found.letter.target_topic if found.kind == "firing" else None
        return _json(await self._decoding.shown(found.detail(), topic, request[IDENTITY], is_asked=is_asked))

    async def redrive_dead_letter(self, request: web.Request) -> web.Response:
        return _json(await self._redrive.sent(request, await self._found(request)))

    async def _found(self, request: web.Request) -> FoundLetter:
        name = request.match_info["letter"]
        match = _NAME.fullmatch(name)
        if match is None:
            raise QueryError("letter", f"{name!r} is not PARTITION-OFFSET, such as 2-15")
        partition, offset = map(int, match.groups())
        async with self._searches.turn(), opened(self._logs, self._topic) as log:
            extent = (await log.extents(0)).get(partition)
            found = None
            if extent is not None and extent.start <= offset < extent.end:
                async for records in log.read({partition: Span(offset, offset + 1)}):
                    found = _read(records[0])
        if found is None or not _may_see(request[IDENTITY], found):
            raise ProblemError(HTTPStatus.NOT_FOUND, f"There is no dead letter {name}.")
        return found


def _may_see(identity: Identity, found: FoundLetter) -> bool:
    """Return whether an identity may see a letter. A letter of unknown tenant is shown only to identities that see all
    tenants."""
    return identity.sees(found.letter.tenant) and (found.letter.is_tenant_known or identity.tenants is None)


def _read(record: CommandRecord) -> FoundLetter | None:
    """Return the dead letter in a record; None if another program wrote the record."""
    try:
        return FoundLetter.of(record)
    except FormatError:
        return None


def _json(document: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")
