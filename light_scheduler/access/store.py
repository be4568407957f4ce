"""All tokens, stored in the tenants topic: reads the book of tokens, and changes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from light_scheduler.clock import Clock
from light_scheduler.connection import Address, Secret
from light_scheduler.errors import BrokerError, ChangeUnconfirmed
from light_scheduler.kafka.compacted import Change, ChangingEntries, CompactedTopic, followed
from light_scheduler.model import Requester
from light_scheduler.model.topics import TopicNames
from light_scheduler.wire import change_record

from . import changes
from .accepted_tokens import AccessBook, access_book
from .identity import Role
from .records import (
    Record,
    Revocation,
    Use,
    new_peer_secret_record,
    revoked_record,
    rotation_record,
    token_record,
    used_record,
)
from .tokens import RotationConflict, Token, TokenUnusable, new_token, rotated

log = logging.getLogger(__name__)


class TokenStore:
    """Run `follow` while you use it. A change takes effect on other workers as soon as they have read it.

    The history records each change, and `by` whom it was made.
    """

    def __init__(self, topic: ChangingEntries, clock: Clock) -> None:
        self._topic = topic
        self._clock = clock
        self._changing = asyncio.Lock()
        self.book = AccessBook()

    @property
    def is_loaded(self) -> bool:
        """Whether the book has been read from the topic."""
        return self._topic.is_loaded

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep the book up to date forever. `changed` is called after each change. Raises KafkaError."""

        def read() -> None:
            before, self.book = self.book, access_book(self._topic.entries).after(self.book)
            if self.book.was_set_up and not before.was_set_up:
                log.error(
                    "all tokens are gone from their topic, as if it had been deleted: requests still need a token, and "
                    "no token is accepted. Create one with `light-scheduler tokens create`, or, to serve without "
                    "tokens, restart all workers"
                )
            changed()

        await self._topic.follow(read)

    async def create(
        self, name: str, role: Role, tenants: Iterable[str] | None, *, by: Requester, lifetime: int | None
    ) -> tuple[Token, Secret]:
        """Add a token. Return it with its text, which is not stored. Raises TokenError, BrokerError.

        If the token may exist after an error, the error's message has its id.
        """
        now = self._clock.now()
        token, text = new_token(name, role, tenants, by=by.by, now=now, lifetime=lifetime)
        event = change_record(changes.tenant_of(token), changes.created(token), by, now)
        look = (
            f"Token {token.id} ({token.name}) may exist, and its text is lost. If `light-scheduler tokens list` shows "
            f"it, end it with `light-scheduler tokens revoke {token.id}`"
        )
        await self._give_out(lambda: Change([token_record(token)], event), look)
        return token, text

    async def rotate(self, id: str, *, keep: int, by: Requester) -> tuple[Token, Secret]:
        """Give a token a new text. The previous one stays valid for `keep` ms.

        Raises TokenUnusable, BrokerError, and RotationConflict if another rotation came first.
        """
        before, now = self._valid(id), self._clock.now()
        token, text = rotated(before, now=now, keep=keep)

        def rotate() -> Change:
            if self._valid(id).secrets != before.secrets:
                raise RotationConflict(
                    f"token {id} was rotated by somebody else at the same time: their new text is valid, and "
                    "this rotation changed nothing. Rotate again if you need a text of your own"
                )
            event = change_record(changes.tenant_of(token), changes.rotated(token), by, now)
            return Change([rotation_record(before, token)], event)

        look = f"Token {id} ({token.name}) may have a new text, which is lost. Rotate it again to get one that is valid"
        await self._give_out(rotate, look)
        return token, text

    async def revoke(self, id: str, *, by: Requester) -> Token:
        """End a token for good, and return what it was. Raises TokenUnusable, BrokerError."""
        token, now = self._valid(id), self._clock.now()

        def revoke() -> Change:
            token = self._valid(id)
            event = change_record(changes.tenant_of(token), changes.revoked(token), by, now)
            return Change([revoked_record(id, Revocation(now, by.by))], event)

        await self._change(revoke)
        return token

    async def note_used(self, uses: dict[str, int]) -> None:
        """Store when tokens were used: id -> UTC epoch ms. Raises BrokerError."""
        await self._write([used_record(id, Use(at)) for id, at in uses.items()])

    async def make_peer_secret(self) -> None:
        """Create the workers' secret, unless it exists. Raises BrokerError."""
        if self.book.peer_secret is None:
            await self._write([new_peer_secret_record()])

    def _valid(self, id: str) -> Token:
        if id not in self.book.tokens:
            raise TokenUnusable("id", f"there is no token {id!r}")
        if id in self.book.revoked:
            raise TokenUnusable("id", f"token {id} was revoked already")
        return self.book.tokens[id]

    async def _change(self, make: Callable[[], Change]) -> None:
        """Make a change once all earlier changes are known. The history event is in the same transaction."""
        async with self._changing:
            self._check_loaded()
            await self._topic.change(make)

    async def _give_out(self, make: Callable[[], Change], look: str) -> None:
        """Make a change with a new text. Return only when it is stored, since the text is shown only once.

        `look` says what to do if it is unknown whether it was stored.
        """
        try:
            await self._change(make)
        except ChangeUnconfirmed as unconfirmed:
            if not unconfirmed.is_stored:
                raise ChangeUnconfirmed(unconfirmed.message, is_stored=False, advice=look) from unconfirmed
            log.warning("%s; workers accept the new text as soon as they have read it", unconfirmed)

    async def _write(self, records: list[Record]) -> None:
        self._check_loaded()
        await self._topic.write_all(records)

    def _check_loaded(self) -> None:
        if not self.is_loaded:
            raise BrokerError("the tokens have not been read yet; try again")


@asynccontextmanager
async def opened_store(
    connection: Address, names: TopicNames, clock: Clock, timeout_s: float
) -> AsyncIterator[TokenStore]:
    """Yield a store that follows the topic. Raises BrokerError if it cannot be read in time."""
    store = TokenStore(CompactedTopic(connection, names.tenants, names.history), clock)
    async with followed(store.follow, names.tenants, timeout_s):
        yield store
