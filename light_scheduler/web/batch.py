"""The HTTP handler of a batch: one schedule per line in the request, one answer per line in the response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from light_scheduler.client.commands import new_id
from light_scheduler.tables.views import QueryError
from light_scheduler.wire.fields import parse_tenant

from .access.guard import STILL_ADMITTED, refuse_reserved
from .access.requesters import naming
from .commands.batch_document import LINES_MEDIA_TYPE, BatchAnswer
from .commands.dispatch import Dispatch
from .commands.idempotency.posts import Submission
from .commands.large_bodies import LargeBodies, LinesOfBatch
from .commands.lines import LARGEST_LINE, Line, LineError, lines_of
from .commands.responses import failures_as_problems, result_status
from .commands.send_parameters import SendParameters
from .forms.parameters import checked, read_parameters
from .forms.problems import ProblemError, typed
from .limits.one_by_one import OneByOne
from .limits.turns import Turns
from .server.connection import SEND_S
from .server.middlewares import failure, headers_for, refusal_of
from .worker import Worker

MOST_AT_WORK = 100
MOST_BYTES_AT_WORK = 1 << 20
"""Limits on the lines of one batch that are being carried out: their number and total bytes. A single larger line is
still admitted."""

Work = Coroutine[Any, Any, BatchAnswer]
Begin = Callable[[Line], Coroutine[Any, Any, Work]]
"""Reads a line, and returns a coroutine that produces its answer."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class BatchHandlers:
    """One method per operation."""

    def __init__(self, dispatch: Dispatch, worker: Worker, batches: Turns, bodies: LargeBodies) -> None:
        self._dispatch = dispatch
        self._bodies = bodies
        self._worker = worker
        self._batches = batches

    async def submit_schedules(self, request: web.Request) -> web.StreamResponse:
        checked("tenant", parse_tenant, request.match_info["tenant"])
        parameters = read_parameters(SendParameters, request.query)
        timeout_s, order, lines = parameters.timeout_s, OneByOne(), LinesOfBatch(self._bodies)

        async def begin(line: Line) -> Work:
            read = await _unless_refused(request, line, self._read(request, line, lines))
            return _answered(read) if isinstance(read, BatchAnswer) else carry_out(line, read)

        async def carry_out(line: Line, submission: Submission) -> BatchAnswer:
            async with order.turn((submission.wanted.id.encode(), submission.wanted.key)):
                doing = self._carried_out(request, line, submission, parameters.wait, timeout_s)
                return await _unless_refused(request, line, doing)

        async with self._batches.turn():
            response = web.StreamResponse(headers=headers_for(is_secure=request.secure))
            response.content_type = LINES_MEDIA_TYPE
            try:
                await response.prepare(request)
                await _Answering(request, response, begin).run()
            except* (OSError, TimeoutError) as gone:
                log.debug("a client left before its batch was answered: %s", gone.exceptions)
                response.force_close()
            return response

    async def _read(self, request: web.Request, line: Line, lines: LinesOfBatch) -> Submission:
        """Read a line as if it were a request of its own. A large one waits for its turn. Raises ProblemError."""
        if line.text is None:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"A line of a batch has at most {LARGEST_LINE:,} bytes. Send larger schedules one by one.",
            )
        await request[STILL_ADMITTED]()  # the token may expire before the batch ends
        tenant = request.match_info["tenant"]
        with failures_as_problems():
            named, ruled = naming(request, self._worker.access), self._worker.tenants.book.get(tenant)
            new = new_id(self._worker.clock)
            read = partial(Submission.of, tenant, line.text, new, named, ruled)
            submission = await lines.read(line.text, read)
        refuse_reserved(request, submission.wanted.target_topic, self._worker.settings.reserved_topics)
        return submission

    async def _carried_out(
        self, request: web.Request, line: Line, submission: Submission, wait: bool, timeout_s: float
    ) -> BatchAnswer:
        """Carry out a line that was read. Raises ProblemError, QueryError."""
        with failures_as_problems():
            wanted = submission.wanted
            placed = wanted if submission.is_new else await self._dispatch.placed(request, wanted)
            if not wait:
                sent = await self._dispatch.send(placed, timeout_s)
                return BatchAnswer(line=line.number, status=HTTPStatus.ACCEPTED, sent=sent)
            result = await self._dispatch.ask(placed, timeout_s)
        return BatchAnswer(line=line.number, status=result_status(result), result=result)


class _Answering:
    """One batch: reads lines and writes answers in order, while there is room.

    If a client does not read its answers, no more of its lines are read.
    """

    def __init__(self, request: web.Request, response: web.StreamResponse, begin: Begin) -> None:
        self._request = request
        self._response = response
        self._begin = begin
        self._at_work: asyncio.Queue[tuple[asyncio.Task[BatchAnswer], int] | None] = asyncio.Queue(MOST_AT_WORK)
        self._bytes = 0
        self._freed = asyncio.Event()

    async def run(self) -> None:
        """Read all lines and write all answers. On failure, cancels the work in progress and raises an
        ExceptionGroup."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read(group))
            await self._write()

    async def _read(self, group: asyncio.TaskGroup) -> None:
        try:
            async for line in lines_of(self._request):
                size = len(line.text or b"")
                await self._room_for(size)
                await self._at_work.put((group.create_task(await self._begin(line)), size))
        except LineError as error:
            self._response.force_close()
            await self._at_work.put((group.create_task(_answered(_refused(error.number, error.refusal))), 0))
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


async def _unless_refused(request: web.Request, line: Line, doing: Awaitable[T]) -> T | BatchAnswer:
    """Return the result of `doing`. If it fails, return an answer that describes the error."""
    try:
        return await doing
    except (ProblemError, QueryError) as error:
        return _refused(line.number, refusal_of(error))
    except Exception:
        log.exception("line %d of %s failed", line.number, request.rel_url)
        return _refused(line.number, failure())


def _refused(line: int, refusal: ProblemError) -> BatchAnswer:
    return BatchAnswer(line=line, status=refusal.problem.status, problem=typed(refusal.problem))


async def _answered(answer: BatchAnswer) -> BatchAnswer:
    return answer
