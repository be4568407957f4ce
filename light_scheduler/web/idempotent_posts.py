"""POSTs of schedules that may be sent again, with their idempotency keys."""

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

from .command_responses import IDEMPOTENCY_KEY, result_response, sent_response
from .dispatch import Dispatch
from .idempotency import Attempt, Idempotency, StillRunningError
from .idempotency_claims import Claim
from .requested import MakeHeaders, Requested, requested
from .send_parameters import SendParameters

LONGEST_KEY = 255

LEAST_S = 0.001
"""What is left to send a command whose key took all the time: it may be acknowledged in time all the same."""


@dataclass(frozen=True)
class Submission:
    """A schedule that a body asks for. `is_new` says that its id was made up for it: nothing is pending under that."""

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
        """Read a body; `id` is for one that has neither id nor key, `ruled` the rules of the tenant, `conditions` what
        headers tell.

        Raises InvalidCommand.
        """
        given = {"command": "schedule", "tenant": tenant, **conditions}
        wanted = requested(body, given, more_headers, {"id": id}, ruled)
        return cls(tenant, body, wanted, wanted.id == id, more_headers, ruled, conditions)

    def under(self, id: str) -> Requested:
        """Return what it asks for, under another id."""
        conditions = {**self.conditions, "id": id}
        return self.of(self.tenant, self.body, id, self.more_headers, self.ruled, conditions).wanted


class Submissions:
    """Carries each key out once, whichever worker the requests come to."""

    def __init__(self, dispatch: Dispatch, idempotency: Idempotency) -> None:
        self._dispatch = dispatch
        self._idempotency = idempotency

    async def once(
        self, request: web.Request, submission: Submission, key: str, parameters: SendParameters
    ) -> web.Response:
        """Carry a submission out, or answer as the request did that came with its key first.

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
        """Return the claim that counts, and the receipt of its command; None: another request sends it, or has."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        with self._idempotency.place() as sender:
            claim = await self._idempotency.claim(sender, attempt, placed.id, timeout_s)
            if claim.owner != attempt.name or claim.sent is not None or claim.result is not None:
                return claim, None
            if claim.id != placed.id:  # that of a request whose worker is gone
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
