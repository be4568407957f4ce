"""Commands with idempotency keys that Kafka had not acknowledged when their requests ended.

This worker's producer sends them as soon as it can, however late. Until then their claims are renewed, so that no other
request carries out the keys. Then their sending is recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from light_scheduler.client.errors import NotAcknowledged
from light_scheduler.errors import BrokerError
from light_scheduler.web.commands.errors import TooManyWaitingError
from light_scheduler.wire.idempotency import ClaimMade, CommandSent

from .claims import Claim

RENEW_S = 10.0
"""How often a claim is renewed: soon enough even after the longest request."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LateCommand:
    """The command of a claim that the request `owner` holds. `acknowledged` eventually yields its partition and
    offset."""

    tenant: str
    owner: str
    claim: Claim
    acknowledged: asyncio.Future[Any]


Write = Callable[[str, str, ClaimMade | CommandSent], Awaitable[object]]
"""Writes a record of a tenant's request to the idempotency topic. Raises TooManyWaitingError, BrokerError."""


class LateCommands:
    """Follows each command until it is sent and that is recorded. `close` it at the end."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._following: set[asyncio.Task[None]] = set()

    def follow(self, late: LateCommand) -> None:
        """Renew a claim until its command is acknowledged, and record that it was sent."""
        task = asyncio.create_task(self._follow(late), name="light-scheduler late command")
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def close(self) -> None:
        """Stop following commands."""
        following = [*self._following]
        for task in following:
            task.cancel()
        if following:
            await asyncio.wait(following)

    async def _follow(self, late: LateCommand) -> None:
        await self._renew(late)
        if not late.acknowledged.done():
            return
        error = BrokerError("given up") if late.acknowledged.cancelled() else late.acknowledged.exception()
        if error is not None:
            log.warning("the command of an idempotency key was not sent: %s", error)
            return
        sent = late.acknowledged.result()
        await self._record(late, CommandSent(sent.partition, sent.offset))

    async def _renew(self, late: LateCommand) -> None:
        """Renew a claim every `RENEW_S` until its command is acknowledged, given up, or known to be carried out from
        its result."""
        claim = late.claim
        made = ClaimMade(claim.fingerprint, claim.id, claim.tenant)
        while not (await asyncio.wait([late.acknowledged], timeout=RENEW_S))[0]:
            if claim.result is not None:
                return
            try:
                await self._write(late.tenant, late.owner, made)
            except NotAcknowledged as error:  # it is renewed again after the producer has sent this record
                both = [late.acknowledged, error.acknowledged]
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            except (BrokerError, TooManyWaitingError) as error:
                log.warning("cannot renew the claim of an idempotency key: %r", error)

    async def _record(self, late: LateCommand, sent: CommandSent) -> None:
        """Record that a command was sent, unless its result shows that first."""
        while late.claim.result is None:
            try:
                await self._write(late.tenant, late.claim.request_id, sent)
            except NotAcknowledged:  # the producer sends it as soon as it can
                return
            except (BrokerError, TooManyWaitingError) as error:
                log.warning("cannot record that the command of an idempotency key was sent: %r", error)
                await asyncio.sleep(RENEW_S)
            else:
                return
