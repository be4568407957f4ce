"""POSTs of schedules with idempotency keys, which clients may repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from aiohttp import web

from light_scheduler.client import Receipt
from light_scheduler.model.tenant_rules import Tenant
from light_scheduler.tables.views import QueryError
from light_scheduler.web.access.requesters import MakeHeaders
from light_scheduler.web.commands.dispatch import Dispatch
from light_scheduler.web.commands.errors import StillRunningError
from light_scheduler.web.commands.requested import Requested, requested
from light_scheduler.web.commands.responses import IDEMPOTENCY_KEY, result_response, sent_response
from light_scheduler.web.commands.send_parameters import SendParameters

from .claims import Claim
from .requests import Attempt, Idempotency

LONGEST_KEY = 255

LEAST_S = 0.001
"""Time to send a command if its key took all of the time. It may still be acknowledged in time."""


@dataclass(frozen=True)
class Submission:
    """A schedule to create from a body. `is_new`: its id was generated, so nothing is pending under it."""

    tenant: str
    body: bytes
    wanted: Requested
    is_new: bool
    more_headers: MakeHeaders
    ruled: Tenant | None
    conditions: Mapping[str, str]

    @classmethod
    def of(
        cls,
        tenant: str,
        body: bytes,
        id: str,
        more_headers: MakeHeaders,
        ruled: Tenant | None,
        conditions: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Read a body. `id` is used if the body has neither id nor key, `ruled` holds the rules of the tenant, and
        `conditions` come from the request's headers.

        Raises InvalidCommand.
        """
        given = {"command": "schedule", "tenant": tenant, **conditions}
        wanted = requested(body, given, more_headers, {"id": id}, ruled)
        return cls(tenant, body, wanted, wanted.id == id, more_headers, ruled, conditions)

    def under(self, id: str) -> Requested:
        """Return the same command under another id."""
        conditions = {**self.conditions, "id": id}
        return self.of(self.tenant, self.body, id, self.more_headers, self.ruled, conditions).wanted


class Submissions:
    """Carries out each key once, whichever worker its requests reach."""

    def __init__(self, dispatch: Dispatch, idempotency: Idempotency) -> None:
        self._dispatch = dispatch
        self._idempotency = idempotency

    async def once(
        self, request: web.Request, submission: Submission, key: str, parameters: SendParameters
    ) -> web.Response:
        """Carry out a submission, or answer like the first request with its key.

        Raises ProblemError, and what `Idempotency` and `Dispatch` raise.
        """
        if not (key.isprintable() and 1 <= len(key) <= LONGEST_KEY):
            raise QueryError(IDEMPOTENCY_KEY, f"must be 1 to {LONGEST_KEY} printable characters")
        attempt = Attempt.of(submission.tenant, key, submission.body)
        claim = await self._idempotency.known(attempt, parameters.timeout_s)
        if claim is not None:
            return await self._answer(claim, submission, parameters)
        wanted = submission.wanted
        placed = wanted if submission.is_new else await self._dispatch.placed(request, wanted)
        claim, receipt = await self._claimed_and_sent(attempt, submission, placed, parameters.timeout_s)
        if receipt is None:
            return await self._answer(claim, submission, parameters)
        if not parameters.wait:
            return sent_response(receipt)
        return result_response(await self._idempotency.result(claim, receipt, parameters.timeout_s))

    async def _claimed_and_sent(
        self, attempt: Attempt, submission: Submission, placed: Requested, timeout_s: float
    ) -> tuple[Claim, Receipt | None]:
        """Return the claim that counts, and the receipt of its command; None: another request sends or has sent it."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        with self._idempotency.place() as sender:
            claim = await self._idempotency.claim(sender, attempt, placed.id, timeout_s)
            if claim.owner != attempt.name or claim.sent is not None or claim.result is not None:
                return claim, None
            if claim.id != placed.id:  # the id of a request whose worker is gone
                placed = submission.under(claim.id)
            left_s = max(deadline - loop.time(), LEAST_S)
            return claim, await self._idempotency.send(sender, attempt, claim, placed, left_s)

    async def _answer(self, claim: Claim, submission: Submission, parameters: SendParameters) -> web.Response:
        await self._idempotency.settle(claim, parameters.timeout_s, needs_result=parameters.wait)
        if claim.sent is not None and not parameters.wait:
            return sent_response(Receipt(submission.tenant, claim.id, claim.sent.partition, claim.sent.offset))
        if claim.result is None:
            raise StillRunningError
        return result_response(claim.result)
