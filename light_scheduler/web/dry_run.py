"""The HTTP handler of the dry run: shows the effects of commands as if they were accepted at a given instant."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.clock import Clock
from light_scheduler.dry_run import DAY_MS, Delivery, DryRun
from light_scheduler.settings import Settings
from light_scheduler.tenants import TenantStore
from light_scheduler.wire.instants import parse_instant, parse_lower_bound

from .access.guard import refuse_hidden
from .commands.large_bodies import LARGE_BYTES
from .dry_run_document import DryRunDocument
from .forms.parameters import checked, read_parameters
from .forms.problems import ProblemError
from .forms.text_forms import INSTANT, LOWER_BOUND, described
from .limits.sliced_turns import SlicedTurns
from .limits.slices import LoopTime

MOST_TIME_S = 0.25
"""Processor time for one dry run."""

MOST_LINES = 1_000
MOST_BYTES = 4 << 20
"""Bytes of payloads delivered in one dry run, since an answer repeats them."""

MOST_PER_CYCLE = 10
"""Number of commands or firings that are processed before the loop gets its turn."""


class DryRunParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a dry run."""

    accepted: (
        Annotated[
            str,
            described("Instant at which all commands arrive: UTC epoch ms, or RFC 3339. Default: now.", LOWER_BOUND),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="from")
    until: (
        Annotated[
            str, described("Show messages that are due up to this instant. Default: a day after `from`.", INSTANT)
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of messages in the answer.")] = 100


class DryRunHandlers:
    """One method per operation."""

    def __init__(self, clock: Clock, work: SlicedTurns, settings: Settings, tenants: TenantStore) -> None:
        self._clock = clock
        self._work = work
        self._settings = settings
        self._tenants = tenants

    async def dry_run(self, request: web.Request) -> web.Response:
        parameters = read_parameters(DryRunParameters, request.query)
        start, until = self._clock.now(), parameters.until
        if parameters.accepted is not UNSET:
            start = checked("from", parse_lower_bound, parameters.accepted)
        end = start + DAY_MS if until is UNSET else checked("until", parse_instant, until)
        if end < start:
            raise ProblemError(HTTPStatus.BAD_REQUEST, "until: is before `from`", parameter="until")
        lines = (await request.read()).split(b"\n", MOST_LINES)
        if len(lines) > MOST_LINES and lines.pop().strip():
            raise ProblemError(
                HTTPStatus.BAD_REQUEST,
                f"The body has more than {MOST_LINES} lines; send fewer, or run `light-scheduler dry-run`.",
            )
        for number, line in enumerate(lines, 1):
            if len(line) >= LARGE_BYTES:
                raise ProblemError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"Line {number} has {len(line)} bytes; a worker tries out commands of less than {LARGE_BYTES}. "
                    "Shorten the payload, or run `light-scheduler dry-run`.",
                )
        async with self._work.turn():
            document = await self._ran(lines, start, end, parameters.limit)
        for answer in document.answers:
            refuse_hidden(request, answer.tenant)
        return web.Response(body=msgspec.json.encode(document), content_type="application/json")

    async def _ran(self, lines: list[bytes], start: int, until: int, limit: int) -> DryRunDocument:
        """Return what it came to. In the lanes' loop, in slices: a thread would hold the interpreter's lock longer."""
        run = DryRun(lines, start, self._settings, tenants=self._tenants.book, most_per_cycle=MOST_PER_CYCLE)
        found: list[Delivery] = []
        size, complete = 0, True
        async with LoopTime(MOST_TIME_S) as time:
            for deliveries in run.rounds(until):
                found += deliveries
                size += sum(len(delivery.firing.payload or b"") for delivery in deliveries)
                if len(found) > limit or size > MOST_BYTES or time.is_used_up():
                    complete = False
                    break
                if time.slice_is_over():
                    await time.rest()
            document = DryRunDocument.of(run, found[:limit], complete=complete)
        if len(document.answers) < sum(1 for line in lines if line.strip()):
            raise ProblemError(
                HTTPStatus.BAD_REQUEST,
                "These commands take a worker too long. Send fewer, or run `light-scheduler dry-run`, which needs no "
                "worker.",
            )
        return document
