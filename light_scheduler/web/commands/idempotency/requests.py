"""Requests that may be sent again: the first one with an idempotency key is carried out; repeats get its answer.

A request first writes a claim to the idempotency topic and reads the topic up to it. The first claim of a key counts,
on every worker. Its command asks for its result in the same topic, so a lane writes the answer in the transaction that
carries the command out. That does not depend on any worker's survival.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from light_scheduler.client import Receipt
from light_scheduler.client.channel import no_answer
from light_scheduler.client.commands import CommandToSend
from light_scheduler.client.errors import NotAcknowledged
from light_scheduler.clock import Clock
from light_scheduler.errors import BrokerError
from light_scheduler.model import ReplyTo, Result
from light_scheduler.web.commands.channel import MOST_WAITING, Commands, Sender
from light_scheduler.web.commands.errors import (
    KeyReusedError,
    TooManyKeysError,
    TooManyWaitingError,
)
from light_scheduler.web.commands.requested import Requested
from light_scheduler.web.limits.shares import HOLDER, Shares
from light_scheduler.wire.idempotency import ClaimMade, CommandSent, claim_record, fingerprint_of, key_hash

from .claims import Claim
from .late_commands import LateCommand, LateCommands
from .log import ClaimLog

BEHIND_S = 1.0
"""How far a worker may be behind the answers of others (s) before a repeated request notices."""

LATE_TIMEOUT_S = 10.0
"""Time-out for writing a record about a late command, before the next record is handled."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Attempt:
    """A request with an idempotency key. Once it has claimed the key, `name` identifies it."""

    tenant: str
    hash: str
    fingerprint: str
    name: str

    @classmethod
    def of(cls, tenant: str, key: str, body: bytes) -> Attempt:
        hash = key_hash(tenant, key)
        return cls(tenant, hash, fingerprint_of(body), f"{hash}:{uuid.uuid4().hex}")


class Idempotency:
    """The keys of all workers, as read from the topic. `close` it at the end."""

    def __init__(self, commands: Commands, topic: str, clock: Clock) -> None:
        self._commands = commands
        self._topic = topic
        self._clock = clock
        self._log = ClaimLog(lambda timeout_s: commands.follow(topic, timeout_s))
        self._waiting = Shares(MOST_WAITING)
        self._late = LateCommands(self._write_late)

    async def known(self, attempt: Attempt, timeout_s: float) -> Claim | None:
        """Return the claim of an earlier request, as far as this worker has read; None: the key may have to be claimed.

        Raises KeyReusedError, BrokerError.
        """
        await self._log.open(timeout_s)
        claim = self._log.claims.get(attempt.hash, self._clock.now())
        if claim is None or claim.is_abandoned(self._clock.now()):
            return None
        return _of_same_request(claim, attempt)

    def place(self) -> AbstractContextManager[Sender]:
        """Reserve a place for a claim, its command, and the record of its sending, so that none of them is refused
        after the one before.

        Entering it raises TooManyWaitingError.
        """
        return self._commands.place()

    async def claim(self, sender: Sender, attempt: Attempt, id: str, timeout_s: float) -> Claim:
        """Claim a key for a schedule id within `timeout_s`. Return the claim that counts; it may belong to another
        request.

        Raises KeyReusedError, TooManyKeysError, TooManyWaitingError, BrokerError.
        """
        if not self._log.claims.has_room(attempt.tenant, self._clock.now()):
            raise TooManyKeysError
        if not self._waiting.has_room(HOLDER.get()):
            raise TooManyWaitingError
        deadline = asyncio.get_running_loop().time() + timeout_s
        made = ClaimMade(attempt.fingerprint, id, attempt.tenant)
        offset = (await self._write(sender, attempt, attempt.name, made, timeout_s)).offset
        try:
            async with asyncio.timeout_at(deadline):
                await self._log.until(lambda: self._log.reached >= offset)
        except TimeoutError:
            raise BrokerError("the idempotency topic cannot be read in time") from None
        claim = self._log.claims.get(attempt.hash, self._clock.now())
        if claim is None:
            raise BrokerError("the claim of the idempotency key was lost")
        return _of_same_request(claim, attempt)

    async def send(
        self, sender: Sender, attempt: Attempt, claim: Claim, command: Requested, timeout_s: float
    ) -> Receipt:
        """Send the command of a claim that this attempt owns. Raises BrokerError.

        If the command may still be sent later, the claim is renewed, and the sending is recorded when it happens.
        """
        reply_to = ReplyTo(self._topic, claim.request_id.encode())
        try:
            receipt = await sender.send(lambda _: command.record(reply_to), timeout_s)
        except NotAcknowledged as error:
            self._late.follow(LateCommand(attempt.tenant, attempt.name, claim, error.acknowledged))
            raise
        sent = CommandSent(receipt.partition, receipt.offset)
        try:
            await self._write(sender, attempt, claim.request_id, sent, max(timeout_s, BEHIND_S))
        except BrokerError as error:
            # The command's result will record the same, unless it takes longer than claims stay valid without it.
            log.warning("cannot record that the command of an idempotency key was sent: %s", error)
        return receipt

    async def result(self, claim: Claim, receipt: Receipt, timeout_s: float) -> Result:
        """Wait for the result of a claim. Raises ResultTimeout, BrokerError."""
        with self._waiting.holding(HOLDER.get()):
            try:
                async with asyncio.timeout(timeout_s):
                    await self._log.until(lambda: claim.result is not None)
            except TimeoutError:
                raise no_answer(receipt, timeout_s) from None
        assert claim.result is not None
        return claim.result

    async def settle(self, claim: Claim, timeout_s: float, *, needs_result: bool) -> None:
        """Wait briefly until the outcome of a claim has been read here, since another worker may already have answered
        with it.

        The outcome is its result or, if none is needed, the fact that its command was sent. Raises BrokerError.
        """

        def is_settled() -> bool:
            return claim.result is not None or (claim.sent is not None and not needs_result)

        if not is_settled() and self._waiting.has_room(HOLDER.get()):
            with self._waiting.holding(HOLDER.get()), suppress(TimeoutError):
                async with asyncio.timeout(min(timeout_s, BEHIND_S)):
                    await self._log.until(is_settled)

    async def close(self) -> None:
        """Stop reading. Waiting requests fail with BrokerError."""
        await self._late.close()
        await self._log.close()

    async def _write(
        self, sender: Sender, attempt: Attempt, request_id: str, event: ClaimMade | CommandSent, timeout_s: float
    ) -> Receipt:
        record = self._record(attempt.tenant, request_id, event)
        return await sender.send(lambda _: record, timeout_s)

    async def _write_late(self, tenant: str, request_id: str, event: ClaimMade | CommandSent) -> Receipt:
        record = self._record(tenant, request_id, event)
        return await self._commands.send(lambda _: record, LATE_TIMEOUT_S)

    def _record(self, tenant: str, request_id: str, event: ClaimMade | CommandSent) -> CommandToSend:
        key, value, headers = claim_record(request_id, event)
        return CommandToSend(tenant, request_id, key, value, headers, self._topic, 0)


def _of_same_request(claim: Claim, attempt: Attempt) -> Claim:
    if claim.fingerprint != attempt.fingerprint:
        raise KeyReusedError
    return claim
