"""The HTTP handler of a batch: schedules that come one a line, and whose answers leave one a line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from light_scheduler.client.commands import new_id
from light_scheduler.tables.views import QueryError
from light_scheduler.wire.fields import parse_tenant

from .batch_document import BatchAnswer
from .command_responses import failures_as_problems, result_status
from .connection import SEND_S
from .dispatch import Dispatch
from .guard import STILL_ADMITTED, refuse_reserved
from .idempotent_posts import Submission
from .lines import LARGEST_LINE, Line, LineError, lines_of
from .middlewares import failure, headers_for, refusal_of
from .one_by_one import OneByOne
from .operations import LINES_MEDIA_TYPE
from .parameters import checked, read_parameters
from .problems import ProblemError, typed
from .requesters import naming
from .send_parameters import SendParameters
from .turns import Turns
from .worker import Worker

MOST_AT_WORK = 100
MOST_BYTES_AT_WORK = 1 << 20
"""Lines of one batch that are carried out at a time, and what they come to, unless one line has more."""

CarryOut = Callable[[Line], Coroutine[Any, Any, BatchAnswer]]

log = logging.getLogger(__name__)


class BatchHandlers:
    """One method per operation."""

    def __init__(self, dispatch: Dispatch, worker: Worker, batches: Turns) -> None:
        self._dispatch = dispatch
        self._worker = worker
        self._batches = batches

    async def submit_schedules(self, request: web.Request) -> web.StreamResponse:
        checked("tenant", parse_tenant, request.match_info["tenant"])
        parameters = read_parameters(SendParameters, request.query)
        timeout_s, order = parameters.timeout_s, OneByOne()

        async def carry_out(line: Line) -> BatchAnswer:
            try:
                return await self._carried_out(request, line, parameters.wait, timeout_s, order)
            except (ProblemError, QueryError) as error:
                return _refused(line.number, refusal_of(error))
            except Exception:
                log.exception("line %d of %s failed", line.number, request.rel_url)
                return _refused(line.number, failure())

        async with self._batches.turn():
            response = web.StreamResponse(headers=headers_for(is_secure=request.secure))
            response.content_type = LINES_MEDIA_TYPE
            try:
                await response.prepare(request)
                await _Answering(request, response, carry_out).run()
            except* (OSError, TimeoutError) as gone:
                log.debug("a client left before its batch was answered: %s", gone.exceptions)
                response.force_close()
            return response

    async def _carried_out(
        self, request: web.Request, line: Line, wait: bool, timeout_s: float, order: OneByOne
    ) -> BatchAnswer:
        """Carry a line out as if it came alone. Raises ProblemError, QueryError."""
        if line.text is None:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"A line of a batch has at most {LARGEST_LINE:,} bytes. Send larger schedules one by one.",
            )
        await request[STILL_ADMITTED]()  # a token may end before the batch does
        tenant = request.match_info["tenant"]
        with failures_as_problems():
            named, ruled = naming(request, self._worker.access), self._worker.tenants.book.get(tenant)
            submission = Submission.of(tenant, line.text, new_id(self._worker.clock), named, ruled)
            wanted = submission.wanted
            refuse_reserved(request, wanted.target_topic, self._worker.settings.reserved_topics)
            async with order.turn((wanted.id.encode(), wanted.key)):
                placed = wanted if submission.is_new else await self._dispatch.placed(request, wanted)
                if not wait:
                    sent = await self._dispatch.send(placed, timeout_s)
                    return BatchAnswer(line=line.number, status=HTTPStatus.ACCEPTED, sent=sent)
                result = await self._dispatch.ask(placed, timeout_s)
        return BatchAnswer(line=line.number, status=result_status(result), result=result)


class _Answering:
    """One batch at work: lines are read while there is room, and their answers are written in the order of the lines.

    A client that does not read its answers is not read from either.
    """

    def __init__(self, request: web.Request, response: web.StreamResponse, carry_out: CarryOut) -> None:
        self._request = request
        self._response = response
        self._carry_out = carry_out
        self._at_work: asyncio.Queue[tuple[asyncio.Future[BatchAnswer], int] | None] = asyncio.Queue(MOST_AT_WORK)
        self._bytes = 0
        self._freed = asyncio.Event()

    async def run(self) -> None:
        """Read all lines and write all answers. Raises an ExceptionGroup with what fails, and ends what is at work."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read(group))
            await self._write()

    async def _read(self, group: asyncio.TaskGroup) -> None:
        try:
            async for line in lines_of(self._request):
                size = len(line.text or b"")
                await self._room_for(size)
                await self._at_work.put((group.create_task(self._carry_out(line)), size))
        except LineError as error:
            self._response.force_close()
            ended: asyncio.Future[BatchAnswer] = asyncio.get_running_loop().create_future()
            ended.set_result(_refused(error.number, error.refusal))
            await self._at_work.put((ended, 0))
        await self._at_work.put(None)

    async def _room_for(self, size: int) -> None:
        while self._bytes and self._bytes + size > MOST_BYTES_AT_WORK:
            self._freed.clear()
            await self._freed.wait()
        self._bytes += size

    async def _write(self) -> None:
        while (first := await self._at_work.get()) is not None:
            answer, size = first
            line = msgspec.json.encode(await answer) + b"\n"
            async with asyncio.timeout(SEND_S):
                await self._response.write(line)
            self._bytes -= size
            self._freed.set()


def _refused(line: int, refusal: ProblemError) -> BatchAnswer:
    return BatchAnswer(line=line, status=refusal.problem.status, problem=typed(refusal.problem))
