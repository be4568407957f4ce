"""The tokens in a worker: follows the topic, and notes when tokens are used."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from mode import Service

from light_scheduler.clock import Clock
from light_scheduler.connection import Address
from light_scheduler.errors import SchedulerError
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.kafka.retrying import repeat
from light_scheduler.model.topics import TopicNames

from .accepted_tokens import AccessBook
from .store import TokenStore
from .tokens import Token

if TYPE_CHECKING:
    from .oidc import Oidc

NOTE_EVERY_MS = 300_000
"""Minimum time between two records of a token's use, for each worker."""

RETRY_S = 1.0
LONGEST_RETRY_S = 30.0
"""Longest pause after a failed write: the first pause is one second, each further one twice as long."""

log = logging.getLogger(__name__)


class AccessService(Service):
    """Runs beside the lanes, on the same event loop."""

    def __init__(
        self, connection: Address, names: TopicNames, clock: Clock, oidc: Oidc | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.oidc = oidc
        self._clock = clock
        self._uses: dict[str, int] = {}
        self._noted: dict[str, int] = {}
        self._running: list[asyncio.Future[Any]] = []
        self.store = TokenStore(CompactedTopic(connection, names.tenants, names.history), clock)

    @property
    def is_loaded(self) -> bool:
        """Whether the tokens have been read. Until then, every request is refused."""
        return self.store.is_loaded

    @property
    def book(self) -> AccessBook:
        return self.store.book

    def used(self, token: Token) -> None:
        """Note that a token was used."""
        now = self._clock.now()
        known = max(self.book.used.get(token.id, 0), self._noted.get(token.id, 0))
        if now - known >= NOTE_EVERY_MS:
            self._uses[token.id] = now

    async def on_start(self) -> None:
        follow = partial(self.store.follow, lambda: None)
        following = repeat(follow, "following the tokens", self, log)
        self._running = [self.add_future(following), self.add_future(self._note())]

    async def on_stop(self) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        if self.oidc is not None:
            await self.oidc.close()

    async def _note(self) -> None:
        """Write pending records: the workers' secret if there is none, and uses of tokens."""
        pause_s, reported = RETRY_S, ""
        while not self._is_ending():
            await self.sleep(pause_s)
            if self._is_ending() or not self.is_loaded:  # stopping cuts the pause short
                continue
            try:
                await self._write()
                pause_s, reported = RETRY_S, ""
            except SchedulerError as error:
                if self._is_ending():  # stopping cut the write short
                    return
                pause_s = min(2 * pause_s, LONGEST_RETRY_S)
                if reported != (reported := str(error)):
                    log.warning("the topic of the tokens cannot be written: %s; trying again and again", error)

    async def _write(self) -> None:
        """Write the pending records. Those that fail stay pending."""
        await self.store.make_peer_secret()
        uses = dict(self._uses)
        if uses:
            await self.store.note_used(uses)
            self._noted |= uses
            self._uses = {id: at for id, at in self._uses.items() if id not in uses}

    def _is_ending(self) -> bool:
        return bool(self.should_stop)
